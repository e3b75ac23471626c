"""The store by itself: publish, compare, read, and what it all takes on disk.

SIZE is the number of assets (100,000), of about 600 bytes each. Each figure has its floor, measured in the
same run: what plain SQLite, with the same durability (WAL, synchronous=FULL), takes to write or read the same
rows by one index. What the store does beyond that is the current state, its digest, and who claims what.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks import figures
from benchmarks.manifests import PLACES
from lehr.base.diagnostics import Position
from lehr.base.digest import digest_all
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.incarnation import Candidate, SourceRevision
from lehr.model.provenance import Derivation
from lehr.model.writes import Publish
from lehr.store.sqlite import SqliteStore

PARTITION = Partition("bench")
CHANGES = 200
"""Incarnations that are published after the first, of a hundred changed assets each."""

READS = 2000
TYPE = "lehr.File"
SEED = 1

Row = tuple[str, int, str, str, bytes]


def assets(number: int, version: int) -> list[Asset]:
    """What comes of one manifest: a hundred assets of about 600 bytes."""
    settings = {f"setting{item}": f"value-{item}-{number}-{version}" for item in range(13)}
    file = f"manifests/{number:06}.yaml"
    made_by = Derivation("generators/configurations.py:configurations", 10, "file", "manifests/*.yaml", file)
    made = []
    for place in range(PLACES):
        id = f"service{number:06}/cluster-{place:03}"
        content = "\n".join(f"{key} = cluster-{place:03}/{value}" for key, value in settings.items())
        payload = {"path": f"etc/{id}", "content": content}
        made.append(make_asset(AssetId(id), TYPE, payload, {}, Position(file), made_by))
    return made


def publish(store: SqliteStore, base: int, changed: Sequence[Asset], size: int) -> None:
    """The next incarnation."""
    revision = SourceRevision("bench", str(base))
    digest = digest_all(())
    candidate = Candidate(PARTITION, base, (revision,), digest, tuple(changed), (), {TYPE: size})
    claims: dict[AssetId, tuple[str, ...]] = {asset.id: (f"file:etc/{asset.id}",) for asset in changed}
    store.commit([Publish(candidate, {}, (), float(base), claims)])


class Plain:
    """The floor: the same rows in a table of their own, with one index."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = FULL")
        self.db.execute("CREATE TABLE version (id TEXT, sequence INTEGER, type TEXT, digest TEXT, body BLOB)")
        self.db.execute("CREATE UNIQUE INDEX version_key ON version (id, sequence)")

    def write(self, rows: Iterable[Row]) -> None:
        """All rows, durably."""
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany("INSERT INTO version VALUES (?, ?, ?, ?, ?)", rows)
        self.db.execute("COMMIT")

    def read(self, id: str, sequence: int) -> object:
        """One row as it was."""
        return self.db.execute(
            "SELECT * FROM version WHERE id = ? AND sequence <= ? ORDER BY sequence DESC LIMIT 1",
            (id, sequence),
        ).fetchone()


def bytes_in_use(path: Path) -> int:
    """Bytes of a SQLite file that hold something, with all that was committed and is not in the file yet."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        pages, free, size = (
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
    return int((pages - free) * size)


def rows(changed: Iterable[Asset], sequence: int) -> list[Row]:
    """Rows of the floor."""
    return [(asset.id, sequence, asset.type, asset.digest, asset.body) for asset in changed]


def timed(call: Callable[..., object], *arguments: object) -> float:
    """Seconds that a call takes."""
    began = time.perf_counter()
    call(*arguments)
    return time.perf_counter() - began


class Bench:
    """A store and its floor, filled alike."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self.size = size
        self.store = SqliteStore(folder / "state.sqlite", background=True)
        self.plain = Plain(folder / "plain.sqlite")
        self.sequence = 0
        self.chance = random.Random(SEED)

    def stored(self) -> int:
        """Bytes of the store's file that are in use."""
        return bytes_in_use(self.folder / "state.sqlite")

    def first(self) -> None:
        """The first incarnation: all assets."""
        everything = [asset for number in range(self.size // PLACES) for asset in assets(number, 1)]
        seconds = timed(publish, self.store, 0, everything, self.size)
        floor = timed(self.plain.write, rows(everything, 1))
        self.sequence = 1
        peer = figures.Peer("plain SQLite, the same rows", floor)
        figures.report("first", seconds, "s", self.size, peer=peer, per_second=round(self.size / seconds))

    def changes(self) -> None:
        """Two hundred more incarnations, each of one manifest that has changed."""
        ours, floor, canonical = [], [], 0
        before = self.stored()
        for _ in range(CHANGES):
            changed = assets(self.chance.randrange(self.size // PLACES), self.sequence + 1)
            canonical += sum(len(asset.body) for asset in changed)
            ours.append(timed(publish, self.store, self.sequence, changed, self.size))
            self.sequence += 1
            floor.append(timed(self.plain.write, rows(changed, self.sequence)))
        for percent in (50, 99):
            peer = figures.Peer("plain SQLite, the same rows", figures.percentile(floor, percent) * 1000)
            value = figures.percentile(ours, percent) * 1000
            figures.report(f"publish_100_p{percent}", value, "ms", self.size, peer=peer, changes=CHANGES)
        peer = figures.Peer("their canonical size", canonical / CHANGES / PLACES)
        grown = (self.stored() - before) / CHANGES / PLACES
        figures.report("stored", grown, "bytes per changed asset", self.size, peer=peer)

    def compare(self) -> None:
        """Neighbouring incarnations."""
        intent = self.store.intent

        def differences(sequence: int) -> int:
            return sum(1 for _ in intent.changes(PARTITION, sequence, sequence + 1))

        older = self.chance.choices(range(1, self.sequence), k=CHANGES)
        seconds = [timed(differences, sequence) for sequence in older]
        for percent in (50, 99):
            value = figures.percentile(seconds, percent) * 1000
            figures.report(f"compare_p{percent}", value, "ms", self.size, differences=PLACES)

    def read(self) -> None:
        """One asset at any incarnation."""
        keys = [(self._any_id(), self.chance.randint(1, self.sequence)) for _ in range(READS)]
        intent = self.store.intent
        ours = [timed(intent.asset, AssetKey(PARTITION, id), sequence) for id, sequence in keys]
        floor = [timed(self.plain.read, id, sequence) for id, sequence in keys]
        for percent in (50, 99):
            peer = figures.Peer("plain SQLite, the same row", figures.percentile(floor, percent) * 1000)
            value = figures.percentile(ours, percent) * 1000
            figures.report(f"read_p{percent}", value, "ms", self.size, peer=peer, reads=READS)

    def _any_id(self) -> AssetId:
        number, place = self.chance.randrange(self.size // PLACES), self.chance.randrange(PLACES)
        return AssetId(f"service{number:06}/cluster-{place:03}")


@contextlib.contextmanager
def bench(size: int) -> Iterator[Bench]:
    """In a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        opened = Bench(Path(name), size)
        try:
            yield opened
        finally:
            opened.store.close()
            opened.plain.db.close()


def main() -> None:
    """Print the figures."""
    with bench(figures.size(100_000)) as opened:
        opened.first()
        opened.changes()
        opened.compare()
        opened.read()


if __name__ == "__main__":
    main()
