"""A mutation, its description, and those in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

import lehr
from lehr.testing.sim.mutants.patch import PatchError, apply, normal

REPOSITORY = Path(lehr.__file__).parents[2]
"""Where the sources and tests are, if this is not an installed package."""

PLANTED = REPOSITORY / "tests" / "simulation" / "planted"
"""The mutations that the repository holds; a wheel has none."""

_WORD = re.compile(r"# (Bug|Thought|Breaks|Outside|Found): (.*)")
_PACKAGE = "lehr/"
_JUDGE = "lehr/testing/"


class Mutation(msgspec.Struct, frozen=True):
    """One planted bug.

    Attributes:
        bug: the class of bugs that it represents; empty if not given.
        thought: what its author may have had in mind.
        breaks: the invariant that is broken.
        outside: the area of the bug that no history simulates; empty if histories should find it.
        found: the case that last found it, played first: `seed 17`, `seed 17 --policies`, `scenario NAME`,
            `test tests/...`.
        diff: its changes; paths begin with `lehr/`.
        paths: the files that it changes.
    """

    name: str
    bug: str
    thought: str
    breaks: str
    outside: str
    found: str
    diff: str
    paths: tuple[str, ...]

    def apply(self, folder: Path) -> None:
        """Change the copy of the package in `folder`.

        Raises:
            PatchError: it does not fit.
        """
        apply(self.diff, folder)


def mutation(text: str, name: str) -> Mutation:
    """The mutation that `text`, the contents of a `.patch` file, describes.

    Raises:
        PatchError: it is not a patch, or touches what no mutation may.
    """
    diff, paths = normal(text)
    for path in paths:
        if not path.startswith(_PACKAGE) or ".." in path.split("/") or not path.endswith(".py"):
            raise PatchError(
                f"{path} is not a module of the package `lehr`", code="SIM112", fix="change only src/lehr"
            )
        if path.startswith(_JUDGE):
            raise PatchError(f"{path} is part of the judge", code="SIM113", fix="change what it judges")
    header = {
        word.lower(): _header_text(text, word) for word in ("Bug", "Thought", "Breaks", "Outside", "Found")
    }
    return Mutation(name, diff=diff, paths=paths, **header)


def _header_text(text: str, word: str) -> str:
    """The header's text under `word`, in one line."""
    header: list[str] = []
    current = ""
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if found := _WORD.match(line):
            current = found[1]
            line = f"# {found[2]}"  # noqa: PLW2901 - the rest of the line is read as the others
        if current == word:
            header.append(line[1:].strip())
    return " ".join(header)


def from_file(path: Path) -> Mutation:
    """The mutation in a file.

    Raises:
        PatchError: it cannot be read, is not a patch, or touches what no mutation may.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise PatchError(f"{path} cannot be read", code="SIM114", why=str(error)) from error
    return mutation(text, path.stem)


def planted(folder: Path = PLANTED) -> dict[str, Mutation]:
    """The mutations in `folder`, by name; none if there is no such folder.

    Raises:
        PatchError: one cannot be read, is not a patch, or touches what no mutation may.
    """
    return {path.stem: from_file(path) for path in sorted(folder.glob("*.patch"))}


def record(name: str, case: str, folder: Path = PLANTED) -> None:
    """Write into the header of the mutation `name` that `case` has found it."""
    path = folder / f"{name}.patch"
    header, files = path.read_text().split("--- ", 1)
    lines = [line for line in header.splitlines() if not line.startswith("# Found:")]
    path.write_text("\n".join([*lines, f"# Found: {case}", f"--- {files}"]))


def find(name: str, folder: Path = PLANTED) -> Mutation:
    """A mutation by its name in `folder`, or by its file.

    Raises:
        PatchError: there is none, or it is not one.
    """
    path = folder / f"{name}.patch"
    return from_file(path if path.is_file() else Path(name))
