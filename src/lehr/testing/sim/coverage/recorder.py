"""Notes which lines of some files are executed, at little cost."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from types import CodeType, FrameType
from typing import Any, Self

from lehr.testing.sim.coverage.executable import lines_of

_TOOL = 4
"""One of the two numbers that `sys.monitoring` leaves to any tool."""


class Recorder(ABC):
    """A context in which lines that this thread executes are noted.

    Attributes:
        reached: lines by file, as in `co_filename`.
    """

    def __init__(self, wanted: Mapping[str, AbstractSet[int]]) -> None:
        """Note lines of `wanted`, by file."""
        self.wanted = wanted
        self.reached: dict[str, set[int]] = {file: set() for file in wanted}

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...


class Tracing(Recorder):
    """By `sys.settrace`. Code of other files, or of which every line was seen, is not traced."""

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        sys.settrace(self._at_calls())
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _at_calls(self) -> Callable[[FrameType, str, Any], Any]:
        """Called at each call in the program: nothing else here costs as much."""
        wanted, reached = self.wanted, self.reached
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

    def __init__(
        self, code: CodeType, wanted: Mapping[str, AbstractSet[int]], reached: Mapping[str, set[int]]
    ) -> None:
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

    class Monitoring(Recorder):
        """By `sys.monitoring`, which reports each place once and costs nothing after that."""

        def __enter__(self) -> Self:
            monitoring = sys.monitoring
            monitoring.use_tool_id(_TOOL, "lehr sim coverage")
            monitoring.register_callback(_TOOL, monitoring.events.LINE, self._line)
            monitoring.set_events(_TOOL, monitoring.events.LINE)
            monitoring.restart_events()  # a former recorder has seen places off
            return self

        def __exit__(self, *_: object) -> None:
            sys.monitoring.set_events(_TOOL, 0)
            sys.monitoring.register_callback(_TOOL, sys.monitoring.events.LINE, None)
            sys.monitoring.free_tool_id(_TOOL)

        def _line(self, code: CodeType, line: int) -> Any:
            if line in self.wanted.get(code.co_filename, ()):
                self.reached[code.co_filename].add(line)
            return sys.monitoring.DISABLE


def recorder(wanted: Mapping[str, AbstractSet[int]]) -> Recorder:
    """The cheapest recorder that this Python has, for lines of `wanted` by file."""
    if sys.version_info >= (3, 12):
        return Monitoring(wanted)
    return Tracing(wanted)
