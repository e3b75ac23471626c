"""Histories played with a recorder, and what they reach together."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec

from lehr.testing.sim.coverage.executable import executable
from lehr.testing.sim.coverage.recorder import recorder
from lehr.testing.sim.suite import play, spread

Lines = dict[str, frozenset[int]]
"""Numbers of lines by module."""


class Module(msgspec.Struct, frozen=True):
    """What histories reach of a module.

    Attributes:
        name: as it is imported.
        source: its lines; the first has number 1.
        executable: numbers of the lines that count.
        reached: those of them that were executed.
    """

    name: str
    source: tuple[str, ...]
    executable: frozenset[int]
    reached: frozenset[int]

    @property
    def share(self) -> float:
        """How much of it was reached, 0 to 1; of nothing, all."""
        return len(self.reached) / len(self.executable) if self.executable else 1.0

    @property
    def unreached(self) -> list[int]:
        """Lines that were not executed, in order."""
        return sorted(self.executable - self.reached)

    @property
    def ranges(self) -> list[str]:
        """Unreached lines as `45-47` or `102`. A range ends at a line that was executed."""
        ordered = [
            list(lines)
            for is_reached, lines in groupby(sorted(self.executable), self.reached.__contains__)
            if not is_reached
        ]
        return [f"{some[0]}-{some[-1]}" if len(some) > 1 else f"{some[0]}" for some in ordered]


def measure(sources: Mapping[str, Path], seeds: Sequence[int], jobs: int) -> Iterator[Lines]:
    """Play histories in `jobs` processes: the lines that each reaches, in whatever order they end.

    Raises:
        OSError, SyntaxError: a file of `sources` cannot be read.
    """
    return spread(functools.partial(_reached, tuple(sources.items())), seeds, jobs)


def merged(sources: Mapping[str, Path], runs: Iterable[Lines]) -> list[Module]:
    """What all of `runs` reach, by module: the least covered first.

    Raises:
        OSError, SyntaxError: a file of `sources` cannot be read.
    """
    reached: dict[str, set[int]] = {name: set() for name in sources}
    for run in runs:
        for name, lines in run.items():
            reached[name] |= lines
    modules = [
        Module(name, tuple(path.read_text().splitlines()), _executable(path), frozenset(reached[name]))
        for name, path in sources.items()
    ]
    return sorted(modules, key=lambda module: (module.share, module.name))


def _reached(sources: Sequence[tuple[str, Path]], seed: int) -> Lines:
    """The lines that the history of `seed` reaches, whether it breaks a rule or not."""
    with recorder({str(path): _executable(path) for _name, path in sources}) as recording:
        play(seed)
    return {name: frozenset(recording.reached[str(path)]) for name, path in sources}


@functools.cache
def _executable(path: Path) -> frozenset[int]:
    return executable(path.read_text())
