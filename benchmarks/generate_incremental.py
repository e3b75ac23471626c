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
from typing import NamedTuple

from benchmarks import figures, manifests
from benchmarks.generate_cold import Publishing, committed, git
from benchmarks.store import bytes_in_use
from lehr.model.attempt import Publication
from lehr.wiring import STATE_FILE

CHANGES = 200
SMALLEST = 1000


class Taken(NamedTuple):
    """What the changes took.

    Attributes:
        seconds: from each commit to its incarnation.
        cpu: milliseconds of the processors for each, of all that takes part.
        stored: bytes for each asset that changed.
    """

    seconds: list[float]
    cpu: float
    stored: float


async def changes(folder: Path, size: int) -> Taken:
    """Change one manifest after the other."""
    committed(folder / "intent", size)
    publishing = Publishing(folder / "intent", folder / "state")
    first = await publishing.refresh()
    assert first.publication is Publication.PUBLISHED, first.diagnostics[:3]
    before, seconds, cpu = await _stored(publishing), [], 0.0
    for change in range(CHANGES):
        number = change % (size // manifests.PLACES)
        manifests.path(folder / "intent", number).write_text(manifests.manifest(number, change + 2))
        git(folder / "intent", "commit", "-am", f"change {change}")
        began, used = time.perf_counter(), publishing.cpu_seconds()
        attempt = await publishing.refresh()
        seconds.append(time.perf_counter() - began)
        cpu += publishing.cpu_seconds() - used
        assert len(attempt.changed) == manifests.PLACES, f"{len(attempt.changed)} assets changed"
    grown = await _stored(publishing) - before
    await publishing.close()
    return Taken(seconds, cpu / CHANGES * 1000, grown / (CHANGES * manifests.PLACES))


async def _stored(publishing: Publishing) -> int:
    """Bytes of the state file that are in use, with all that was committed."""
    await publishing.committer.flush()
    return bytes_in_use(publishing.state / STATE_FILE)


def main() -> None:
    """Print the figures."""
    size = figures.size(100_000)
    small = max(SMALLEST, size // 100)
    with tempfile.TemporaryDirectory() as name:
        few = asyncio.run(changes(Path(name) / "few", small))
        many = asyncio.run(changes(Path(name) / "many", size))
    the_same = f"the same at {small:,} assets"
    for percent in (50, 99):
        peer = figures.Peer(the_same, figures.percentile(few.seconds, percent) * 1000)
        value = figures.percentile(many.seconds, percent) * 1000
        figures.report(f"p{percent}", value, "ms", size, peer=peer, changes=CHANGES)
    figures.report("cpu", many.cpu, "ms", size, peer=figures.Peer(the_same, few.cpu))
    figures.report("stored", many.stored, "bytes per changed asset", size)


if __name__ == "__main__":
    main()
