"""Regenerate the planted bugs after the code has moved.

Each planted bug is applied to the code of BASE, where it fitted; what it changed there is then carried
over to the code as it is now: by a three-way merge with the file (followed by git through a rename), or,
where code has moved to another file, by finding a hunk's old lines there. A rename of identifiers is
given as a codemod, which is run on both trees before they are compared.

    scripts/refit_mutants.py BASE [--codemod FILE] [--filter COMMAND] [NAME...]

FILE holds lines `regular expression<TAB>replacement`, applied to the old code and to the planted code.
COMMAND is a codemod that is a program: it reads a module and writes the changed one; its last
argument is the path.
Planted bugs that cannot be carried over are named, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from lehr.testing.sim.mutants.mutation import PLANTED, Mutation, from_file
from lehr.testing.sim.mutants.patch import PatchError

SRC = Path(__file__).parents[1] / "src"
_CONTEXTS = (3, 1)


def git(*arguments: str) -> str:
    """Output of a git command at the top of the repository."""
    return subprocess.run(
        ("git", *arguments), cwd=SRC.parent, check=True, capture_output=True, text=True
    ).stdout


@cache
def renames(base: str) -> dict[str, str]:
    """New path of each file below `src` that was renamed since `base`; both relative to `src`."""
    lines = git("diff", "--name-status", "-M40%", "--diff-filter=R", base, "--", "src").splitlines()
    pairs = [line.split("\t")[1:] for line in lines]
    return {old.removeprefix("src/"): new.removeprefix("src/") for old, new in pairs}


@cache
def old_text(base: str, path: str) -> str:
    """The file as it was at `base`."""
    return git("show", f"{base}:src/{path}")


def merged(new: str, old: str, planted: str) -> str | None:
    """`new` with what `planted` changes of `old`; None if both changed the same lines."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("new", "old", "planted")]
        for file, text in zip(files, (new, old, planted), strict=True):
            file.write_text(text)
        done = subprocess.run(
            ("git", "merge-file", "-p", "-q", *map(str, files)), capture_output=True, text=True, check=False
        )
    return done.stdout if done.returncode == 0 else None


@cache
def sources() -> tuple[Path, ...]:
    """All modules that a planted bug may change."""
    return tuple(path for path in SRC.rglob("*.py") if "lehr/testing/" not in path.as_posix())


def moved(blocks: Sequence[tuple[str, str]]) -> dict[str, str] | None:
    """The files that now hold the blocks' old lines, changed; None if a block is in none or several."""
    changed: dict[str, str] = {}
    for old, new in blocks:
        fits = {
            name: text.replace(old, new)
            for path in sources()
            if (text := changed.get(name := path.relative_to(SRC).as_posix()) or path.read_text()).count(old)
            == 1
        }
        if len(fits) != 1:
            return None
        changed |= fits
    return changed


def blocks(diff: Sequence[str]) -> list[tuple[str, str]]:
    """Old and new lines of each hunk of a unified diff of one file."""
    found: list[tuple[str, str]] = []
    for line in diff:
        if line.startswith("@@"):
            found.append(("", ""))
        elif found:
            old, new = found[-1]
            mark, text = line[:1], f"{line[1:]}\n"
            found[-1] = (old if mark == "+" else old + text, new if mark == "-" else new + text)
    return found


def planted(base: str, mutation: Mutation) -> dict[str, str]:
    """The files of a planted bug as they were at `base`, with the bug.

    Raises:
        PatchError: it did not fit there.
        subprocess.CalledProcessError: one of them was not there.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in mutation.paths:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(old_text(base, path))
        mutation.apply(folder)
        return {path: (folder / path).read_text() for path in mutation.paths}


def refit(base: str, mutation: Mutation, codemod: Callable[[str, str], str]) -> dict[str, str] | str:
    """The changed files of a planted bug, by path; or the one that cannot be carried over."""
    try:
        files = planted(base, mutation)
    except (PatchError, subprocess.CalledProcessError):  # made for code that is newer than `base`
        parts = re.split(r"^--- .*\n\+\+\+ .*\n", mutation.diff, flags=re.MULTILINE)[1:]
        found = moved([block for part in parts for block in blocks(part.splitlines())])
        return found or mutation.paths[0]
    changed: dict[str, str] = {}
    for path, text in files.items():
        result = carried(base, path, codemod(path, text), codemod)
        if result is None:
            return path
        changed |= result
    return changed


def carried(base: str, path: str, text: str, codemod: Callable[[str, str], str]) -> dict[str, str] | None:
    """The present files with the changes of `text` to the file at `base`; None if they fit nowhere."""
    before, new = codemod(path, old_text(base, path)), renames(base).get(path, path)
    if (SRC / new).is_file():
        present = (SRC / new).read_text()
        result = merged(present, before, text)
        if result is not None and result != present:
            return {new: result}
    for context in _CONTEXTS:
        lines = difflib.unified_diff(before.splitlines(), text.splitlines(), lineterm="", n=context)
        if result_of := moved(blocks(list(lines))):
            return result_of
    return None


def difference(path: str, after: str) -> str:
    """A unified diff from the file as it is to `after`."""
    before = (SRC / path).read_text()
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), path, path, lineterm="", n=_CONTEXTS[0]
    )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Refit the planted bugs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("base", metavar="BASE", help="commit at which the planted bugs fitted")
    parser.add_argument("--codemod", type=Path, metavar="FILE", help="renames: REGEX<TAB>REPLACEMENT lines")
    parser.add_argument("--filter", metavar="COMMAND", help="a program that changes a module")
    parser.add_argument("names", metavar="NAME", nargs="*", help="planted bugs; all unless given")
    options = parser.parse_intermixed_args()
    rules = [line.split("\t") for line in options.codemod.read_text().splitlines()] if options.codemod else []

    @cache
    def codemod(path: str, text: str) -> str:
        for pattern, replacement in rules:
            text = re.sub(pattern, replacement, text)
        if options.filter:
            command = (*shlex.split(options.filter), path)
            text = subprocess.run(command, input=text, check=True, stdout=subprocess.PIPE, text=True).stdout
        return text

    left = 0
    for patch in sorted(PLANTED.glob("*.patch")):
        if options.names and patch.stem not in options.names:
            continue
        mutation = from_file(patch)
        result = refit(options.base, mutation, codemod)
        if isinstance(result, str):
            print(f"{patch.stem}: {result} cannot be carried over", file=sys.stderr)
            left += 1
            continue
        header = patch.read_text().split("--- ", 1)[0]
        text = header + "".join(difference(path, after) for path, after in sorted(result.items()))
        if text != patch.read_text():
            patch.write_text(text)
            print(f"{patch.stem}: refitted")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
