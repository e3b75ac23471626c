"""One manifest of a hundred assets changed: from the commit to the published incarnation.

The real git source, generation worker, validators, publisher and store (WAL, synchronous=FULL), which know
all the rest. SIZE is the number of assets (100,000); a hundredth of that is measured in the same run, as
the peer: the cost is to follow the change, and not the size.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from benchmarks import figures, manifests
from benchmarks.generate_cold import Publishing, committed, git
from lehr.model.attempt import Publication
from lehr.wiring import STATE_FILE

CHANGES = 200
SMALLEST = 1000


async def changes(folder: Path, size: int) -> tuple[list[float], float]:
    """Seconds from each commit to its incarnation, and bytes stored for each asset that changed."""
    committed(folder / "intent", size)
    publishing = Publishing(folder / "intent", folder / "state")
    first = await publishing.refresh()
    assert first.publication is Publication.PUBLISHED, first.diagnostics[:3]
    before, seconds = await _stored(publishing), []
    for change in range(CHANGES):
        number = change % (size // manifests.PLACES)
        manifests.path(folder / "intent", number).write_text(manifests.manifest(number, change + 2))
        git(folder / "intent", "commit", "-am", f"change {change}")
        began = time.perf_counter()
        attempt = await publishing.refresh()
        seconds.append(time.perf_counter() - began)
        assert len(attempt.changed) == manifests.PLACES, f"{len(attempt.changed)} assets changed"
    grown = await _stored(publishing) - before
    await publishing.close()
    return seconds, grown / (CHANGES * manifests.PLACES)


async def _stored(publishing: Publishing) -> int:
    """Bytes of the state file, with all that was committed in it."""
    await publishing.committer.flush()
    return sum(path.stat().st_size for path in publishing.state.glob(f"{STATE_FILE}*"))


def main() -> None:
    """Print the figures."""
    size = figures.size(100_000)
    small = max(SMALLEST, size // 100)
    with tempfile.TemporaryDirectory() as name:
        few, _ = asyncio.run(changes(Path(name) / "few", small))
        many, bytes_each = asyncio.run(changes(Path(name) / "many", size))
    peer = figures.Peer(f"the same at {small:,} assets", figures.percentile(few, 50) * 1000)
    figures.report("p50", figures.percentile(many, 50) * 1000, "ms", size, peer=peer, changes=CHANGES)
    figures.report("p99", figures.percentile(many, 99) * 1000, "ms", size, changes=CHANGES)
    figures.report("stored", bytes_each, "bytes per changed asset", size)


if __name__ == "__main__":
    main()
