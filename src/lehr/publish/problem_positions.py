"""Finds the source lines of problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Excerpt, Position, errors
from lehr.generate.outcome.problem_list import reported
from lehr.generate.typing.asset_files import place_of
from lehr.model.asset import Asset
from lehr.sdk.source import Snapshot
from lehr.validate import known_secret, masked

_MOST = 50
"""Maximum number of exact lookups and quoted files; each costs reading a file again."""

_LONGEST = 160  # characters of a line

_AROUND = 2_000
"""Characters before and after the shown text in which the rest of a secret may be."""


class Locator:
    """`lehr.validate.Locate` over the files of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._left = _MOST

    def __call__(self, asset: Asset, pointer: str) -> Position | None:
        """The place of the value at `pointer` of `asset`; None when it is not known."""
        if asset.origin is None or not self._left:
            return None
        self._left -= 1
        try:
            content = self._snapshot.read(asset.origin.file)
        except Exception:  # any failure of a source
            return None  # no longer declared in that file: the asset's own position will do
        return place_of(asset.origin.file, content, asset.id, pointer)


def with_excerpts(diagnostics: Iterable[Diagnostic], snapshot: Snapshot) -> tuple[Diagnostic, ...]:
    """`diagnostics`, each with the line of `snapshot` that it points to, unless that is confidential.

    Validation searches values for secrets only if everything else is correct. So this checks each line, and
    the quotes in problems. If there are more problems than anyone would read, the last diagnostic reports it.
    """
    found = reported(tuple(diagnostics))
    hidden = {(item.at.file, item.at.line) for item in found if item.confidential and item.at is not None}
    worst_first = (item.at for item in (*errors(found), *found))
    files = list(dict.fromkeys(at.file for at in worst_first if at is not None and at.line))
    lines = {file: _lines(snapshot, file) for file in files[:_MOST]}
    return tuple(
        replace(
            item,
            what=masked(item.what),
            why=masked(item.why),
            fix=masked(item.fix),
            excerpt=None if _line(item.at) in hidden else _excerpt(item.at, lines),
        )
        for item in found
    )


def _line(at: Position | None) -> tuple[str, int] | None:
    return None if at is None else (at.file, at.line)


def _lines(snapshot: Snapshot, file: str) -> list[str]:
    try:
        return snapshot.read(file).decode(errors="replace").split("\n")
    except Exception:  # any failure of a source
        return []  # it is missing, which may be the problem


def _excerpt(at: Position | None, files: Mapping[str, Sequence[str]]) -> Excerpt | None:
    lines = files.get(at.file, ()) if at is not None else ()
    if at is None or not 0 < at.line <= len(lines):
        return None
    line = lines[at.line - 1].rstrip("\r")
    first = max(0, at.column - _LONGEST // 2) if len(line) > _LONGEST else 0
    if known_secret(line[max(0, first - _AROUND) : first + _LONGEST + _AROUND]) is not None:
        return None
    return Excerpt(line[first : first + _LONGEST], at.column - 1 - first if at.column else None)
