"""What people do in a random history: they edit the source, hold, pin, approve, retry and prune."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lehr.control.messages import (
    Approve,
    Controlling,
    Freeze,
    Lift,
    Override,
    Pause,
    Pin,
    PruneHistory,
    Refresh,
    Retry,
)
from lehr.model.asset import AssetId
from lehr.model.control import Control
from lehr.model.decision import Status
from lehr.model.reason import Reason
from lehr.testing.sim import edits, selectors
from lehr.testing.sim.faults import PushFault
from lehr.testing.sim.governing_assets import CALENDARS
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.random_harness import RandomHarness, Step
from lehr.testing.sim.source import files
from lehr.testing.sim.things import intended_value


def steps() -> Sequence[Step]:
    """Their actions, each as often as it is likely."""
    return [
        *[RandomHarness.publish] * 5,
        *[_edit_one_after_the_other] * 2,
        *[_edit_all] * 2,
        *[_edit_what_depends] * 2,
        *[_leave_for_good] * 2,
        _come_back,
        _come_back_frozen,
        *[set_control] * 2,
        _override,
        _override_one_of_two,
        _set_two,
        _govern_the_pinned,
        _lift_control,
        approve,
        _retry,
        _insist,
        *[_break_source] * 2,
        _dream,
        _refresh,
        *[_prune] * 2,
    ]


# --- intent ------------------------------------------------------------------------


async def _edit_one_after_the_other(harness: RandomHarness) -> None:
    """An asset is edited, and while that is taken up, one that it depends on."""
    references = harness.intent.references()
    if not references:
        return
    id, ahead = harness.dice.pick(references)
    harness.renew(id)
    await harness.pass_time(0.0, 5.0)
    harness.renew(ahead)


async def _edit_all(harness: RandomHarness) -> None:
    """More pushes are due than there are places, and their dependencies change while they are looked at.

    Some of them are no longer due when their turn comes. Then, nothing happens.
    """
    things = harness.intent.things
    harness.trace.note("person", "everything is edited")
    if harness.dice.happens(0.5):
        harness.production.heal()
    harness.production.seconds = harness.dice.pick((0.0, 0.0, 5.0, 12.0))
    harness.production.look_slowly(IDS, harness.dice.pick((0.0, 4.0)))
    harness.renew(*things)
    await harness.pass_time(2.0, 6.0)
    for id in list(things):
        decision = harness.witness.decisions.get(id)
        queues = decision is not None and decision.condition.reason == Reason.CONCURRENCY_LIMIT
        if queues and harness.dice.happens(0.5):
            await _make_needless(harness, id)
    await harness.quiet_period()


async def _edit_what_depends(harness: RandomHarness) -> None:
    """Production of an asset is changed by hand; reported as its dependents look, or never."""
    things = harness.intent.things
    ahead = sorted({named for _by, named in harness.intent.references()})
    if not ahead:
        return
    first = harness.dice.pick(ahead)
    if harness.dice.happens(0.5):
        harness.production.heal()
    harness.production.seconds = 0.0
    harness.production.look_slowly(IDS, 4.0)
    harness.trace.note("drift", f"{first} is changed by hand")
    harness.production.put(first, f"by hand {harness.dice.number(0, 99)}")
    harness.renew(*(id for id, spec in things.items() if first in spec.names()))
    try:
        await harness.pass_time(0.0, 3.0)
    finally:
        if harness.profile.gentle or harness.dice.happens(0.5):
            harness.process.hint(first)
    await harness.quiet_period()


async def _leave_for_good(harness: RandomHarness) -> None:
    """A thing that nothing names is turned down; its lines go once that has begun, in time or early."""
    intent = harness.intent
    id = intent.retire()
    if id is None:
        return
    harness.trace.note("person", f"{id} is to leave for good")
    fails = harness.dice.happens(0.3)
    if fails:
        harness.intent.governing.allow_one_removal()
        harness.production.push_faults[id] = PushFault.FAIL
    harness.edit()
    await harness.pass_time(0.0, 30.0)
    if intent.remove(id):
        harness.edit()
    await harness.pass_time(0.0, 10.0)
    if fails:
        harness.production.push_faults.pop(id, None)
    for _ in range(harness.dice.number(0, 2)):
        await harness.pass_time(0.0, 40.0)
        await harness.kill()
    await harness.pass_time(0.0, 100.0)
    await harness.quiet_period()


def _come_back(harness: RandomHarness) -> None:
    """A thing that had left is declared again, as it last was, or without its turndown."""
    if harness.intent.come_back() is not None:
        harness.edit()


async def _come_back_frozen(harness: RandomHarness) -> None:
    """A removed thing returns, and cannot be pushed yet: it now needs one that is in turndown."""
    intent = harness.intent
    id = intent.come_back()
    other = None if id is None else intent.lean_on(id)
    if id is None or other is None:
        return
    harness.edit()
    await harness.pass_time(1.0, 3.0)
    await harness.command(Freeze(selector=id, reason="because", seconds=harness.dice.seconds(20.0, 60.0)))
    if other in intent.things:
        intent.turn_down(other)
        harness.edit()
    await harness.quiet_period()


async def _make_needless(harness: RandomHarness, id: str) -> None:
    """Whatever the asset waits for, it no longer needs it."""
    assets = harness.witness.assets()
    if id in assets and harness.dice.happens(0.5):
        harness.trace.note("drift", f"{id} is put right by hand")
        harness.production.put(id, intended_value(assets, id, harness.registry))
        if harness.dice.happens(0.5):
            harness.process.hint(id)
    else:
        await harness.command(Pause(selector=id, reason="because", seconds=None))


def _left_by(harness: RandomHarness, lost: Iterable[str]) -> dict[str, str] | None:
    """Digests of the assets left without the files `lost`; None if one of those must not go.

    An asset that is being turned down, or was never published, may go.
    """
    intent, gone = harness.intent, {*lost}
    if any(intent.path(id) in gone and _stays(harness, id) for id in intent.kept()):
        return None
    left = (asset for asset in intent.assets() if intent.path(str(asset.id)) not in gone)
    return {str(asset.id): str(asset.digest) for asset in left}


def _stays(harness: RandomHarness, id: str) -> bool:
    """Whether an asset is published and not being turned down."""
    asset = harness.witness.assets().get(id)
    return asset is not None and harness.witness.turndown(asset) is None


async def _break_source(harness: RandomHarness) -> None:
    """An editor, disk or script leaves a source that cannot have been meant."""
    broken = harness.dice.pick(edits.BROKEN)
    contents = broken(harness.intent.files(), harness.dice)
    revision = files(contents).revision.revision
    lost = harness.intent.files().keys() - contents.keys()
    harmless = lost and not any(harness.intent.path(id) in lost for id in harness.intent.kept())
    harmless = harmless and broken is not edits.named_but_gone
    revisions = harness.witness.publications.revisions
    if revision in revisions or harmless or contents == harness.intent.files():
        return  # a person may have meant that
    revisions[revision] = _left_by(harness, lost) if broken is edits.half_gone else None
    harness.repository.edit(contents, f"the source is broken: {broken.__name__}")
    try:
        await harness.pass_time(0.0, 20.0)
    finally:
        harness.edit()


async def _dream(harness: RandomHarness) -> None:
    """An incremental build's memo is wrong: it asks for a turndown."""
    never = [id for id in sorted(harness.intent.things) if not harness.intent.was_turned_down(id)]
    if not never:
        return
    generation = harness.process.generation
    generation.dreams = AssetId(harness.dice.pick(never))
    harness.fault(f"the build dreams of a turndown of {generation.dreams}")
    harness.publish()
    try:
        await harness.pass_time(0.0, 5.0)
    finally:
        generation.dreams = None
        before = harness.intent.files()
        while harness.intent.files() == before:  # what was refused is not built again
            harness.intent.change()
        harness.edit()


