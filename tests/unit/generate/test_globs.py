"""Patterns over the paths of a snapshot."""

from __future__ import annotations

import pytest

from lehr.generate.outcome.globs import glob_problem, matcher, may_lead_to


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (
            "a/*.yaml",
            ["a/x.yaml", "a/x.y.yaml"],
            ["a/b/x.yaml", "x.yaml", "a/.x.yaml", "a/x.yamlx", "b/a/x.yaml"],
        ),
        ("a/**/*.yaml", ["a/x.yaml", "a/b/x.yaml", "a/b/c/x.yaml"], ["ab/x.yaml", "a/.git/x.yaml", "x.yaml"]),
        ("a/**", ["a/x", "a/b/c"], ["a", "b/a/x", "a/.x"]),
        ("**", ["x", "a/b"], [".x", "a/.x"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["ax"]),
        ("**/a/*/b/**/*.x", ["a/c/b/d.x", "a/a/c/b/d.x", "c/a/a/b/b/d/e.x"], ["a/b/d.x", "a/c/d/b/e.x"]),
        ("a*b*ab?", ["abab.", "axbxabx", "abaabab."], ["abab", "aba."]),
        ("{a,ab}{c,bc}/*", ["ac/x", "abc/x", "abbc/x"], ["abcc/x", "a/x"]),
        ("{*.x,y}", ["a.x", "y"], [".a.x"]),
        ("*.{yaml,yml}", ["x.yaml", "x.yml"], ["x.json", "x.yaml,yml"]),
        ("{a,b}/x", ["a/x", "b/x"], ["a", "c/x"]),
        ("a,b?.(x)", ["a,b1.(x)"], ["a", "b1.(x)", "a,b.(x)", "a,b/.(x)"]),
        ("[ab]", ["[ab]"], ["a"]),
        (".ci/run", [".ci/run"], ["ci/run"]),
        ("x", ["x"], ["x\n"]),
    ],
)
def test_a_pattern_matches_whole_paths(pattern: str, matching: list[str], other: list[str]) -> None:
    matches = matcher(pattern)
    assert [path for path in matching if not matches(path)] == []
    assert [path for path in other if matches(path)] == []


def test_a_folder_on_the_way_of_a_pattern_may_lead_to_it() -> None:
    pattern = "assets/**/*.yaml"
    assert all(may_lead_to(path, pattern) for path in ("assets", "assets/a", "assets/a/b", "assets/a.yaml"))
    assert not any(may_lead_to(path, pattern) for path in ("docs", "docs/a.yaml", "assets2", "assets/.a"))
    pattern = "a/?.{x,y}"
    assert [path for path in ("a", "a/b.x", "a/bb.x", "a/b.x/c") if may_lead_to(path, pattern)] == [
        "a",
        "a/b.x",
    ]


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/a",
        "a/../b",
        "a//b",
        "./a",
        "a/",
        "a**",
        "{a",
        "a}",
        "{a,{b,c}}",
        "{a/b}",
        "{a,b}" * 7,
        "x" * 2000,
    ],
)
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str) -> None:
    assert glob_problem(pattern) is not None
    with pytest.raises(ValueError, match="pattern"):
        matcher(pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("**/" * 200 + "b", "a/" * 200 + "c"),
        ("**/a/" * 100 + "b", "a/" * 2_000 + "c"),
        ("*a" * 400 + "b", "a" * 10_000),
        ("?*" * 400 + "b", "a" * 10_000),
        ("{a,a,a*}{a,a,*a}/" * 50 + "b", "aa/" * 50 + "c"),
        ("**/{*,*,*}/" * 50 + "b", "aa/" * 100 + "c"),
    ],
)
def test_no_pattern_takes_longer_than_it_is_worth(pattern: str, path: str) -> None:
    """With wildcards that are taken back one by one, these would never end."""
    assert glob_problem(pattern) is None
    assert not matcher(pattern)(path)
