"""Paths, in both spellings."""

from __future__ import annotations

import pytest

from lehr.editing.paths import Match, Name, parse_path, quoted, spelt


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("payload.replicas", (Name("payload"), Name("replicas"))),
        ("/assets/2/payload", (Name("assets"), Name("2"), Name("payload"))),
        ("/a~1b/c~0d", (Name("a/b"), Name("c~d"))),
        ("[id=web/process].payload", (Match("id", "web/process"), Name("payload"))),
        ("assets[3].id", (Name("assets"), Name("3"), Name("id"))),
        ('addons."lehr.Labels".team', (Name("addons"), Name("lehr.Labels"), Name("team"))),
        ('[id="a]b"].x', (Match("id", "a]b"), Name("x"))),
        ("ports.-", (Name("ports"), Name("-"))),
        ("ports[-]", (Name("ports"), Name("-"))),
        ('"say \\"hi\\""', (Name('say "hi"'),)),
    ],
)
def test_a_path_is_read_in_either_spelling(path: str, steps: tuple[Name | Match, ...]) -> None:
    assert parse_path(path) == steps


@pytest.mark.parametrize("path", ["", "a..b", "a[", "a[x]", ".a", "a]b", '"a', "/a~2"])
def test_what_is_no_path_is_refused_with_a_reason(path: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        parse_path(path)


def test_a_path_that_is_shown_can_be_read_again() -> None:
    steps = (Name("a.b"), Name("3"), Match("id", "web"), Name('c"d'))
    assert parse_path(spelt(steps)) == steps
    assert quoted("plain") == "plain"
