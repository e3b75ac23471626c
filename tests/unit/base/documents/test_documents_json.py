"""JSON, held to the same rules as the other formats."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import Position
from lehr.base.documents import MAX_DEPTH, load


def problems(text: str) -> list[str]:
    return [
        f"{item.code} {item.at.line}:{item.at.column}"
        for item in load("a.json", text.encode()).diagnostics
        if item.at is not None
    ]


def test_every_duplicate_key_is_reported_where_it_stands() -> None:
    text = '{"a": 1,\n "b": {"c": 1, "c": 2},\n "a": [{"x": 1, "\\u0078": 2}]}'
    assert problems(text) == ["DOC005 2:16", "DOC005 3:17", "DOC005 3:2"]


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e400", "18446744073709551616", "-" + "9" * 100_000])
def test_numbers_that_other_programs_cannot_hold_are_refused(text: str) -> None:
    assert problems(f'{{"a":\n [1, {text}]}}') == ["DOC011 2:6"]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_depth_is_bounded(opening: str) -> None:
    place = f"DOC007 1:{len(opening) * MAX_DEPTH + 1}"
    assert problems(opening * (MAX_DEPTH + 1)) == [place]
    assert problems(opening * 1_000_000) == [place]
    assert not problems("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_brackets_in_strings_are_no_depth() -> None:
    assert not problems('["' + "[" * 1000 + '\\"' + "{" * 1000 + '"]')


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "DOC004 1:1"),
        ('{"a": 1\n "b"}', "DOC004 2:2"),
        ('{"a": 1, "a": 2,\n x}', "DOC004 2:2"),
        ("[1, 2", "DOC004 1:6"),
        ('{"a": 1} {}', "DOC004 1:10"),
        ("'a'", "DOC004 1:1"),
        ('"' + '\\"' * 500_000, "DOC004 1:1"),
    ],
)
def test_syntax_errors_point_to_line_and_column(text: str, where: str) -> None:
    assert problems(text) == [where]


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert problems('{"a": "\\ud83d"}') == ["DOC004 1:7"]
    assert load("a.json", b'"\\ud83d\\ude00"').documents[0].value == "\U0001f600"


def test_a_pointer_leads_to_line_and_column() -> None:
    document = load("a.json", b'{"a": [1,\n  {"b/c": 2}],\n "d": 3}').documents[0]
    assert document.position("/a/1") == Position("a.json", 2, 3)
    assert document.position("/a/1/b~1c") == Position("a.json", 2, 4)
    assert document.position("/d") == Position("a.json", 3, 2)
    assert document.position("/missing") == Position("a.json", 1, 1)
