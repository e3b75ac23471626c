"""Problems carry the line that they point to, for readers who do not have the source."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import Diagnostic, Excerpt, Position, Severity
from lehr.publish.problem_positions import with_excerpts
from tests.snapshots import MemorySnapshot

SNAPSHOT = MemorySnapshot({"a.yaml": "id: web\r\npayload:\n  replicas: -1\n", "b.yaml": "x" * 4999 + "HERE"})


def excerpt(*place: str | int) -> Excerpt | None:
    at = Position(*place) if place else None  # type: ignore[arg-type]
    [found] = with_excerpts([Diagnostic(code="GEN007", what="it is wrong", at=at)], SNAPSHOT)
    return found.excerpt


def test_an_excerpt_is_the_line_with_the_character_that_is_meant() -> None:
    assert excerpt("a.yaml", 3, 3) == Excerpt("  replicas: -1", 2)
    assert excerpt("a.yaml", 1) == Excerpt("id: web")


def test_what_points_to_no_line_that_is_there_has_none() -> None:
    assert [excerpt(), excerpt("a.yaml"), excerpt("a.yaml", 9, 1), excerpt("gone.yaml", 1, 1)] == [None] * 4


def test_a_long_line_is_cut_around_the_character() -> None:
    found = excerpt("b.yaml", 1, 5000)
    assert found is not None
    assert found.caret is not None
    assert len(found.text) <= 160
    assert found.text[found.caret :] == "HERE"


def test_a_line_with_a_secret_is_not_shown_though_another_problem_points_to_it() -> None:
    url = "postgresql://ada:lovelace1815@db/plays"
    snapshot = MemorySnapshot(
        {"a.yaml": f"connection: {url}\nport: x\n", "b.yaml": f"{url} {' ' * 900}port: x"}
    )
    at = [
        Position("a.yaml", 1, 1),
        Position("a.yaml", 2, 1),
        Position("b.yaml", 1, 100),
        Position("b.yaml", 1, 935),
    ]
    found = with_excerpts([Diagnostic(code="GEN007", what="it is wrong", at=place) for place in at], snapshot)
    assert [None if item.excerpt is None else item.excerpt.text for item in found] == [
        None,
        "port: x",
        None,
        None,
    ]


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "Q7" * 8,
        "github_pat_" + "a1" * 30,
        "AGE-SECRET-KEY-1" + "Q7" * 12 + "...",  # as messages cut long texts
        "postgresql://app:hunter2" + "@db/shop",
    ],
)
def test_a_secret_of_a_known_form_that_a_problem_quotes_is_not_told(secret: str) -> None:
    text = f"payload.mode is the string '{secret}', not a mode"
    problem = Diagnostic(code="GEN007", what=text, why=f"{text} of today", fix=text)
    [found] = with_excerpts([problem], SNAPSHOT)
    assert found.what.startswith("payload.mode is the string '(a secret)")
    assert found.why.endswith("', not a mode of today")
    for told in (found.what, found.why, found.fix):
        assert not any(secret[at : at + 6] in told for at in range(4, len(secret) - 8))


def test_of_very_many_files_those_with_errors_are_quoted() -> None:
    files = [f"{number:03}.yaml" for number in range(80)]
    snapshot = MemorySnapshot(dict.fromkeys(files, "line\n"))
    found = with_excerpts(
        (
            Diagnostic(
                code="GEN010",
                what="it is large",
                at=Position(file, 1, 1),
                severity=Severity.ERROR if file == files[-1] else Severity.WARNING,
            )
            for file in files
        ),
        snapshot,
    )
    assert len(snapshot.reads) == 50
    assert [item.excerpt is not None for item in found] == [*[True] * 49, *[False] * 30, True]


def test_problems_without_number_are_told_up_to_a_limit() -> None:
    dangling = [
        Diagnostic(code="VAL001", what=f"{number}", at=Position("a.yaml", 1, 1)) for number in range(12_000)
    ]
    found = with_excerpts(dangling, SNAPSHOT)
    assert len(found) == 10_001
    assert [item.code for item in found if item.code != "VAL001"] == ["GEN036"]
