"""Asking for assets: by id at any incarnation, by type, by a filter without an index, backwards; over HTTP.

SIZE is the number of assets (100,000), of about 600 bytes each. One in a hundred has a type of its own; a
hundred refer to one. Over HTTP, client and server are two processes of one machine; the connection is kept.
"""

from __future__ import annotations

import contextlib
import http.client
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks import figures
from benchmarks.echo import echoing
from benchmarks.manifests import PLACES
from benchmarks.store import PARTITION, assets, timed
from lehr.base.digest import digest_all
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.incarnation import Candidate, SourceRevision
from lehr.model.references import Mention
from lehr.model.writes import Publish
from lehr.query.asset_pages import Wanted, page
from lehr.query.filters import Filter
from lehr.query.partition_view import Reading
from lehr.query.referrers import referrers
from lehr.store.sqlite import SqliteStore
from lehr.wiring import STATE_FILE

RARE = "bench.Rare"
READS = 2000
ASKED = 500
PUBLISHED_AT_ONCE = 1000  # manifests
CHANGES = 50
SEED = 1


def made(number: int, version: int) -> list[Asset]:
    """What comes of one manifest; its first asset is of the rare type."""
    first, *rest = assets(number, version)
    return [make_asset(first.id, RARE, first.document()["payload"], {}, first.origin), *rest]


def publish(store: SqliteStore, base: int, changed: list[Asset]) -> None:
    """The next incarnation. All of the first hundred manifests' first assets refer to the very first."""
    candidate = Candidate(
        PARTITION, base, (SourceRevision("bench", str(base)),), digest_all(()), tuple(changed), ()
    )
    target = AssetId("service000000/cluster-001")
    mentions: dict[AssetId, tuple[Mention, ...]] = {
        asset.id: (Mention("/payload/to", target, ()),)
        for asset in changed
        if asset.type == RARE and asset.id < f"service{PLACES:06}"
    }
    store.commit([Publish(candidate, mentions, (), float(base))])


class Client:
    """One connection, which is kept."""

    def __init__(self, url: str, root: str = f"/v1/partitions/{PARTITION}") -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc)
        self._root = root

    def get(self, target: str) -> bytes:
        """Ask for something below the root."""
        self._connection.request("GET", f"{self._root}{target}")
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(content.decode())
        return content

    def close(self) -> None:
        self._connection.close()


class Bench:
    """A store that is filled, in some incarnations."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder = folder
        self.size = size
        self.chance = random.Random(SEED)
        self.store = SqliteStore(wired(folder), background=True)
        self.sequence = 0
        manifests = range(size // PLACES)
        for begin in range(0, len(manifests), PUBLISHED_AT_ONCE):
            some = manifests[begin : begin + PUBLISHED_AT_ONCE]
            self._publish([asset for number in some for asset in made(number, 1)])
        self.first = self.sequence
        for _ in range(CHANGES):
            self._publish(made(self.chance.choice(manifests), self.sequence + 1))

    def _publish(self, changed: list[Asset]) -> None:
        publish(self.store, self.sequence, changed)
        self.sequence += 1

    def any_id(self) -> AssetId:
        number, place = self.chance.randrange(self.size // PLACES), self.chance.randrange(PLACES)
        return AssetId(f"service{number:06}/cluster-{place:03}")

    def here(self) -> None:
        """In this process."""
        reading = Reading(self.store, PARTITION, 0.0, lambda type: False)
        intent = self.store.intent
        keys = [
            (AssetKey(PARTITION, self.any_id()), self.chance.randint(self.first, self.sequence))
            for _ in range(READS)
        ]
        seconds = [timed(intent.asset, key, sequence) for key, sequence in keys]
        figures.report("get_p99", figures.percentile(seconds, 99) * 1000, "ms", self.size, reads=READS)
        rare = Wanted(Filter(f"type == '{RARE}'"))
        self._best("list_1000_by_type", "ms", lambda: page(reading, rare, limit=1000))
        everywhere = Wanted(Filter("payload.content.contains('value-3-7-')"))
        self._best("filter_all", "s", lambda: page(reading, everywhere), times=2)
        floor = min(timed(lambda: sum(1 for _ in intent.assets(PARTITION, self.sequence))) for _ in range(2))
        figures.report("read_all", floor, "s", self.size, why="the floor of filter_all")

        def behind(id: AssetId) -> list[tuple[AssetId, str]]:
            return intent.mentioned_by(AssetKey(PARTITION, id))

        target = AssetId("service000000/cluster-001")
        self._best("referrers", "ms", lambda: list(referrers(behind, target)))

    def over_http(self, url: str) -> None:
        """From another process; beside it, in turn, a server that does nothing else, which is the floor."""
        targets = [f"/assets/{quote(self.any_id())}" for _ in range(ASKED)]
        one, many = "/assets?limit=1", "/assets?limit=10000"
        with contextlib.closing(Client(url)) as here:
            here.get(targets[0])
            with echoing(len(here.get(targets[0]))) as bare, contextlib.closing(Client(bare)) as floor:
                seconds = [(timed(here.get, target), timed(floor.get, one)) for target in targets]
            for percent in (50, 99):
                own, least = (
                    figures.percentile(column, percent) * 1000 for column in zip(*seconds, strict=True)
                )
                peer = figures.Peer("an answer of the same size by bare asyncio", least)
                figures.report(f"http_get_p{percent}", own, "ms", self.size, peer=peer, reads=ASKED)
            content = here.get(many)
            with echoing(len(content)) as bare, contextlib.closing(Client(bare)) as floor:
                listed = [(timed(here.get, many), timed(floor.get, many)) for _ in range(5)]
            own, least = (min(column) * 1000 for column in zip(*listed, strict=True))
            peer = figures.Peer("an answer of the same size by bare asyncio", least)
            figures.report("http_list_10000", own, "ms", self.size, peer=peer, bytes=len(content))

    def _best(self, figure: str, unit: str, call: Callable[[], object], times: int = 5) -> None:
        best = min(timed(call) for _ in range(times))
        figures.report(figure, best * 1000 if unit == "ms" else best, unit, self.size, best_of=times)


def wired(folder: Path) -> Path:
    """Where the state folder has its store."""
    return folder / STATE_FILE


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """`lehr serve` over a state folder; its URL."""
    command = [
        sys.executable,
        "-m",
        "lehr",
        "serve",
        "--state",
        str(folder),
        "--listen",
        "127.0.0.1:0",
        "--public-read",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = (re.search(r"serving at (http://\S+)", line) for line in process.stderr)
            yield next(match[1] for match in found if match)
        finally:
            process.terminate()


def main() -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        began = time.perf_counter()
        bench = Bench(folder, figures.size(100_000))
        print(f"filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
        try:
            bench.here()
            with serving(folder) as url:
                bench.over_http(url)
        finally:
            bench.store.close()


if __name__ == "__main__":
    main()
