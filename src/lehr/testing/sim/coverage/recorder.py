"""Notes which lines of some files are executed, at little cost."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from types import CodeType, FrameType
from typing import Any

from lehr.testing.sim.coverage.executable import lines_of

_TOOL = 4
"""One of the two numbers that `sys.monitoring` leaves to any tool."""


Wanted = Mapping[str, AbstractSet[int]]
"""Lines by file, as in `co_filename`."""

Reached = dict[str, set[int]]


@contextlib.contextmanager
def tracing(wanted: Wanted) -> Iterator[Reached]:
    """By `sys.settrace`. Code of other files, or of which every line was seen, is not traced."""
    reached: Reached = {file: set() for file in wanted}
    before = sys.gettrace()
    sys.settrace(_at_calls(wanted, reached))
    try:
        yield reached
    finally:
        sys.settrace(before)


def _at_calls(wanted: Wanted, reached: Reached) -> Callable[[FrameType, str, Any], Any]:
    """Called at each call in the program: nothing else here costs as much."""
    known: dict[int, _Lines] = {}  # by id, as to hash a code object is to hash all of it

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in wanted:
            return None
        lines = known.get(id(code))
        if lines is None:
            lines = known[id(code)] = _Lines(code, wanted, reached)
        return lines.line if lines.missing else None

    return call


class _Lines:
    """Unseen lines of one code object, which is kept so that its id stays its own."""

    def __init__(self, code: CodeType, wanted: Wanted, reached: Reached) -> None:
        self.code = code
        self.missing = lines_of(code) & wanted[code.co_filename]
        self._reached = reached[code.co_filename]

    def line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_lineno in self.missing:
            self.missing.remove(frame.f_lineno)
            self._reached.add(frame.f_lineno)
        if self.missing:
            return self.line
        frame.f_trace = None
        return None


if sys.version_info >= (3, 12):

    @contextlib.contextmanager
    def monitoring(wanted: Wanted) -> Iterator[Reached]:
        """By `sys.monitoring`, which reports each place once and costs nothing after that."""
        reached: Reached = {file: set() for file in wanted}
        tool = sys.monitoring

        def line(code: CodeType, line: int) -> Any:
            if line in wanted.get(code.co_filename, ()):
                reached[code.co_filename].add(line)
            return tool.DISABLE

        tool.use_tool_id(_TOOL, "lehr sim coverage")
        tool.register_callback(_TOOL, tool.events.LINE, line)
        tool.set_events(_TOOL, tool.events.LINE)
        tool.restart_events()  # a former recorder has seen places off
        try:
            yield reached
        finally:
            tool.set_events(_TOOL, 0)
            tool.register_callback(_TOOL, tool.events.LINE, None)
            tool.free_tool_id(_TOOL)


def recorder(wanted: Wanted) -> AbstractContextManager[Reached]:
    """A context in which lines of `wanted` that this thread executes are noted, at the least cost."""
    if sys.version_info >= (3, 12):
        return monitoring(wanted)
    return tracing(wanted)
