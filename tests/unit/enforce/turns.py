"""Values that tests of the per-asset loop are made of."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from lehr.base.digest import Digest, digest
from lehr.enforce.state import Begin, Diffed, Effect, Event, State, View
from lehr.enforce.step import step
from lehr.enforce.turndown import TurndownStage
from lehr.model.asset import AssetId, AssetKey
from lehr.model.control import Control, ControlKind
from lehr.model.diff import Change, Diff, Effects, Goal
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.pinning import Pinning
from lehr.model.selector import Selector
from lehr.testing.virtual import EPOCH
from lehr.testing.world import PARTITION, THING, thing

KEY = AssetKey(PARTITION, AssetId("a"))
ASSET = thing("a", "1")
CONTENT = digest("content")
DIFF = Diff((Change("value", "1", None),))
OTHER_DIFF = Diff((Change("value", "1", "2"),))
DESTRUCTIVE = Diff((Change("value", "1", None),), Effects(destructive=True))


def view(*, goal: Goal = Goal.PRESENT, after: float = 0.0, **fields: Any) -> View:
    """What a turn sees, `after` seconds from the start; `fields` are those that are not usual."""
    usual = View(
        key=KEY,
        now=EPOCH + after,
        monotonic=1000.0 + after,
        cause="start",
        pinning=Pinning(2),
        governing=2,
        asset=ASSET,
        newest_digest=ASSET.digest,
        governance=digest("governance"),
        controls=3,
        releases=0,
        stage=TurndownStage(goal),
        epoch=1,
    )
    return replace(usual, **fields)


def operation(id: str = "o1", *, diff: Diff = DIFF, goal: Goal = Goal.PRESENT, **fields: Any) -> Operation:
    """The push that a turn with the usual view starts."""
    usual = Operation(
        id, PARTITION, KEY.id, THING, goal, 2, 2, CONTENT, diff.digest(), epoch=1, started_at=EPOCH
    )
    return replace(usual, **fields)


def entry(
    *, content_digest: Digest = CONTENT, goal: Goal = Goal.PRESENT, by: str | None = None
) -> LedgerEntry:
    """What production holds."""
    return LedgerEntry(PARTITION, KEY.id, content_digest, 2, goal, by, EPOCH)


def control(kind: ControlKind, id: str = "c1", *, selects: str = "a", **fields: Any) -> Control:
    """A person's word."""
    return Control(
        id=id,
        kind=kind,
        partition=PARTITION,
        selector=Selector(ids=(selects,)),
        reason="because",
        actor="ana",
        at=EPOCH,
        **fields,
    )


def after(state: State, *events: Event) -> tuple[State, list[Effect]]:
    """The state after `events`, and the effects of the last one."""
    effects: tuple[Effect, ...] = ()
    for event in events:
        state, effects = step(state, event)
    return state, list(effects)


def diffed(diff: Diff = DIFF) -> Diffed:
    """The plugin's answer."""
    return Diffed(diff, CONTENT)


def checking(state: State | None = None, **fields: Any) -> State:
    """A state in which the checks are being asked."""
    return after(state or State(), Begin(view(**fields)), diffed())[0]
