"""The tables, and the checksums of their rows. Pure.

A checksum covers every column of its row, with the type of each value, so that a text in place of a blob is
as much damage as a changed byte. It detects accidental damage: a disk, a copy, an editor. Anyone who may
write the store can compute it.

A row with one part that changes much more often than the rest has a checksum for each part, so that each can
be written without reading the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

import msgspec

from lehr.model.damage import REBUILD, RESTORE, DamagedError

_encode = msgspec.msgpack.Encoder().encode

Row = tuple[Any, ...]


class Table:
    """Columns that share one checksum.

    Attributes:
        name: of the table.
        columns: the columns that the checksum covers.
        checksum: name of the column that holds it.
        insert: the statement that writes what `sealed` returns.
    """

    def __init__(
        self, name: str, *columns: str, description: str, fix: str = RESTORE, checksum: str = "checksum"
    ) -> None:
        """`description` names a row by its columns, in braces; `fix` is the remedy for a damaged row."""
        self.name = name
        self.columns = columns
        self.checksum = checksum
        self._description = description
        self._fix = fix
        part = name if checksum == "checksum" else f"{name}.{checksum}"
        self._seed = crc32(part.encode())
        marks = ", ".join("?" * (len(columns) + 1))
        self.insert = f"INSERT INTO {name} ({self.names()}) VALUES ({marks})"  # noqa: S608 - our own names

    def names(self, table: str = "") -> str:
        """The columns and the checksum, as `read` wants them. `table`: its alias in the statement."""
        prefix = f"{table}." if table else ""
        return ", ".join(f"{prefix}{name}" for name in (*self.columns, self.checksum))

    def sealed(self, *values: Any) -> Row:
        """The values of `columns` and their checksum."""
        return (*values, self._checksum(values))

    def read(self, row: Row) -> Row:
        """The values of an undamaged row, without its checksum.

        Raises:
            DamagedError: it is not.
        """
        values = row[:-1]
        try:
            # `_checksum`, without a call: a scan does this a million times.
            if crc32(_encode(values), self._seed).to_bytes(4, "big") == row[-1]:
                return values
        except UnicodeEncodeError:
            pass  # a text that no row was written with
        raise self.damaged(values)

    def is_intact(self, row: Row) -> bool:
        """Whether a row, which ends with its checksum, is as it was written."""
        try:
            self.read(row)
        except DamagedError:
            return False
        return True

    def _checksum(self, values: Row) -> bytes:
        return crc32(_encode(values), self._seed).to_bytes(4, "big")

    def read_all(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The values of each row, as `read`."""
        return map(self.read, rows)

    def damaged(self, values: Sequence[Any]) -> DamagedError:
        """The error that a row with these values is damaged."""
        shown = {name: _shown(value) for name, value in zip(self.columns, values, strict=True)}
        return DamagedError(self._description.format_map(shown), self.name, self._fix)


