"""Watches a state folder from the outside, remembers what it saw, and finds what is not so any more.

Nothing is judged here by what the program says of itself: what was published, what was begun and
what production holds is compared with what the witness and the author wrote down themselves.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from lehr.base.digest import Digest
from lehr.base.errors import LehrError
from lehr.cli.stored import open_reading
from lehr.model.asset import Asset, AssetId
from lehr.model.attempt import Publication
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import incarnation_digest
from lehr.model.operation import LedgerEntry, Operation
from lehr.query.asset_rows import rows
from lehr.query.partition_view import Reading
from lehr.query.wait_conditions import not_converged
from tests.faults.rounds import CONVERGES
from tests.faults.shop import Shop

_ALL = 1_000_000
_LOOK = 0.05
_IN_FORCE = (Publication.PUBLISHED, Publication.UNCHANGED)


class Witness:
    """Remembers all that it has ever seen of the state in a folder.

    Args:
        dated: False when the clock is moved, so that dates of operations cannot be compared.
    """

    def __init__(self, state: Path, *, dated: bool = True) -> None:
        self._state = state
        self._dated = dated
        self._published: dict[int, Digest] = {}
        self._operations: dict[str, Operation] = {}
        self._ledgers: dict[AssetId, LedgerEntry] = {}
        self._interrupted: set[str] = set()

    @property
    def told(self) -> str:
        """How much it has seen."""
        pushes = f"{len(self._operations)} pushes, {len(self._interrupted)} of them interrupted"
        return f"{len(self._published)} incarnations, {pushes}"

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Reading | None]:
        try:
            with open_reading(self._state) as reading:
                yield reading
        except LehrError:
            assert not self._published, "what was published can no longer be read"
            yield None

    # --- what is so at any moment ---------------------------------------------------------

    def look(self) -> None:
        """See what is there now. What was seen before must still be there, as it was."""
        with self._reading() as reading:
            if reading is not None:
                self._see_incarnations(reading)
                self._see_operations(reading)
                self._see_ledgers(reading)

    def interrupted(self) -> None:
        """Look while no program runs: the pushes that are open now were interrupted."""
        self.look()
        self._interrupted |= {item.id for item in self._operations.values() if item.open}

    def pushing(self, id: str) -> bool:
        """Whether a push of the asset is open."""
        with self._reading() as reading:
            open_ones = [] if reading is None else reading.records.open_operations(reading.partition)
            return any(item.asset == id for item in open_ones)

    def _see_incarnations(self, reading: Reading) -> None:
        found = {item.sequence: item for item in reading.intent.incarnations(reading.partition, _ALL)}
        assert sorted(found) == list(range(1, len(found) + 1))
        for sequence, digest in self._published.items():
            assert sequence in found, f"incarnation {sequence} is lost"
            assert found[sequence].digest == digest, f"incarnation {sequence} is another"
        for sequence in found.keys() - self._published.keys():
            self._published[sequence] = found[sequence].digest
            self.is_whole(found[sequence], list(reading.intent.assets(reading.partition, sequence)))

    def is_whole(self, incarnation: Incarnation, assets: Sequence[Asset]) -> None:
        """Its digest is that of its assets."""
        assert incarnation_digest((item.id, item.digest) for item in assets) == incarnation.digest

    def _see_operations(self, reading: Reading) -> None:
        found = {item.id: item for item in reading.records.operations(reading.partition, limit=_ALL)}
        for id, before in self._operations.items():
            assert id in found, f"operation {id} is lost"
            assert before.open or found[id] == before, f"operation {id} had ended: {before}, {found[id]}"
        self._operations = found

    def _see_ledgers(self, reading: Reading) -> None:
        found = {item.asset: item for item in reading.records.ledgers(reading.partition)}
        for id, before in self._ledgers.items():
            assert id in found, f"what was applied of {id} is forgotten"
            assert found[id].content >= before.content, f"{id} went back: {before}, {found[id]}"
        self._ledgers = found

    # --- what is so at rest ----------------------------------------------------------------

    def left(self, commit: str) -> list[str]:
        """What is not yet as `commit` says, for people."""
        with self._reading() as reading:
            if reading is None:
                return ["nothing is published"]
            attempt = reading.records.attempt(reading.partition)
            passed = attempt is not None and attempt.publication in _IN_FORCE
            if attempt is None or not passed or commit not in {item.revision for item in attempt.sources}:
                return [f"{commit} is not in force: {attempt}"]
            left = not_converged(reading, rows(reading))
            open_ones = reading.records.open_operations(reading.partition)
            return [f"{row.id}: {row.status} {row.reason} {row.message}" for row in left] + [
                f"{item.id} of {item.asset} is open" for item in open_ones
            ]

    def rests(self) -> bool:
        """Look, and say whether no push is under way: of what was seen then, `judge` may be asked."""
        self.look()
        return not any(operation.open for operation in self._operations.values())

    def judge(self) -> None:
        """Of what was seen last, at rest: nothing is open, and there was one push at a time of each asset."""
        by_asset = defaultdict[AssetId, list[Operation]](list)
        for operation in sorted(self._operations.values(), key=lambda item: item.started_at):
            assert not operation.open, f"{operation} is open"
            by_asset[operation.asset].append(operation)
        for pushes in by_asset.values():
            for one, other in itertools.pairwise(pushes):
                assert one.ended_at is not None
                one_by_one = one.ended_at <= other.started_at or not self._dated
                assert one_by_one, f"two pushes at a time: {one}, {other}"


class ShopWitness(Witness):
    """Knows what its author wrote, and what production is to hold."""

    def __init__(self, shop: Shop, *, dated: bool = True) -> None:
        super().__init__(shop.state, dated=dated)
        self._shop = shop

    @property
    def told(self) -> str:
        return f"{super().told}, {len(self._shop.words)} freezes"

    def look(self) -> None:
        with self._shop.editing:
            super().look()

    def is_whole(self, incarnation: Incarnation, assets: Sequence[Asset]) -> None:
        """Its assets are what one commit declares, too."""
        super().is_whole(incarnation, assets)
        commits = {source.revision for source in incarnation.sources}
        [edition] = [item for item in self._shop.editions if item.commit in commits]
        payloads = {item.id: item.document()["payload"] for item in assets}
        for id, content in edition.contents.items():
            assert payloads[AssetId(id)].get("content") in (content, None), f"{id} of {incarnation.name}"

    def converged(self) -> float:
        """Wait until all is as the last commit says; returns the seconds that took."""
        began = time.monotonic()
        while left := self.left(self._shop.editions[-1].commit):
            seconds = time.monotonic() - began
            assert seconds < CONVERGES, f"in {CONVERGES:g} s it did not converge:\n" + "\n".join(left)
            time.sleep(_LOOK)
        return time.monotonic() - began

    def judge(self) -> None:
        """Production is as intended, too, and no command ran beside itself or went back."""
        self.look()
        super().judge()
        assert self._shop.produced() == self._shop.intended()
        assert not self._shop.violations.exists(), self._shop.violations.read_text()
        for journal in self._shop.folder.glob("*.journal"):
            serials = [int(line) for line in journal.read_text().split()]
            assert serials == sorted(serials), f"{journal.stem} went back: {serials}"
        self._words_are_kept()
        self._shop.settled()

    def _words_are_kept(self) -> None:
        with self._reading() as reading:
            assert reading is not None
            _version, controls = reading.records.controls(reading.partition, reading.now)
        kept = {control.reason for control in controls}
        assert kept.issuperset(self._shop.words), "a freeze that was acknowledged is lost"
