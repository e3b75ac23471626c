"""A plugin of Lehr: keeps one line of text in a file.

Replace `look` and `change` by what your production needs.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lehr.base.errors import StalledError, TransientError
from lehr.model.diff import NO_DIFF, Change, Diff, Goal, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.types import AssetType
from lehr.plugins.remote.server import serve
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits

TYPE = "example.Line"
MOST_SHOWN = 200


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The payload, as types/line-plugin.json declares it."""

    path: str
    text: str


class LinePlugin(AssetPlugin):
    types = (TYPE,)
    traits = Traits(goals=frozenset({Goal.ABSENT}))

    async def diff(self, target: Target, read: Reader) -> Diff:
        """How production differs from intent. It only looks."""
        line = read.payload(target.id, Line)
        intended, observed = self._intended(line, target.goal), look(Path(line.path))
        if intended == observed:
            return NO_DIFF
        return Diff((Change("text", shown(intended), shown(observed)),))

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Moves production to intent. It may be repeated at any time, even after it was killed half-way."""
        line = read.payload(target.id, Line)
        intended = self._intended(line, target.goal)
        if look(Path(line.path)) != intended:
            push.progress(f"writing {line.path}")
            change(Path(line.path), intended)
        return DONE

    def _intended(self, line: Line, goal: Goal) -> str | None:
        if goal is not Goal.PRESENT and goal not in self.traits.goals:
            raise StalledError(f"assets of type {TYPE} cannot be {goal}", fix="change the turndown")
        return f"{line.text}\n" if goal is Goal.PRESENT else None


def shown(content: str | None) -> str | None:
    """A content as a diff shows it. A diff is stored: no secrets, and nothing long."""
    return None if content is None else content.rstrip()[:MOST_SHOWN]


def look(file: Path) -> str | None:
    """The content of production; None for none."""
    with errors_of(file), contextlib.suppress(FileNotFoundError):
        return file.read_text(errors="replace")
    return None


def change(file: Path, content: str | None) -> None:
    with errors_of(file):
        if content is None:
            file.unlink(missing_ok=True)
        else:
            new = file.with_name(f".{file.name}.new")
            new.write_text(content)
            os.replace(new, file)  # a reader never sees half a line


@contextlib.contextmanager
def errors_of(file: Path) -> Iterator[None]:
    """`StalledError` waits for a person or new intent; `TransientError` is tried again."""
    try:
        yield
    except IsADirectoryError as error:
        raise StalledError(f"{file} is a directory", fix="move it away") from error
    except OSError as error:
        why, fix = str(error.strerror), "check the folder and its permissions"
        raise TransientError(f"{file} cannot be used", why=why, fix=fix) from error


if __name__ == "__main__":
    serve("line-plugin", lambda secrets: LinePlugin(), version="0.1.0", types=[AssetType(TYPE, Line)])