async def _refresh(harness: RandomHarness) -> None:
    """A person does not wait for the source to be looked at."""
    harness.publish()
    await harness.command(Refresh())


# --- commands ----------------------------------------------------------------------


async def _prune(harness: RandomHarness) -> None:
    """Have the past removed, as far as nothing under way can have begun in it."""
    keep, seconds = harness.dice.number(1, 4), harness.dice.seconds(45.0, 150.0)
    await harness.command(PruneHistory(keep=keep, seconds=seconds))


async def _retry(harness: RandomHarness) -> None:
    await harness.command(Retry(selector=harness.dice.pick(IDS)))


async def _insist(harness: RandomHarness) -> None:
    """A retry of stalled assets, amid hints, which must not take its place."""
    stalled = [
        id
        for id, decision in sorted(harness.witness.decisions.items())
        if decision.condition.status is Status.STALLED
    ]
    if not stalled:
        return
    id = harness.dice.pick(stalled)
    harness.process.hint(id)
    if harness.dice.happens(0.5):
        await harness.pass_time(0.0, 1.0)
    await harness.command(Retry(selector=id))
    harness.process.hint(id)


async def set_control(harness: RandomHarness) -> None:
    """Pause, freeze or pin something, for some time or until it is lifted."""
    kind = harness.dice.pick((Pause, Freeze, Pin, Pin))
    if not harness.witness.incarnations:
        return
    seconds = harness.dice.seconds(5.0, 120.0) if harness.dice.happens(0.5) else None
    selector = selectors.written(harness.dice, IDS)
    if (active := harness.controls()) and harness.dice.happens(0.3):
        selector = str(harness.dice.pick(active).selector)  # a further word on the same
    await _set_control(harness, kind, selector, seconds)


