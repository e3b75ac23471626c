"""Steps of the Strategist over many governed assets, of which few or none have to be pushed.

The real Strategist, and a store as pushes leave it; there is no Enforcer. One policy governs every asset. For
1,000 and 10,000 assets, and for SIZE (100,000) of them:

- `baselines`: the policy comes into force, and all assets are released to what they have. The floor is bare
  commits of the same writes to a fresh store; `longest_step` and `longest_commit` are in milliseconds.
- `idle`: a step with nothing to do. The floor is one look for new evidence.
- `changed`: the first step after 1,000 assets have changed, which begins a rollout. `released`: the next one,
  which releases all of them. `watched`: one that looks at them later. The floor is one read of what has
  changed, and of what is recorded of each of these assets.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks import figures
from benchmarks.enforce_push import PARTITION, TYPE, Nothing, Payload, enforcer, ids, registry, replay
from benchmarks.files import Spent
from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.clock import SystemClock
from lehr.base.digest import Digest
from lehr.enforce.committer import Committer
from lehr.enforce.governance import load
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import Goal
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.incarnation import Candidate
from lehr.model.operation import LedgerEntry
from lehr.model.reason import Reason
from lehr.model.release import NO_RELEASES
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.model.writes import Adopt, Publish, RecordDecision, Write, WriteReleases
from lehr.rollouts.policy import ROLLOUT_POLICY_TYPE, RolloutPolicy
from lehr.rollouts.waves import TargetSelection, Wave
from lehr.sdk.runtime import Runtime
from lehr.store.sqlite import SqliteStore
from lehr.strategist.strategist import Strategist

CHANGED = 1000
_GOVERNING = (ROLLOUT_POLICY,)
_STEPS = 9

T = TypeVar("T")


def timed(call: Callable[[], T]) -> tuple[Spent, T]:
    """Milliseconds of a call, and what it returned."""
    began, used = time.perf_counter(), time.process_time()
    value = call()
    return Spent((time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000), value


def middle(found: Sequence[Spent]) -> Spent:
    """The median of each."""
    return Spent(*map(statistics.median, zip(*found, strict=True)))


def median(call: Callable[[], object], times: int) -> Spent:
    """Milliseconds of a call that is made several times."""
    return middle([timed(call)[0] for _ in range(times)])


def report(figure: str, spent: Spent, size: int, name: str, floor: Spent, **facts: object) -> None:
    """One figure, with its floor. On a busy machine, `processor` is what counts."""
    peer = figures.Peer(name, floor.wall)
    processor, of_peer = round(spent.processor, 2), round(floor.processor, 2)
    figures.report(
        figure, spent.wall, "ms", size, peer=peer, processor=processor, peer_processor=of_peer, **facts
    )


def shares(ids: Sequence[AssetId]) -> Iterator[Sequence[AssetId]]:
    """A thousand at a time."""
    for start in range(0, len(ids), 1000):
        yield ids[start : start + 1000]


class Fleet:
    """A store with many assets, and one policy over them."""

    def __init__(self, path: Path, size: int) -> None:
        known = registry()
        self._registry = Registry((*known.types.values(), ROLLOUT_POLICY_TYPE), known.addons)
        self.store = SqliteStore(path)
        self.ids = ids(size)
        self._releases = NO_RELEASES
        clock = SystemClock()
        runtime = Runtime(PARTITION, self.store, self._registry, clock, Chance(seed=1), Inline())
        committer = Committer(self.store, Inline(), clock)
        self._strategist = Strategist(runtime, committer, enforcer(self.store, Nothing(), committer))

    @property
    def sequence(self) -> int:
        """Of the newest incarnation; 0 before the first."""
        newest = self.store.intent.newest(PARTITION)
        return 0 if newest is None else newest.sequence

    def assets(self, ids: Sequence[AssetId], letter: str) -> list[Asset]:
        """Assets of about 600 bytes."""
        return [make_asset(id, TYPE, Payload(letter * 600), {}) for id in ids]

    def policy(self) -> Asset:
        """One that releases everything at once, and looks at it for an hour."""
        waves = TargetSelection((Wave(soak_seconds=3600.0),))
        policy = RolloutPolicy(Selector(types=(TYPE,)), target_selection=waves)
        return make_asset(AssetId("policy"), ROLLOUT_POLICY, policy, {})

    def publish(self, assets: Sequence[Asset]) -> None:
        """The next incarnation."""
        candidate = Candidate(PARTITION, self.sequence, (), Digest("bench"), tuple(assets), ())
        self.store.commit([Publish(candidate, {}, _GOVERNING, time.time())])

    def converge(self, ids: Sequence[AssetId]) -> None:
        """The newest content is in production, and all is well."""
        for some in shares(ids):
            self.store.commit([write for id in some for write in self._converged(id, self.sequence)])

    def _converged(self, id: AssetId, sequence: int) -> tuple[Write, Write]:
        at, condition = time.time(), Condition(Status.CONVERGED, Reason.AS_INTENDED, "")
        decision = Decision(
            partition=PARTITION,
            asset=id,
            at=at,
            content=sequence,
            governing=sequence,
            goal=Goal.PRESENT,
            condition=condition,
            event="bench",
        )
        entry = LedgerEntry(PARTITION, id, Digest("bench"), sequence, Goal.PRESENT, f"push of {id}", at)
        return Adopt(entry), RecordDecision(decision)

    def step(self) -> tuple[Spent, WriteReleases | None]:
        """Milliseconds of a step, and what it would write."""
        newest = self.store.intent.newest(PARTITION)
        assert newest is not None
        governance = load(self.store, self._registry, newest, time.time(), self._releases)
        self._releases = governance.releases
        [policy] = governance.policies.items
        spent, (_step, write) = timed(lambda: self._strategist.decide(policy, governance))
        return spent, write

    def must_write(self) -> tuple[Spent, WriteReleases]:
        """Milliseconds of a step, and what it has written."""
        spent, write = self.step()
        assert write is not None, "there is nothing to write"
        self.store.commit([write])
        return spent, write

    def typical_step(self) -> Spent:
        """The median of several steps that are not carried out."""
        return middle([self.step()[0] for _ in range(_STEPS)])

    def look(self) -> None:
        """One look for new evidence."""
        self.store.records.evidence(PARTITION, 10**9)

    def read(self, ids: Sequence[AssetId]) -> None:
        """Read the last changes, and the records of some assets."""
        list(self.store.intent.changes(PARTITION, self.sequence - 1, self.sequence))
        for key in (AssetKey(PARTITION, id) for id in ids):
            self.store.records.ledger(key)
            self.store.records.standing(key)


def baselines(fleet: Fleet, floor: SqliteStore) -> None:
    """All assets are released to what they have."""
    assets = [fleet.policy(), *fleet.assets(fleet.ids, "x")]
    fleet.publish(assets)
    floor.commit(
        [Publish(Candidate(PARTITION, 0, (), Digest("bench"), tuple(assets), ()), {}, _GOVERNING, 0.0)]
    )
    fleet.converge(fleet.ids)
    writes: list[WriteReleases] = []
    longest_step = longest_commit = 0.0

    def release_all() -> None:
        nonlocal longest_step, longest_commit
        while True:
            spent, write = fleet.step()
            longest_step = max(longest_step, spent.wall)
            if write is None:
                return
            writes.append(write)
            longest_commit = max(longest_commit, timed(partial(fleet.store.commit, [write]))[0].wall)

    spent, _none = timed(release_all)
    count = sum(len(write.releases) for write in writes)
    assert count == len(fleet.ids), f"{count} releases"
    bare, _seconds = timed(lambda: replay(floor, [[write] for write in writes]))
    longest = {"longest_step": round(longest_step), "longest_commit": round(longest_commit)}
    report("baselines", spent, len(fleet.ids), "bare commits of the same writes", bare, **longest)


def idle(fleet: Fleet) -> None:
    """Steps with nothing to do."""
    report("idle", fleet.typical_step(), len(fleet.ids), "a look for evidence", median(fleet.look, _STEPS))


def changed(fleet: Fleet) -> None:
    """Steps of a rollout of assets that have changed."""
    some = fleet.ids[:: len(fleet.ids) // CHANGED][:CHANGED]
    fleet.publish(fleet.assets(some, "y"))
    floor = median(lambda: fleet.read(some), 3)
    begun, _write = fleet.must_write()
    released, write = fleet.must_write()
    assert len(write.releases) == CHANGED, f"{len(write.releases)} releases"
    fleet.converge(some)
    fleet.must_write()  # with the forecast of the rollout, which is made once
    watched = fleet.typical_step()
    for name, spent in (("changed", begun), ("released", released), ("watched", watched)):
        report(name, spent, len(fleet.ids), "a read of what has changed", floor, changed=CHANGED)


def measure(size: int) -> None:
    """Report all figures for a number of assets."""
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder) / "state.sqlite", size)
        floor = SqliteStore(Path(folder) / "floor.sqlite")
        baselines(fleet, floor)
        floor.close()
        idle(fleet)
        changed(fleet)
        fleet.store.close()


def main() -> None:
    """Print the figures."""
    most = figures.size(100_000)
    for size in sorted({CHANGED, 10 * CHANGED, most}):
        if size <= most:
            measure(size)


if __name__ == "__main__":
    main()
