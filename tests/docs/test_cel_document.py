"""The page about CEL: each example gives its answer, none is left out, and what is not there is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lehr.cel import Compiled, closures, compile_expression, operators
from lehr.cel.tree import Call, walk
from lehr.http.limits import FILTER_LENGTH
from lehr.query.filters import VARIABLES
from tests.conformance import test_cel_conformance as conformance

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cel.md").read_text()

STANDARD = {
    *("all", "exists", "exists_one", "filter", "has", "map"),
    *("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"),
    *("contains", "endsWith", "matches", "size", "startsWith"),
    *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours"),
    *("getMilliseconds", "getMinutes", "getMonth", "getSeconds"),
}
"""Macros and functions of the standard environment, as the specification lists them."""

INTERNAL = {"@not_strictly_false"}
"""What only macros are made of."""


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    found = re.findall(r"^\| (.*) \|$", section(title), re.MULTILINE)
    return [re.split(r" (?<!\\)\| ", f"{row} ") for row in found[1:]]


def codes(cell: str) -> list[str]:
    return [code.replace(r"\|", "|") for code in re.findall(r"`([^`]+)`", cell)]


def asset() -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0], yaml.BaseLoader)
    found["payload"] |= {"replicas": 3, "cpu": 0.5}  # the loader knows text alone
    return found


def examples(title: str) -> list[tuple[str, Any]]:
    return [(codes(row[0])[0], json.loads(codes(row[1])[0])) for row in rows(title)]


def compiled(text: str) -> Compiled:
    return compile_expression(text, VARIABLES)


FAST = examples("Fast expressions")
LIBRARY = examples("Expressions for the library")
MISSING = [(text, row) for row in rows("Unsupported expressions") for text in codes(row[1])]
INSTEAD = [text for row in rows("Unsupported expressions") for text in codes(row[2])]


@pytest.mark.parametrize(
    ("fast", "text", "expected"),
    [
        *((True, *example) for example in FAST),
        *((False, *example) for example in LIBRARY),
    ],
)
def test_each_example_gives_its_answer_by_the_way_that_is_said(fast: bool, text: str, expected: Any) -> None:
    expression = compiled(text)
    answer = expression.answer(asset())
    assert (answer, type(answer)) == (expected, type(expected))
    assert expression.fast is fast


def test_every_function_and_macro_has_an_example() -> None:
    used = {name for text, _answer in (*FAST, *LIBRARY) for name in re.findall(r"(\w+)\(", text)}
    assert used == STANDARD


def test_all_that_is_fast_has_an_example() -> None:
    trees = [tree for text, _answer in FAST if (tree := compiled(text).tree) is not None]
    used = {part.function for tree in trees for part in walk(tree) if isinstance(part, Call)}
    assert used | INTERNAL | closures.ASKED.keys() == {name for name, _arguments in closures._FUNCTIONS}


@pytest.mark.parametrize("text", [text for text, _row in MISSING])
def test_what_is_not_there_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"^\d+:\d+: ") as refused:
        compiled(text)
    named = {*re.findall(r"\w+(?=\()|[\w.]+(?=\{)", text), ".?"}
    assert any(f"'{name}'" in str(refused.value) for name in named), refused.value


@pytest.mark.parametrize("text", INSTEAD)
def test_what_is_said_to_be_written_instead_has_an_answer(text: str) -> None:
    compiled(text).answer(asset())


def test_the_limits_are_those_that_are_kept() -> None:
    told = section("Limits")
    numbers = (closures.MOST_STEPS, *operators._LONGEST.values(), FILTER_LENGTH)
    assert all(f"{number:,}" in told for number in numbers)
    for levels, refused in ((31, False), (33, True)):
        text = f"{'(' * levels}1{')' * levels}"
        if refused:
            with pytest.raises(ValueError, match="32"):
                compiled(text)
        else:
            assert compiled(text).answer(asset()) == 1
    assert compiled(" && ".join(["true"] * 500)).answer(asset()) is True


def test_the_files_of_the_public_tests_are_those_that_are_asked() -> None:
    told = " ".join(section("Conformance").split())
    asked, _, others = told.partition("Not run at all")
    assert codes(asked.partition("of the 1,192 tests in ")[2].partition(", 992")[0]) == list(
        conformance.FILES
    )
    assert not set(codes(others)) & set(conformance.FILES)
    assert len(codes(others)) + len(conformance.FILES) == 30
    assert len(conformance.KNOWN) == told.count("One has another answer")