async def _override(harness: RandomHarness) -> None:
    """An emergency: pushes should go although a calendar is closed."""
    declared = [name for name in CALENDARS if name in harness.intent.governing.assets]
    check = harness.dice.pick(declared or CALENDARS)
    seconds = harness.dice.seconds(5.0, 120.0) if harness.dice.happens(0.5) else None
    selector = selectors.written(harness.dice, IDS)
    await harness.command(Override(selector=selector, reason="outage", seconds=seconds, check=check))


async def _override_one_of_two(harness: RandomHarness) -> None:
    """Two calendars select the same things, and one of them is overridden."""
    harness.intent.governing.close_twice()
    harness.publish()
    await harness.pass_time(1.0, 4.0)
    check = harness.dice.pick(CALENDARS)
    await harness.command(Override(selector="all", reason="outage", seconds=60.0, check=check))
    harness.renew(*harness.intent.things)
    await harness.pass_time(1.0, 20.0)


async def _set_two(harness: RandomHarness) -> None:
    """Two people hold the same assets, each for a time of their own, or one until it is lifted."""
    kind, selector = harness.dice.pick((Pause, Freeze, Pin)), harness.dice.pick(IDS)
    lasting = harness.dice.pick((0, 1, 2, 2))
    for number in range(2):
        seconds = None if number == lasting else harness.dice.seconds(3.0, 40.0)
        await _set_control(harness, kind, selector, seconds)
        if harness.dice.happens(0.3):
            selector = "all"
    if selector in harness.intent.things:
        harness.renew(selector)
    await harness.pass_time(0.0, 40.0)
    await harness.quiet_period()


async def _govern_the_pinned(harness: RandomHarness) -> None:
    """A thing gets another label, stays at its content of before by a pin, and its label is governed."""
    things = harness.intent.things
    before = max(harness.witness.incarnations, default=0)
    here = [id for id in things if id in harness.witness.assets()]
    if not here:
        return
    id = harness.dice.pick(here)
    things[id].team = selectors.other_team(things[id].team)
    harness.edit()
    await harness.pass_time(1.0, 4.0)
    pinning = Pin(selector=id, reason="because", seconds=harness.dice.seconds(30.0, 90.0), incarnation=before)
    await harness.command(pinning)
    harness.intent.governing.hold_team(things[id].team)
    harness.edit()
    await harness.pass_time(1.0, 4.0)
    harness.change_by_hand(id)
    await harness.quiet_period()


async def _set_control(
    harness: RandomHarness, kind: type[Controlling], selector: str, seconds: float | None
) -> None:
    """Set a control; a pin is to any incarnation that there was."""
    fields: dict[str, Any] = {}
    if kind is Pin:
        fields["incarnation"] = harness.dice.number(1, max(harness.witness.incarnations, default=1))
    control: Any = kind(selector=selector, reason="because", seconds=seconds, **fields)
    await harness.command(control)


async def _lift_control(harness: RandomHarness) -> None:
    """Lift one; sometimes by a selector that may lift more, or nothing."""
    active = harness.controls()
    if not active:
        return
    control = harness.dice.pick(active)
    if len(control.selector.ids) > 1 and harness.dice.happens(0.5):
        await harness.command(Lift(kind=str(control.kind), selector=control.selector.ids[0]))
    elif harness.dice.happens(0.3):
        selector = selectors.written(harness.dice, IDS)
        await harness.command(Lift(kind=str(control.kind), selector=selector))
    else:
        await lift(harness, control)


async def lift(harness: RandomHarness, control: Control) -> None:
    """Take a control back."""
    await harness.command(Lift(kind=str(control.kind), selector=str(control.selector)))


async def approve(harness: RandomHarness) -> None:
    """Approve a waiting diff."""
    for id in sorted(harness.witness.decisions):
        if (waiting := harness.waits_for_approval(id)) is not None:
            seconds = 60.0 if harness.dice.happens(0.5) else None
            seen = harness.seen.get(id)
            digest = harness.seen[id] = waiting
            if seen is not None and harness.dice.happens(0.2):
                digest = seen  # after looking at it for too long
            approval = Approve(selector=id, reason="seen", seconds=seconds, diff_digest=digest)
            await harness.command(approval)