def _shown(value: object) -> str:
    """A value of a key, which may be damaged itself."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return text if text.isprintable() and len(text) <= 200 else repr(text[:200])


REPUBLISH = (
    "restore the state from a backup; or commit a change of this asset, which publishes it again: "
    "`lehr store check` lists all damage"
)

PARTITION = Table(
    "partition", "name", "newest", "governance", "controls", "releases", description="partition {name}"
)
LEASE = Table(
    "lease", "partition", "share", "owner", "epoch", "until", description="the lease of partition {partition}"
)
INCARNATION = Table(
    "incarnation",
    "partition",
    "sequence",
    "header",
    description="the header of incarnation {partition}@{sequence}",
)
PRUNED = Table(
    "incarnation",
    "partition",
    "sequence",
    "pruned",
    description="the record of whether incarnation {partition}@{sequence} was pruned",
    checksum="pruned_checksum",
)
VERSION = Table(
    "asset_version",
    "number",
    "partition",
    "id",
    "sequence",
    "type",
    "digest",
    "body",
    "origin",
    description="asset {id} of incarnation {partition}@{sequence}",
    fix=REPUBLISH,
)
CURRENT = Table(
    "asset_current",
    "partition",
    "id",
    "type",
    "digest",
    "bucket",
    "version",
    description="the current state of asset {id} of {partition}",
    fix=REPUBLISH,
)
BUCKET = Table(
    "bucket_current",
    "partition",
    "bucket",
    "digest",
    description="the digest of bucket {bucket} of {partition}",
)
MENTION = Table(
    "mention",
    "partition",
    "source",
    "path",
    "target",
    description="the reference of asset {source} of {partition} to {target}",
    fix=REBUILD,
)
MENTION_END = Table(
    "mention",
    "partition",
    "source",
    "until",
    description="the end of a reference of asset {source} of {partition}",
    fix=REBUILD,
    checksum="until_checksum",
)
CLAIM = Table(
    "claim_current",
    "partition",
    "claim",
    "asset",
    description="the claim of asset {asset} of {partition} to {claim}",
    fix=REBUILD,
)
ATTEMPT = Table(
    "attempt", "partition", "body", description="the last attempt of {partition} to read its source"
)
OPERATION = Table(
    "operation",
    "number",
    "id",
    "partition",
    "asset",
    "open",
    "body",
    description="operation {id} of asset {asset}",
)
RESERVATION = Table(
    "reservation", "key", "operation", "at", "until", description="the share of {key} that {operation} holds"
)
LEDGER = Table(
    "ledger",
    "partition",
    "asset",
    "content",
    "goal",
    "body",
    description="the ledger of asset {asset} of {partition}",
)
HANDLE = Table(
    "handle", "partition", "asset", "body", description="the handle of asset {asset} of {partition}"
)
OUTPUTS = Table(
    "outputs",
    "partition",
    "asset",
    "body",
    description="the record of the outputs of asset {asset} of {partition}",
)
DECISION = Table(
    "decision",
    "number",
    "partition",
    "asset",
    "body",
    "inputs",
    description="decision {number} on asset {asset}",
)
STANDING = Table(
    "standing",
    "partition",
    "asset",
    "key",
    "since",
    description="the time since which asset {asset} of {partition} has its condition",
)
CONDITION = Table(
    "standing",
    "partition",
    "asset",
    "condition",
    description="the condition of asset {asset} of {partition}",
    checksum="condition_checksum",
)
CONTROL = Table(
    "control",
    "number",
    "id",
    "partition",
    "lifted_at",
    "expires_at",
    "changed",
    "body",
    description="control {id}",
)
RELEASE = Table(
    "release",
    "number",
    "id",
    "partition",
    "asset",
    "target",
    "withdrawn_at",
    "changed",
    "body",
    description="release {id} of asset {asset}",
)
EVIDENCE = Table(
    "evidence",
    "number",
    "partition",
    "policy",
    "rollout",
    "at",
    "body",
    description="evidence {number} of rollout {rollout}",
)
AUDIT = Table("audit", "number", "partition", "body", description="entry {number} of the audit trail")
FEED = Table(
    "feed", "partition", "number", "at", "changes", description="entry {number} of the feed of {partition}"
)
IMPORTED = Table(
    "imported",
    "name",
    "at",
    "header",
    description="the header of the import {name}",
    fix="import it again from its file",
)
IMPORTED_ASSET = Table(
    "imported_asset",
    "name",
    "id",
    "type",
    "digest",
    "body",
    "origin",
    description="asset {id} of the import {name}",
    fix="import it again from its file",
)

TABLES = (
    PARTITION,
    LEASE,
    INCARNATION,
    PRUNED,
    VERSION,
    CURRENT,
    BUCKET,
    MENTION,
    MENTION_END,
    CLAIM,
    ATTEMPT,
    OPERATION,
    RESERVATION,
    LEDGER,
    HANDLE,
    OUTPUTS,
    DECISION,
    STANDING,
    CONDITION,
    CONTROL,
    RELEASE,
    AUDIT,
    FEED,
    IMPORTED,
    IMPORTED_ASSET,
)
