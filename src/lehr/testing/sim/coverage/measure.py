"""Histories played with a recorder, and the lines that they reach together."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lehr.base.errors import LehrError
from lehr.testing.sim.coverage.executable import executable
from lehr.testing.sim.coverage.recorder import recorder
from lehr.testing.sim.suite import play, spread

DECIDING = ("lehr.checks", "lehr.enforce", "lehr.publish", "lehr.store.sql", "lehr.store.sqlite")
"""The subject of a simulation: the packages that decide, and record decisions."""

Lines = dict[str, frozenset[int]]
"""Numbers of lines by file."""


class Module(msgspec.Struct, frozen=True):
    """Lines that histories reach in a module.

    Attributes:
        name: as it is imported.
        file: where its source is.
        source: its lines; the first has number 1.
        executable: numbers of the lines that count.
        reached: those of them that were executed.
    """

    name: str
    file: str
    source: tuple[str, ...]
    executable: frozenset[int]
    reached: frozenset[int] = frozenset()

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


def sources(names: Iterable[str]) -> dict[str, Path]:
    """The source file of each module in `names`, and of each module below a package, by module name.

    Raises:
        LehrError: there is no such module, or it has no Python source.
    """
    return dict(sorted(pair for name in names for pair in _sources(name)))


def _sources(name: str) -> Iterator[tuple[str, Path]]:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a parent that is not a package, or a name such as `.x`
        spec = None
    if spec is None or not (spec.origin or "").endswith(".py"):
        raise LehrError(
            f"{name!r} is not a Python module",
            code="SIM106",
            fix="name modules or packages as in an import: lehr.enforce, lehr.enforce.step",
        )
    assert spec.origin is not None
    path = Path(spec.origin)
    yield name, path
    if spec.submodule_search_locations is not None:
        for file in path.parent.rglob("*.py"):
            parts = file.relative_to(path.parent).with_suffix("").parts
            if file != path:
                yield ".".join((name, *(parts[:-1] if parts[-1] == "__init__" else parts))), file


def read(sources: Mapping[str, Path]) -> list[Module]:
    """The modules with these source files, of which nothing was reached yet.

    Raises:
        OSError, SyntaxError: a file cannot be read.
    """
    texts = {name: path.read_text() for name, path in sources.items()}
    return [
        Module(name, str(sources[name]), tuple(text.splitlines()), executable(text))
        for name, text in texts.items()
    ]


def measure(modules: Sequence[Module], seeds: Sequence[int], jobs: int) -> Iterator[Lines]:
    """Play histories in `jobs` processes: the lines that each reaches, in whatever order they end."""
    wanted = {module.file: module.executable for module in modules}
    return spread(functools.partial(_reached, wanted), seeds, jobs)


def merged(modules: Sequence[Module], runs: Iterable[Lines]) -> list[Module]:
    """`modules` with what all of `runs` reach: the least covered first."""
    reached: dict[str, set[int]] = {module.file: set() for module in modules}
    for run in runs:
        for file, lines in run.items():
            reached[file] |= lines
    found = [replace(module, reached=frozenset(reached[module.file])) for module in modules]
    return sorted(found, key=lambda module: (module.share, module.name))


def _reached(wanted: Lines, seed: int) -> Lines:
    """The lines of `wanted` that the history of `seed` reaches, whether it breaks a rule or not."""
    with recorder(wanted) as reached:
        play(seed)
    return {file: frozenset(lines) for file, lines in reached.items()}
