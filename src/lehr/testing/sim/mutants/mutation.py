"""A mutation, its description, and those that come with Lehr."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from lehr.testing.sim.mutants.patch import FilePatch, PatchError, read

PATCHES = Path(__file__).parent / "patches"

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
        found: the case that last found it, played first: `seed 17`, `scenario NAME`, `test tests/...`.
        files: its changes; paths begin with `lehr/`.
    """

    name: str
    bug: str
    thought: str
    breaks: str
    outside: str
    found: str
    files: tuple[FilePatch, ...]

    def apply(self, folder: Path) -> None:
        """Change the copy of the package in `folder`.

        Raises:
            PatchError: it does not fit, or changes nothing.
        """
        for file in self.files:
            path = folder / file.path
            if not path.is_file():
                raise PatchError(f"there is no file {file.path}", fix="name the file as in the repository")
            before = path.read_text()
            after = file.applied(before)
            if after == before:
                raise PatchError(f"{file.path} is the same with the patch and without")
            path.write_text(after)


def mutation(text: str, name: str) -> Mutation:
    """The mutation that `text`, the contents of a `.patch` file, describes.

    Raises:
        PatchError: it is not a patch, or touches what no mutation may.
    """
    files = read(text)
    for file in files:
        parts = file.path.split("/")
        if not file.path.startswith(_PACKAGE) or ".." in parts or not file.path.endswith(".py"):
            raise PatchError(f"{file.path} is no module of the package `lehr`", fix="change src/lehr alone")
        if file.path.startswith(_JUDGE):
            raise PatchError(f"{file.path} is of those that judge", fix="change what they judge")
    said = {word.lower(): _said(text, word) for word in ("Bug", "Thought", "Breaks", "Outside", "Found")}
    return Mutation(name, files=files, **said)


def _said(text: str, word: str) -> str:
    """The header's text under `word`, in one line."""
    said: list[str] = []
    current = ""
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        if found := _WORD.match(line):
            current = found[1]
            line = f"# {found[2]}"  # noqa: PLW2901 - the rest of the line is read as the others
        if current == word:
            said.append(line[1:].strip())
    return " ".join(said)


def from_file(path: Path) -> Mutation:
    """The mutation in a file.

    Raises:
        PatchError: it cannot be read, is not a patch, or touches what no mutation may.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise PatchError(f"{path} cannot be read", why=str(error)) from error
    return mutation(text, path.stem)


def shipped() -> dict[str, Mutation]:
    """The mutations that come with Lehr, by name."""
    return {path.stem: from_file(path) for path in sorted(PATCHES.glob("*.patch"))}


def record(name: str, case: str) -> None:
    """Write down in the header of a mutation that comes with Lehr that `case` has found it."""
    path = PATCHES / f"{name}.patch"
    header, files = path.read_text().split("--- ", 1)
    lines = [line for line in header.splitlines() if not line.startswith("# Found:")]
    path.write_text("\n".join([*lines, f"# Found: {case}", f"--- {files}"]))


def find(name: str) -> Mutation:
    """A mutation by its name, or by its file.

    Raises:
        PatchError: there is none, or it is not one.
    """
    shipped_here = PATCHES / f"{name}.patch"
    return from_file(shipped_here if shipped_here.is_file() else Path(name))
