"""YAML 1.2 core schema, held to rules that keep intent unambiguous."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.diagnostics import Position
from lehr.base.documents import MAX_DEPTH, load


def value(text: str) -> Any:
    documents = load("a.yaml", text.encode())
    assert documents.diagnostics == ()
    assert len(documents.documents) == 1
    return documents.documents[0].value


def problems(text: str) -> list[str]:
    """`code line:column` of each diagnostic."""
    documents = load("a.yaml", text.encode())
    for item in documents.diagnostics:
        assert item.what
        assert item.fix
        assert item.subject == "a.yaml"
    return [
        f"{item.code} {item.at.line}:{item.at.column}"
        for item in documents.diagnostics
        if item.at is not None
    ]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("1:20:30", "1:20:30"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-7", -7),
        ("=", "="),
        (".", "."),
        ("-", [None]),
        ("1.2.3", "1.2.3"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("!!int '5'", 5),
        ("!!float 5", 5.0),
        ("!!bool 'true'", True),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, meaning: object) -> None:
    result = value(text)
    assert result == meaning
    assert type(result) is type(meaning)


def test_words_that_yaml_1_1_took_for_booleans_may_be_keys() -> None:
    assert value("on: 1\nno: 2\n") == {"on": 1, "no": 2}


@pytest.mark.parametrize(
    "text", [".inf", "-.Inf", ".NaN", "1e400", "18446744073709551616", "-9223372036854775809", "9" * 100_000]
)
def test_numbers_that_other_programs_cannot_hold_are_refused(text: str) -> None:
    assert problems(f"a:\n  b: {text}\n") == ["DOC011 2:6"]


def test_every_duplicate_key_is_reported_where_it_stands() -> None:
    text = "a: 1\nb:\n  c: 1\n  c: 2\na: 3\na: 4\n"
    assert problems(text) == ["DOC005 4:3", "DOC005 5:1", "DOC005 6:1"]
    assert "line 1" in load("a.yaml", text.encode()).diagnostics[1].why


@pytest.mark.parametrize(
    "text", ["1: a", "true: a", "~: a", "[a]: b", "{a: b}: c", "? [x]\n: y", "1.5: {a: b}"]
)
def test_keys_are_strings(text: str) -> None:
    assert [problem.split()[0] for problem in problems(text)] == ["DOC006"]


def test_merge_keys_are_refused_unless_quoted() -> None:
    assert problems("base: &b {x: 1}\nuse:\n  <<: *b\n  y: 2\n") == ["DOC010 3:3"]
    assert value("'<<': 1") == {"<<": 1}
    assert value("- <<") == ["<<"]


@pytest.mark.parametrize(
    "text", ["!python/object:os.system x", "!!set {a}", "!!map [a]", "!!int x", "!!int true", "!e {}"]
)
def test_tags_beyond_the_core_schema_are_refused(text: str) -> None:
    assert problems(text) == ["DOC009 1:1"]


def test_tag_directives_are_few_because_each_is_compared_with_all_before_it() -> None:
    directives = [f"%TAG !a{number}! tag:example.org:\n" for number in range(100_000)]
    assert value("".join(directives[:64]) + "--- a\n") == "a"
    assert problems("".join(directives) + "--- a\n") == ["DOC009 65:1"]
    assert value("- '%TAG'\n" * 100) == ["%TAG"] * 100


def test_aliases_stand_for_the_value_they_name() -> None:
    assert value("a: &x [1, 2]\nb: *x\nc: {d: *x}\n") == {"a": [1, 2], "b": [1, 2], "c": {"d": [1, 2]}}
    assert value("a: &k key\n*k : 1\n") == {"a": "key", "key": 1}
    assert value("a: &x 1\nb: &x 2\nc: *x\n") == {"a": 1, "b": 2, "c": 2}


def test_alias_bombs_are_refused() -> None:
    laughs = "a0: &a0 [lol, lol]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20)
    )
    assert [problem.split()[0] for problem in problems(laughs)] == ["DOC008"]
    long_text = f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
    assert [problem.split()[0] for problem in problems(long_text)] == ["DOC008"]


def test_aliases_that_name_nothing_or_themselves_are_refused() -> None:
    assert problems("a: *nowhere\n") == ["DOC008 1:4"]
    assert problems("a: &x [1, *x]\n") == ["DOC008 1:11"]
    assert problems("a: &x 1\n---\nb: *x\n") == ["DOC008 3:4"]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_depth_is_bounded(opening: str) -> None:
    assert [problem.split()[0] for problem in problems(opening * (MAX_DEPTH + 1))] == ["DOC007"]
    assert [problem.split()[0] for problem in problems(opening * 100_000)] == ["DOC007"]
    assert value("[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_a_file_may_hold_several_documents_and_a_problem_spares_the_others() -> None:
    documents = load("a.yaml", b"a: 1\n---\nb: 1\nb: 2\n---\nc: 3\n")
    assert [document.value for document in documents.documents] == [{"a": 1}, {"c": 3}]
    assert [item.code for item in documents.diagnostics] == ["DOC005"]
    assert documents.documents[1].position("/c") == Position("a.yaml", 6, 1)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_file_has_no_documents(text: str) -> None:
    assert load("a.yml", text.encode()) == load("b.yml", b"")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1, 2\nb: 3\n", "DOC004 2:2"),
        ("a:\n\t- b\n", "DOC004 2:1"),
        ('a: "x\n', "DOC004 2:1"),
        ("a: b: c\n", "DOC004 1:5"),
        ("a: 1\n b: 2\n", "DOC004 2:3"),
        ("a: @x\n", "DOC004 1:4"),
        ("a: [", "DOC004 1:5"),
        ("a: 1\nü: [", "DOC004 2:5"),
    ],
)
def test_syntax_errors_point_to_line_and_column(text: str, where: str) -> None:
    assert problems(text) == [where]


def test_what_is_not_closed_is_told_with_the_line_where_it_begins() -> None:
    assert load("a.yaml", b"a: [1,\n  2\nb: 3\n").diagnostics[0].why.endswith("begins in line 1")
    assert load("a.yaml", b"a: [").diagnostics[0].why.endswith("begins in line 1")


def test_line_separators_that_yaml_1_1_took_for_line_breaks_are_refused() -> None:
    assert [problem.split()[0] for problem in problems('a: "x\u2028y"\n')] == ["DOC003"]


@pytest.mark.parametrize(
    ("pointer", "line", "column"),
    [
        ("", 2, 1),
        ("/id", 2, 1),
        ("/payload/ports/1", 6, 7),
        ("/payload/ports/1/name", 6, 8),
        ("/payload/env", 7, 3),
        ("/payload/env/a~1b", 8, 5),
        ("/payload/env/~0", 9, 5),
        ("/payload/missing/deeper", 3, 1),
        ("/again/a~1b", 8, 5),
    ],
)
def test_a_pointer_leads_to_line_and_column_or_to_what_would_hold_it(
    pointer: str, line: int, column: int
) -> None:
    text = (
        "# a comment\n"
        "id: x\n"
        "payload:\n"
        "  ports:\n"
        "    - {name: a}\n"
        "    - {name: b}\n"
        "  env: &env\n"
        "    a/b: 1\n"
        "    '~': 2\n"
        "again: *env\n"
    )
    position = load("a.yaml", text.encode()).documents[0].position(pointer)
    assert (position.line, position.column) == (line, column)


@pytest.mark.parametrize(("text", "column"), [("---", 4), ("a: 1\n---", 4), ("---\t", 5)])
def test_what_ends_with_the_file_stands_inside_it(text: str, column: int) -> None:
    position = load("a.yaml", text.encode()).documents[-1].position()
    assert (position.line, position.column) == (text.count("\n") + 1, column)


def test_positions_inside_block_lists() -> None:
    document = load("a.yaml", b"- id: a\n- id: b\n  ports:\n  - 80\n  - 81\n").documents[0]
    assert document.position("/1") == Position("a.yaml", 2, 3)
    assert document.position("/1/ports") == Position("a.yaml", 3, 3)
    assert document.position("/1/ports/1") == Position("a.yaml", 5, 5)
