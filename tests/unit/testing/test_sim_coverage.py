"""What counts as a line, what is noted of it, and what is made of that."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from lehr.testing.sim.coverage.executable import executable
from lehr.testing.sim.coverage.measure import Module, merged, read, sources
from lehr.testing.sim.coverage.recorder import Reached, Wanted, recorder, tracing
from tests.codes import raises

SOURCE = '''\
"""A module."""
import functools
from typing import TYPE_CHECKING, Protocol
LIMITS = [limit * 2 for limit in range(3)]  # runs at import
if TYPE_CHECKING:
    import os
class Shape(Protocol):
    """Says `area`."""
    sides = 3
    def area(self) -> float:
        """In metres."""
    def name(self) -> str: ...
@functools.cache
def sign(
    number: int,
) -> str:
    """A word."""
    if number < 0:
        return "minus"
    return "plus"
def outer(numbers):
    def inner(number):
        return number * 2
    return [
        inner(number)
        for number in numbers
        if number > 5
    ]
def items(limit):
    number = 0
    while number < limit:
        yield number
        number += 1
    if TYPE_CHECKING:
        os.abort()
double = lambda number: number * 2
'''


def lines_with(*texts: str) -> set[int]:
    lines = SOURCE.splitlines()
    found = {number for number, line in enumerate(lines, 1) if line.strip() in texts}
    assert len(found) >= len(texts)
    return found


def test_only_lines_that_run_when_a_function_is_called_count() -> None:
    assert executable(SOURCE) == lines_with(
        *("if number < 0:", 'return "minus"', 'return "plus"'),
        *("def inner(number):", "return number * 2"),
        *("return [", "inner(number)", "for number in numbers", "if number > 5"),
        *("number = 0", "while number < limit:", "yield number", "number += 1"),
        "double = lambda number: number * 2",
    )


RECORDERS = [tracing] if sys.version_info < (3, 12) else [tracing, recorder]
Kind = Callable[[Wanted], AbstractContextManager[Reached]]


@pytest.fixture(params=RECORDERS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


class Sample:
    """The module of `SOURCE`, executed."""

    def __init__(self, folder: Path) -> None:
        self.file = str(folder / "sample.py")
        self.functions: dict[str, Any] = {}
        exec(compile(SOURCE, self.file, "exec"), self.functions)
        self.wanted = {self.file: executable(SOURCE)}


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return Sample(tmp_path)


def test_lines_that_are_executed_are_noted(kind: Kind, sample: Sample) -> None:
    with kind(sample.wanted) as reached:
        sample.functions["sign"](1)
        sample.functions["double"](1)
    assert reached[sample.file] == lines_with(
        "if number < 0:", 'return "plus"', "double = lambda number: number * 2"
    )


def test_lines_that_later_calls_execute_are_noted(kind: Kind, sample: Sample) -> None:
    with kind(sample.wanted) as reached:
        for number in (1, 2, -1):
            sample.functions["sign"](number)
    assert lines_with('return "minus"') <= reached[sample.file]


def test_lines_of_generators_that_are_resumed_are_noted(kind: Kind, sample: Sample) -> None:
    with kind(sample.wanted) as reached:
        under_way: Iterator[int] = sample.functions["items"](2)
        next(under_way)
        first = set(reached[sample.file])
        next(under_way)
    new = reached[sample.file] - first
    assert new == lines_with("number += 1")


def test_each_recording_begins_with_nothing(kind: Kind, sample: Sample) -> None:
    for _ in range(2):
        with kind(sample.wanted) as reached:
            sample.functions["outer"]([1])
        assert lines_with("def inner(number):") <= reached[sample.file]


def test_nothing_is_noted_after_the_end(kind: Kind, sample: Sample) -> None:
    with kind(sample.wanted) as reached:
        pass
    sample.functions["sign"](5)
    assert reached == {sample.file: set()}


def test_a_trace_function_of_somebody_else_is_put_back(sample: Sample) -> None:
    before = sys.gettrace()
    with tracing(sample.wanted):
        assert sys.gettrace() is not before
    assert sys.gettrace() is before


def test_what_several_histories_reach_is_merged(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    for path in (first, second):
        path.write_text(SOURCE)
    lines = executable(SOURCE)
    runs = [
        {str(first): frozenset({18}), str(second): lines - {20}},
        {str(first): frozenset({20}), str(second): frozenset({20})},
    ]
    modules = merged(read({"second": second, "first": first}), runs)
    assert [(module.name, module.reached) for module in modules] == [("first", {18, 20}), ("second", lines)]
    assert modules[1].unreached == []
    assert modules[1].share == 1.0


def test_source_that_is_edited_while_histories_are_played_is_reported_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "edited.py"
    path.write_text(SOURCE)
    modules = read({"edited": path})
    path.write_text("# new\n" * 5 + SOURCE)
    [module] = merged(modules, [])
    assert module.executable == executable(SOURCE)
    assert "\n".join(module.source) == SOURCE.rstrip()


def test_ranges_end_at_lines_that_were_executed_and_go_over_those_that_do_not_count() -> None:
    lines = frozenset({3, 4, 8, 9, 12, 20})
    module = Module("m", "m.py", (), lines, frozenset({9, 20}))
    assert module.unreached == [3, 4, 8, 12]
    assert module.ranges == ["3-8", "12"]


def test_a_package_stands_for_all_of_its_modules() -> None:
    found = sources(["lehr.checks", "lehr.enforce.step"])
    assert {"lehr.checks", "lehr.checks.freeze", "lehr.enforce.step"} <= set(found)
    assert "lehr.enforce.lane" not in found
    assert found["lehr.checks.freeze"].name == "freeze.py"
    assert "lehr.store.sql.check.history" in sources(["lehr.store.sql"])


@pytest.mark.parametrize(
    "name", ["lehr.nothing", "lehr.enforce.step.deeper", "no_such_thing", ".x", "", "sys"]
)
def test_a_name_that_is_no_module_is_an_error(name: str) -> None:
    with raises("SIM106"):
        sources([name])
