"""TOML, held to the same rules as the other formats."""

from __future__ import annotations

import pytest

from lehr.base.documents import MAX_DEPTH, load
from lehr.base.documents.toml_nodes import _TOKEN

ASSETS = """\
# two assets
title = "a.b = 1"
text = '''
[not.a.header]
key = 1
'''
limits.cpu = 1.5

[[assets]]
id = "a"
[assets.payload]
ports = [
  80,  # [comment]
  {name = "x", "y.z" = 1},
]

[[assets]]
id = "b"
[assets.addons."lehr.Owner"]
team = "t"
"""


def problems(text: str) -> list[str]:
    return [
        f"{item.code} {item.at.line}:{item.at.column}"
        for item in load("a.toml", text.encode()).diagnostics
        if item.at is not None
    ]


@pytest.mark.parametrize(
    ("pointer", "line", "column"),
    [
        ("/title", 2, 1),
        ("/limits", 7, 1),
        ("/limits/cpu", 7, 8),
        ("/assets/0", 9, 3),
        ("/assets/0/id", 10, 1),
        ("/assets/0/payload", 11, 9),
        ("/assets/0/payload/ports/0", 13, 3),
        ("/assets/0/payload/ports/1/y.z", 14, 16),
        ("/assets/1/id", 18, 1),
        ("/assets/1/addons/lehr.Owner", 19, 16),
        ("/assets/1/addons/lehr.Owner/team", 20, 1),
        ("/assets/1/missing", 17, 3),
        ("/not", 1, 1),
    ],
)
def test_a_pointer_leads_to_line_and_column(pointer: str, line: int, column: int) -> None:
    documents = load("a.toml", ASSETS.encode())
    assert not documents.diagnostics
    position = documents.documents[0].position(pointer)
    assert (position.line, position.column) == (line, column)


@pytest.mark.parametrize("date", ["1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "1979-05-27", "07:32:00"])
def test_dates_and_times_must_be_quoted(date: str) -> None:
    assert problems(f"x = 1\n[a]\nb = [{date}]\n") == ["DOC012 3:6"]


@pytest.mark.parametrize("number", ["nan", "-inf", "18446744073709551616", "1e400", "0x1" + "0" * 16])
def test_numbers_that_other_programs_cannot_hold_are_refused(number: str) -> None:
    assert problems(f"a = 1\nb = {number}\n") == ["DOC011 2:1"]


@pytest.mark.parametrize("digits", [81, 4_301, 100_000])
def test_an_integer_of_any_length_is_a_problem_where_it_stands(digits: int) -> None:
    (problem,) = load("a.toml", b"a = '9'\nb = [1, -" + b"9" * digits + b"]").diagnostics
    assert (problem.code, str(problem.at)) == ("DOC011", "a.toml:2:9")
    assert len(problem.what) < 100


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_string_without_an_end_is_looked_at_once(quotes: str) -> None:
    """However often it seems to begin again: all that is left is one token."""
    text = f"{quotes}\n" + f"\\{quotes[0]}\n" * 5
    assert [token.group() for token in _TOKEN.finditer(text)] == [text]
    assert problems(f"# {'.' * 100}\n{text * 40_000}")  # which took time quadratic in its length


def test_the_number_of_reported_values_is_bounded() -> None:
    found = load("a.toml", b"a = [" + b"nan, " * 2_000 + b"nan]").diagnostics
    assert [item.code for item in found] == ["DOC011"] * 1_000 + ["DOC014"]
    assert [str(item.at) for item in found[:2]] == ["a.toml:1:6", "a.toml:1:11"]


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 200_000,
        "a = " + "{a = " * 5_000,
        "a." * 100_000 + "a = 1",
        "[" + "a . " * 100_000 + "a]",
        'x = {y = "1", ' + '"a".' * 5_000 + "b = 1}",
    ],
)
def test_depth_is_bounded(text: str) -> None:
    assert [problem.split()[0] for problem in problems(text)] == ["DOC007"]


def test_what_is_not_deep_is_not_refused() -> None:
    ellipses = "." * 1000
    assert not problems(f'a = """\n{ellipses}\n"""\nb = "{ellipses}" # {ellipses}\n')
    assert not problems("".join(f"a{n}.b.c = [{n}.5]\n" for n in range(MAX_DEPTH * 2)))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = 1\na = 2\n", "DOC005 2:6"),
        ("[a]\n[a]\n", "DOC005 2:3"),
        ("a = \n", "DOC004 1:5"),
        ("a = 'x", "DOC004 1:7"),
        ('a = 1\nb = """x\n\n', "DOC004 4:1"),
    ],
)
def test_syntax_errors_and_duplicate_keys_point_into_the_file(text: str, where: str) -> None:
    assert problems(text) == [where]
