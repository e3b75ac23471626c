"""A plugin that keeps one line of text in a file, as a program."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from lehr.base.digest import digest_bytes, short
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Change, Diff, Goal, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.outputs import OutputNames
from lehr.model.secret import Secret
from lehr.model.types import AssetType
from lehr.plugins.remote.server import serve
from lehr.sdk.plugin import AssetPlugin, Found, IndexedDiff, Push, Reader, Traits
from lehr.sdk.secrets import Secrets
from lehr.sdk.target_selection import SelectionAnswer, SelectionQuestion, TargetSelector


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of text at `path`.

    Attributes:
        secret: appended to the text.
        other: another line, whose text is appended.
        size_of: another line, whose size is appended.
    """

    path: str
    text: str
    secret: Secret | None = None
    other: str = ""
    size_of: str = ""


TYPES = (AssetType("example.Line", Line),)


class LinePlugin(AssetPlugin):
    """Keeps lines."""

    types = ("example.Line",)
    traits = Traits(goals=frozenset({Goal.ABSENT}), turns=3, resync=120.0)
    outputs: ClassVar[Mapping[str, OutputNames]] = {"example.Line": OutputNames(stable=frozenset({"size"}))}

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    async def diff(self, target: Target, read: Reader) -> Diff:
        """Compare the file."""
        line = read.payload(target.id, Line)
        intended, observed = await self._intended(line, target.goal, read), self._observed(line)
        outputs = {} if observed is None else {"size": len(observed)}
        if intended == observed:
            return Diff(outputs=outputs)
        return Diff((Change("text", _described(intended), _described(observed)),), outputs=outputs)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        """Write the file."""
        line = read.payload(target.id, Line)
        intended, path = await self._intended(line, target.goal, read), Path(line.path)
        push.progress("writing")
        with _errors_of(path):
            if intended is None:
                os.remove(path) if self._observed(line) is not None else None
            elif intended != self._observed(line):
                path.with_suffix(".new").write_bytes(intended)
                os.replace(path.with_suffix(".new"), path)
        return DONE

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        """Lines in folders."""
        for path in _files(query):
            text = _text(path).removesuffix("\n")
            yield Found(id=path.name, type="example.Line", payload={"path": str(path), "text": text})

    async def _intended(self, line: Line, goal: Goal, read: Reader) -> bytes | None:
        if goal is not Goal.PRESENT and goal not in self.traits.goals:
            raise StalledError(f"a line cannot be {goal}")
        text = line.text
        if line.secret is not None:
            text += (await self._secrets.read(line.secret)).text()
        if line.other:
            text += read.payload(AssetId(line.other), Line).text
        if line.size_of:
            text += str(read.output(AssetId(line.size_of), "size"))
        return f"{text}\n".encode() if goal is Goal.PRESENT else None

    def _observed(self, line: Line) -> bytes | None:
        with _errors_of(Path(line.path)), contextlib.suppress(FileNotFoundError):
            return Path(line.path).read_bytes()
        return None


def _files(folders: Sequence[str]) -> list[Path]:
    return sorted(path for folder in folders for path in Path(folder).iterdir())


def _text(path: Path) -> str:
    with _errors_of(path):
        return path.read_text()


def _described(text: bytes | None) -> str | None:
    return None if text is None else f"{len(text)} bytes, digest {short(digest_bytes(text))}"


@contextlib.contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except IsADirectoryError as error:
        raise StalledError(f"{path} is a directory", fix="remove it by hand") from error
    except OSError as error:
        raise TransientError(f"{path} cannot be kept", why=str(error.strerror)) from error


class BatchingLinePlugin(LinePlugin):
    """Compares many lines in one call."""

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        """All but every third, the last first."""
        for index in reversed(range(len(requests))):
            if index % 3:
                try:
                    yield index, await self.diff(*requests[index])
                except LehrError as error:
                    yield index, error


class OneByOne(TargetSelector):
    """Updates one unit after the other, in the order of a label."""

    def select(self, question: SelectionQuestion) -> SelectionAnswer:
        """The first candidate, if there is room for it."""
        label = question.selection.get("by", "id")
        ordered = sorted(question.candidates, key=lambda unit: (unit.labels.get(label, ""), unit.id))
        update = tuple(unit.id for unit in ordered[: min(1, question.room)])
        others = {unit.id: "another one is first" for unit in question.units if unit.id not in update}
        return SelectionAnswer(update=update, others=others)


if __name__ == "__main__":
    made = BatchingLinePlugin if "batching" in sys.argv else LinePlugin
    serve("lines", made, version="1.2", types=TYPES, selections={"one-by-one": OneByOne()})
