"""A plan, and what the first turn after a start comes to: from the same stored state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.digest import Digest
from lehr.checks import CHECKS, TYPES
from lehr.dry_run.candidate import CandidateIntent
from lehr.dry_run.planned import Planned
from lehr.dry_run.planner import Planner
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Decision, Verdict
from lehr.model.incarnation import Candidate
from lehr.model.selector import Selector, parse_selector
from lehr.model.writes import Publish, SetControl
from lehr.query.compare import changes_between
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime
from lehr.store.sqlite import SqliteStore
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, registry
from tests.world import Plane, World

PUSHING = "Pushing"
FOR_EVER = 1e9

History = Callable[[Plane, World, VirtualClock], Awaitable[None]]


class Said(NamedTuple):
    """How a turn of an asset ended: for what reason, and for whom its checks wait."""

    reason: str
    wait_for: tuple[AssetId, ...] = ()


class Both(NamedTuple):
    """What was planned, and what the first turn after the next start came to."""

    planned: Mapping[str, Planned]
    turned: Mapping[str, Said]

    @property
    def said(self) -> dict[str, Said]:
        """The plan, as turns are told."""
        return {id: Said(item.reason, _names(item.verdicts)) for id, item in self.planned.items()}

    def agree(self) -> None:
        """See that every asset that had a turn came to what was planned for it, and no other was planned."""
        assert self.said == self.turned


def both(
    folder: Path,
    intent: Iterable[Asset],
    *,
    history: History | None = None,
    controls: Callable[[Controls], None] = lambda given: None,
    world: World | None = None,
    seed: int = 1,
) -> Both:
    """Plan `intent`, and then publish it and start.

    Args:
        history: what was before; it ends as a process does that is killed.
        controls: what people said then.
    """
    world = world or World()

    async def main() -> Both:
        clock = VirtualClock()
        if history is not None:
            plane = _plane(folder, world, clock, seed)
            await plane.start()
            await history(plane, world, clock)
            await plane.kill()
        store = SqliteStore(folder / "state.sqlite")
        controls(Controls(store, clock))
        planned = await plan(store, world, clock, list(intent), seed)
        before = store.records.decisions(PARTITION, limit=1000)
        _publish(store, list(intent), clock)
        store.close()
        world.seconds = FOR_EVER
        plane = _plane(folder, world, clock, seed)
        await plane.start()
        await clock.sleep(0.1)
        await plane.committer.flush()
        since = plane.store.records.decisions(PARTITION, limit=1000)[: -len(before) or None]
        await plane.kill()
        # The newest comes first; and a turn that ends as the last one did is not written down again.
        ended = {str(item.asset): item for _number, item in [*reversed(before), *since]}
        return Both(planned, {id: _said(ended[id]) for id in planned})

    return run(main, seed=seed)


async def plan(
    store: SqliteStore,
    world: World,
    clock: VirtualClock,
    intent: Sequence[Asset],
    seed: int = 1,
    only: Selector | None = None,
) -> dict[str, Planned]:
    """The plan for `intent`, by id; only for the assets that `only` selects, unless it is None."""
    made = planner(store, world.plugin(clock), clock, intent, seed, only)
    return {str(item.id): item for item in await made.plan()}


def planner(
    store: SqliteStore,
    plugin: AssetPlugin,
    clock: VirtualClock,
    intent: Sequence[Asset],
    seed: int = 1,
    only: Selector | None = None,
) -> Planner:
    """What plans `intent`."""
    known = registry(TYPES)
    newest = store.intent.newest(PARTITION)
    before = () if newest is None else store.intent.assets(PARTITION, newest.sequence)
    assets = {asset.id: asset for asset in intent}
    changes = tuple(changes_between(before, assets))
    candidate = CandidateIntent(store.intent, PARTITION, newest, assets, changes, known, clock.now())
    checks = [check() for check in CHECKS]
    runtime = Runtime(PARTITION, store, known, clock, Chance(seed), Inline(), only)
    return Planner(runtime, candidate, [plugin], checks)


class Controls:
    """What people say while nothing runs."""

    def __init__(self, store: SqliteStore, clock: VirtualClock) -> None:
        self._store = store
        self._clock = clock
        self.records = store.records

    def give(self, kind: ControlKind, selector: str, **fields: object) -> None:
        """Set a control."""
        now = self._clock.now()
        given = Control(
            id=f"{kind}-{selector}-{fields}",
            kind=kind,
            partition=PARTITION,
            selector=parse_selector(selector),
            reason="because",
            actor="ana",
            at=now,
            **fields,  # type: ignore[arg-type]
        )
        self._store.commit([SetControl(given)])

    def approve(self, id: str) -> None:
        """Approve the diff that was decided on last."""
        self.give(ControlKind.APPROVAL, id, diff_digest=self.decided_on(id))

    def decided_on(self, id: str) -> Digest | None:
        """The diff of the newest decision on an asset; None for none."""
        found = self._store.records.decisions(PARTITION, AssetId(id), 1)
        diff = found[0][1].diff if found else None
        return None if diff is None else diff.digest()


def _plane(folder: Path, world: World, clock: VirtualClock, seed: int) -> Plane:
    return Plane(folder, world, clock, checks=[check() for check in CHECKS], types=TYPES, seed=seed)


def _publish(store: SqliteStore, intent: Sequence[Asset], clock: VirtualClock) -> None:
    known, newest = registry(TYPES), store.intent.newest(PARTITION)
    heads = {head.id: head.digest for head in store.intent.heads(PARTITION)}
    upserts = tuple(asset for asset in intent if heads.get(asset.id) != asset.digest)
    removals = tuple(heads.keys() - {asset.id for asset in intent})
    base = newest.sequence if newest else 0
    candidate = Candidate(PARTITION, base, (), Digest("test"), upserts, removals)
    if newest is not None and candidate.changes_nothing:
        return
    mentions = {asset.id: tuple(known.mentions(asset)) for asset in upserts}
    governing = tuple(name for name, item in known.types.items() if item.governs)
    store.commit([Publish(candidate, mentions, governing, clock.now())])


def _said(decision: Decision) -> Said:
    return Said(decision.condition.reason, _names(decision.verdicts))


def _names(verdicts: Iterable[Verdict]) -> tuple[AssetId, ...]:
    """For whom they wait."""
    return tuple(dict.fromkeys(id for item in verdicts if not item.allow for id in item.wait_for))
