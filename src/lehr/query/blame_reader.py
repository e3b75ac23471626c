"""Sources of blame: versions of assets, and files of past revisions."""

from __future__ import annotations

from lehr.base.diagnostics import Position
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.incarnation import Incarnation
from lehr.model.selector import selector_of
from lehr.query.blame_fields import Field, value_at
from lehr.query.blame_values import Source
from lehr.query.joined import History, Past, past_of
from lehr.query.partition_view import Reading
from lehr.sdk.source import FileEntry
from lehr.sdk.store import PrunedError

_LONGEST = 160  # characters of a line


class BlameReader:
    """Versions of assets, and files of the revisions that they were made from.

    Attributes:
        header: of the incarnation that is asked about.
    """

    def __init__(self, reading: Reading, history: History, header: Incarnation) -> None:
        self.header = header
        self._reading = reading
        self._history = history
        self._pasts: dict[int, Past | None] = {}

    def asset(self, id: AssetId) -> Asset | None:
        """The asset as it is in the incarnation; None if it is not there."""
        return self._reading.intent.asset(AssetKey(self._reading.partition, id), self.header.sequence)

    def assets(self, of: str) -> list[AssetId]:
        """Ids of the assets that a generator reads, which are `of` a type, or of a selector."""
        selector = selector_of(of)
        types = tuple(filter(selector.may_match, self.header.types)) or None
        found = self._reading.intent.assets(self._reading.partition, self.header.sequence, types)
        return [asset.id for asset in found if selector.matches(asset)]

    def since(self, id: AssetId, field: Field | None = None) -> int:
        """The incarnation from which on the asset, or the value of a field of it, has been as it is."""
        key = AssetKey(self._reading.partition, id)
        since, digest = self.header.sequence, None
        for sequence, asset in self._reading.intent.versions(key, self.header.sequence):
            if asset is None:
                break
            if field is None and digest not in (None, asset.digest):
                break
            if field is not None and value_at(asset.document(), field.parts) != field:
                break
            since, digest = sequence, asset.digest
        return since

    def pruned_before(self, sequence: int) -> bool:
        """Whether the incarnation before `sequence` can no longer be read."""
        try:
            self._reading.intent.require_kept(self._reading.partition, sequence - 1)
        except PrunedError:
            return True
        return False

    def past(self, sequence: int) -> Past | None:
        """The past that the incarnation was made from; None if it was not kept."""
        if sequence not in self._pasts:
            header = self._reading.intent.incarnation(self._reading.partition, sequence)
            self._pasts[sequence] = past_of(() if header is None else header.sources, self._history)
        return self._pasts[sequence]

    def source(self, at: Position, since: int, *, same: bool = False) -> Source:
        """A place as it is at the incarnation asked about, or else as it was at `since`.

        Args:
            same: `at` has a line that was noted at `since`, and means nothing in a file that differs.
        """
        newest, then = self.past(self.header.sequence), self.past(since)
        stale = same and _content(newest, at.file) != _content(then, at.file)
        return self.at(at, since if stale or entry_of(newest, at.file) is None else self.header.sequence)

    def at(self, at: Position, sequence: int) -> Source:
        """A place as it is at an incarnation."""
        past = self.past(sequence)
        entry = entry_of(past, at.file)
        if past is None or entry is None:
            return Source(at, sequence)
        text = _line(past.read(at.file), at.line)
        return Source(at, sequence, text, entry.content_id, past.last_change(at.file, at.line))


def entry_of(past: Past | None, file: str) -> FileEntry | None:
    """The file as it is in `past`; None if it is not there."""
    return None if past is None else past.files().get(file)


def _content(past: Past | None, file: str) -> str:
    entry = entry_of(past, file)
    return "" if entry is None else entry.content_id


def _line(content: bytes, line: int) -> str:
    if not line:
        return ""
    lines = content.decode(errors="replace").split("\n")
    return lines[line - 1].strip()[:_LONGEST] if line <= len(lines) else ""
