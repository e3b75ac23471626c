"""One incarnation as one file, for backup, transfer or sharing.

In: a header and assets in order of id. Out: a file that shows whether it is complete and unchanged; and back.
Neither direction keeps more than one asset in memory.

The file is JSON, one document per line, compressed with gzip where it is large:

    {"format": "lehr-incarnation", "version": 1, "header": {...}}
    {"id": ..., "type": ..., "digest": ..., "body": {...}, "origin": {...}}     for each asset, by id
    {"assets": 2, "digest": ...}

`header` is an `Incarnation`; `body` holds exactly the bytes that the digest covers; `origin` records where
the asset was declared and made. The digest in the last line is the header's, recomputed. A reader ignores
fields that it does not know; a change that it must not ignore raises `version`.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from lehr.base.digest import Digest, canonical, digest_all, short
from lehr.base.errors import StalledError, raised_as
from lehr.model.asset import MAX_ASSET_BYTES, Asset, AssetId, id_problem, partition_problem
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import RunningMerkle
from lehr.model.origins import Origin, origin_bytes

FORMAT = "lehr-incarnation"
VERSION = 1

_COMPRESSED_ASSETS = 1000
"""A file with at least this many assets is large."""

_LONGEST_LINE = 4 * MAX_ASSET_BYTES
_GZIP = b"\x1f\x8b"
_NAME_ONE = "name a file that `lehr store export` wrote"


class ArchiveError(StalledError):
    """A file is not an incarnation, or not the one that its header claims."""

    def __init__(self, path: Path, why: str, fix: str = "export it again") -> None:
        super().__init__(f"{path} cannot be imported", code="STO101", why=why, fix=fix)


class _First(msgspec.Struct):
    format: str
    version: int
    header: msgspec.Raw


class _Line(msgspec.Struct):
    id: AssetId
    type: str
    digest: Digest
    body: msgspec.Raw
    origin: Origin = Origin()


class _Body(msgspec.Struct):
    addons: dict[str, Any]
    payload: Any
    versions: dict[str, int] = {}


class _Last(msgspec.Struct):
    assets: int
    digest: Digest


_first = msgspec.json.Decoder(_First)
_header = msgspec.json.Decoder(Incarnation)
_line = msgspec.json.Decoder(_Line | None)
_last = msgspec.json.Decoder(_Last)
_body = msgspec.json.Decoder(_Body)
_plain = msgspec.json.Decoder()


def write_archive(path: Path, header: Incarnation, assets: Iterable[Asset]) -> int:
    """Write an incarnation to `path`, which is replaced at the end. Returns its size in bytes.

    Raises:
        StalledError: the assets do not match the header's digest, or the file cannot be written.
    """
    half = path.with_name(f".{path.name}.half")
    compressed = header.assets >= _COMPRESSED_ASSETS or path.suffix == ".gz"
    try:
        with raised_as(StalledError, f"{path} cannot be written", code="STO102", fix="choose another path"):
            with half.open("wb") as raw:
                with _compressing(raw) if compressed else contextlib.nullcontext(raw) as file:
                    _write(file, header, assets)
                raw.flush()
                os.fsync(raw.fileno())
            half.replace(path)
            return path.stat().st_size
    finally:
        half.unlink(missing_ok=True)


def _compressing(raw: IO[bytes]) -> IO[bytes]:
    # Without a name and a time, equal incarnations make equal files.
    return cast(IO[bytes], gzip.GzipFile("", "wb", 6, raw, mtime=0))


def _write(file: IO[bytes], header: Incarnation, assets: Iterable[Asset]) -> None:
    encode = msgspec.json.encode
    file.write(encode({"format": FORMAT, "version": VERSION, "header": header}) + b"\n")
    merkle, count = RunningMerkle(), 0
    for asset in assets:
        origin = msgspec.Raw(origin_bytes(asset))
        line = {"id": asset.id, "type": asset.type, "digest": asset.digest, "body": msgspec.Raw(asset.body)}
        file.write(encode({**line, "origin": origin}) + b"\n")
        merkle.add(asset.id, asset.digest)
        count += 1
    found = merkle.digest()
    if (count, found) != (header.assets, header.digest):
        raise StalledError(
            f"incarnation {header.name} does not match its digest",
            code="STO103",
            why=f"it has {count} assets with digest {short(found)}, instead of {header.assets} with "
            f"digest {short(header.digest)}",
            fix="see `lehr store check`",
        )
    file.write(encode({"assets": count, "digest": found}) + b"\n")


class Archive:
    """Reads a file that `write_archive` wrote.

    Attributes:
        header: of the incarnation.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        """Read the first line of `file`, whose name is `path`.

        Raises:
            ArchiveError: it is not an incarnation, or its format is newer.
        """
        self._path = path
        self._file = file
        with self._explained():
            first = _first.decode(self._next())
            if first.format != FORMAT:
                raise ArchiveError(
                    path, f"it is a {first.format}", "name a file that `lehr store export` wrote"
                )
            if first.version > VERSION:
                raise ArchiveError(
                    path,
                    f"its format has version {first.version}, and this Lehr reads versions up to {VERSION}",
                    "import it with a newer Lehr",
                )
            self.header = _header.decode(first.header)
        # No digest covers the name, and the writer of a file can give everything else a digest that matches.
        why = partition_problem(self.header.partition)
        if why is not None or self.header.sequence < 1:
            raise ArchiveError(
                path, f"{self.header.name!r} cannot name an incarnation: {why or 'they count from 1'}"
            )

    def assets(self) -> Iterator[tuple[Asset, bytes]]:
        """Every asset by id, with its stored origin. Verified: the last only once all are known.

        Raises:
            ArchiveError: the file was changed, or is incomplete.
        """
        merkle, count, before = RunningMerkle(), 0, ""
        with self._explained():
            while (line := self._next()).startswith(b'{"id"'):
                item = _line.decode(line)
                assert item is not None
                if item.id <= before:
                    raise ArchiveError(self._path, f"asset {item.id} comes after {before}")
                yield self._asset(item)
                merkle.add(item.id, item.digest)
                count, before = count + 1, item.id
            last = _last.decode(line)
            expected = (self.header.assets, self.header.digest)
            if (last.assets, last.digest) != expected or (count, merkle.digest()) != expected:
                raise ArchiveError(self._path, "its assets do not match its digest")
            if self._file.read(1):
                raise ArchiveError(self._path, "there is data after its end")

    def _asset(self, item: _Line) -> tuple[Asset, bytes]:
        body = bytes(item.body)
        if digest_all((item.id, item.type, body.decode())) != item.digest:
            raise ArchiveError(self._path, f"asset {item.id} was changed: its digest differs")
        why = id_problem(item.id)
        if why is not None:
            raise ArchiveError(self._path, f"{item.id!r} cannot be the id of an asset: {why}")
        _body.decode(body)
        if canonical(_plain.decode(body)) != body:
            raise ArchiveError(self._path, f"asset {item.id} is not in the form that Lehr writes")
        origin = item.origin
        asset = Asset(
            item.id, item.type, body, item.digest, origin.position, origin.made_by, origin.annotated_by
        )
        return asset, origin_bytes(asset)

    def _next(self) -> bytes:
        line = self._file.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise ArchiveError(self._path, "the file is truncated" if line else "the file is incomplete")
        return line

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (msgspec.MsgspecError, UnicodeDecodeError, EOFError, OSError, zlib.error) as error:
            raise ArchiveError(self._path, f"it cannot be read: {error}") from error


@contextlib.contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """The incarnation in the file `path`, compressed or not.

    Raises:
        ArchiveError: the file does not hold one.
    """
    with contextlib.ExitStack() as stack:
        try:
            raw = stack.enter_context(path.open("rb"))
            compressed = raw.read(len(_GZIP)) == _GZIP
            raw.seek(0)
        except OSError as error:
            raise ArchiveError(path, error.strerror or str(error), _NAME_ONE) from error
        file = cast(IO[bytes], stack.enter_context(gzip.open(raw))) if compressed else raw
        yield Archive(path, file)
