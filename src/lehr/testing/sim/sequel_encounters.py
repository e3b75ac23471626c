"""Encounters of a history's sequel: each begins in a world where nothing is left to do."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.control.messages import Lift, Pause, Pin, PruneHistory
from lehr.model.addons import Turndown
from lehr.model.diff import Goal
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import PASSING_LOOKS, PushFault
from lehr.testing.sim.final_phase import settle
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.random_harness import RandomHarness, Step
from lehr.testing.sim.verdict import judge

_LONG_ENOUGH = 50.0
"""Seconds after which a row of three has been pushed, or removed."""

_KEPT_SECONDS = 45.0
"""The past is kept for at least so long."""

_SLOWEST = 4.7
"""Seconds that a look takes at most, if it is answered in time."""

_READS = (
    "asset",
    "last",
    "ledger",
    "changes",
    "incarnation",
    "controls",
    "addon_since",
    "mentioned_by",
    "past_and_present_referrers",
)
"""Of the store, as turns and those who follow intent need them."""


# --- turndowns -------------------------------------------------------------------------


async def _restart_in_a_fence(harness: RandomHarness) -> None:
    """A fenced asset outlives the processes that see to it: the time that it stays fenced does not."""
    ids = harness.intent.row(2)
    if not ids:
        return
    fence = harness.dice.seconds(60.0, 300.0)
    _turn_down(harness, ids[-1], fence)
    harness.edit()
    await _fenced(harness, ids[-1])
    began = harness.clock.monotonic()
    await harness.pass_time(0.0, fence)
    await harness.kill()
    over = max(0.0, began + fence - harness.clock.monotonic())
    await harness.pass_time(over, over + 20.0)
    await harness.quiet_period()


async def _leave_together(harness: RandomHarness) -> None:
    """Things that need each other leave at once, and some of them are slow to look at."""
    ids = harness.intent.row(harness.dice.number(2, 3), reading=harness.dice.happens(0.5))
    harness.edit()
    await harness.pass_time(10.0, _LONG_ENOUGH)
    harness.production.seconds = harness.dice.pick((0.0, 1.0))
    harness.production.look_slowly([id for id in ids if harness.dice.happens(0.5)], _SLOWEST)
    for id in ids:
        _turn_down(harness, id)
    harness.edit()
    await harness.pass_time(20.0, _LONG_ENOUGH)
    await harness.quiet_period()


async def _needed_again(harness: RandomHarness) -> None:
    """Things that need each other are removed, and then some of them are needed again."""
    ids = harness.intent.row(3, reading=True)
    for id in ids:
        _turn_down(harness, id)
    harness.edit()
    await harness.pass_time(20.0, _LONG_ENOUGH)
    for id in ids[harness.dice.number(0, 2) :]:
        harness.intent.things[id].turndown = None
    harness.edit()
    await harness.pass_time(20.0, _LONG_ENOUGH)
    await harness.quiet_period()


async def _depend_on_what_was_removed(harness: RandomHarness) -> None:
    """Of two things that are removed, only the one that depends on the other is declared to stay again."""
    ids = harness.intent.row(2)
    for id in ids:
        _turn_down(harness, id)
    harness.edit()
    await harness.pass_time(20.0, _LONG_ENOUGH)
    for id in ids[1:]:
        harness.intent.things[id].turndown = None
    harness.edit()
    await harness.pass_time(20.0, _LONG_ENOUGH)
    await harness.quiet_period()


async def _fail_to_remove(harness: RandomHarness) -> None:
    """One thing may be removed for a long time, and its removal fails before it succeeds."""
    ids = harness.intent.row(1)
    if not ids:
        return
    harness.intent.governing.allow_one_removal()
    _turn_down(harness, ids[0], 10.0)
    harness.edit()
    await _fenced(harness, ids[0])
    harness.production.push_faults[ids[0]] = harness.dice.pick((PushFault.FAIL, PushFault.WAIT))
    await harness.pass_time(10.0, 30.0)
    harness.production.heal()
    await harness.pass_time(0.0, 30.0)
    await harness.quiet_period()


async def _remove_many(harness: RandomHarness) -> None:
    """More things leave than two budgets allow."""
    harness.intent.governing.limit_removals()
    harness.intent.turn_down_many()
    harness.edit()
    await harness.pass_time(30.0, 120.0)
    await harness.quiet_period()


async def _remove_some_of_many(harness: RandomHarness) -> None:
    """Many things leave, under a budget for a short time and one with a lower rate for a long time."""
    harness.intent.governing.limit_removals_unevenly()
    harness.intent.turn_down_many()
    harness.edit()
    await harness.pass_time(30.0, 120.0)
    await harness.quiet_period()


async def _reuse_an_id(harness: RandomHarness) -> None:
    """A thing leaves, and its id is declared as something else before nothing is left of it."""
    ids = harness.intent.row(1)
    if not ids:
        return
    harness.renew(*ids)
    await until_published(harness, ids[0], there=True)
    await harness.pass_time(0.0, 5.0)
    if harness.dice.happens(0.6):
        _turn_down(harness, ids[0], harness.dice.seconds(0.0, 120.0))
        await take_out(harness, ids[0])
    else:
        harness.intent.let_go.add(ids[0])
        del harness.intent.things[ids[0]]
        harness.edit()
    await until_published(harness, ids[0], there=False)
    if ids[0] not in harness.intent.things:
        harness.intent.governing.take_id(ids[0])
    harness.edit()
    await harness.pass_time(0.0, 60.0)
    await settle(harness)
    harness.witness.violations += judge(harness)


async def _leave_and_prune(harness: RandomHarness) -> None:
    """A thing with a past leaves intent before it is removed, and then the past is pruned."""
    ids = harness.intent.row(2, reading=harness.dice.happens(0.5))
    if not ids:
        return
    for _ in range(harness.dice.number(1, 3)):
        harness.renew(ids[-1])
        await harness.pass_time(3.0, 10.0)
    for id in ids:
        _turn_down(harness, id, harness.dice.pick((0.0, 200.0)))
    harness.edit()
    await harness.pass_time(2.0, 10.0)
    await take_out(harness, ids[-1])
    others = [id for id in harness.intent.things if id not in ids]
    for _ in range(harness.dice.number(0, 2)):
        await harness.pass_time(0.0, 5.0)
        if others:
            harness.renew(harness.dice.pick(others))
    await harness.pass_time(_KEPT_SECONDS + 5.0, _KEPT_SECONDS + 30.0)
    await harness.command(PruneHistory(keep=1, seconds=_KEPT_SECONDS))
    if harness.dice.happens(0.5):
        await harness.kill()
    await harness.pass_time(10.0, _LONG_ENOUGH)
    await harness.quiet_period()


# --- order and pins ----------------------------------------------------------------------


async def _pin_in_a_row(harness: RandomHarness) -> None:
    """Of things that need each other, one stays as it is, and a person holds back one before or after."""
    ids = harness.intent.row(3)
    if not ids:
        return
    harness.renew(*ids)
    await harness.pass_time(10.0, _LONG_ENOUGH)
    for _ in range(3):
        before, pinned = max(harness.witness.incarnations), harness.dice.pick(ids)
        if early := harness.dice.happens(0.5):
            await _pin(harness, pinned, before)
        harness.production.seconds = harness.dice.pick((1.0, 8.0))
        idle = harness.dice.pick(ids)
        harness.renew(*(id for id in ids if id != idle))
        await harness.pass_time(2.0, _LONG_ENOUGH)
        if not early:
            await _pin(harness, pinned, before)
        await harness.pass_time(10.0, 20.0)
        await harness.quiet_period()
        await harness.command(Lift(kind="pin", selector=pinned))


async def _pin(harness: RandomHarness, id: str, incarnation: int) -> None:
    await harness.command(Pin(selector=id, reason="because", seconds=None, incarnation=incarnation))


async def _pass_what_a_pin_needs(harness: RandomHarness) -> None:
    """A thing is pinned to what was declared with content that another one has gone past since."""
    ids = harness.intent.row(2)
    if not ids:
        return
    ahead, pinned = ids
    if harness.dice.happens(0.4):
        thing = harness.intent.things[pinned]
        thing.depends_on, thing.sends_to = [], [ahead]
    harness.renew(*ids)
    await harness.pass_time(10.0, _LONG_ENOUGH)
    await harness.command(Pause(selector=pinned, reason="because", seconds=None))
    harness.renew(*ids)
    await harness.pass_time(10.0, _LONG_ENOUGH)
    target = max(harness.witness.incarnations)
    harness.renew(*ids)
    await harness.pass_time(10.0, _LONG_ENOUGH)
    await _pin(harness, pinned, target)
    await harness.command(Lift(kind="pause", selector=pinned))
    await harness.pass_time(10.0, 20.0)
    await harness.quiet_period()


# --- looks ----------------------------------------------------------------------------


async def _look_in_vain(harness: RandomHarness) -> None:
    """A dependency cannot be looked at for a while, just when the thing that needs it is edited."""
    ids = harness.intent.row(harness.dice.number(2, 3), reading=harness.dice.happens(0.2))
    if not ids:
        return
    harness.edit()
    await harness.pass_time(10.0, _LONG_ENOUGH)
    harness.fault(f"{ids[0]} cannot be looked at")
    harness.production.look_faults[ids[0]] = harness.dice.pick(PASSING_LOOKS)
    harness.renew(*ids[1:])
    await harness.pass_time(5.0, 40.0)
    harness.production.heal()
    await harness.pass_time(30.0, 90.0)
    await harness.quiet_period()


async def _edit_in_a_first_look(harness: RandomHarness) -> None:
    """A thing reads others that it did not read before, and they are edited as it is looked at."""
    ids = harness.intent.row(harness.dice.number(2, 3), reading=True)
    if not ids:
        return
    harness.production.looking = dict.fromkeys(ids, _SLOWEST)
    harness.renew(ids[-1])
    await harness.pass_time(0.0, 3.0)
    harness.renew(*ids[:-1])
    await harness.pass_time(10.0, 30.0)
    await harness.quiet_period()


async def _limit_briefly(harness: RandomHarness) -> None:
    """A limit counts pushes for less time than the turns take that it limits."""
    harness.intent.governing.limit_briefly()
    harness.production.seconds = 0.0
    harness.production.look_slowly(IDS, _SLOWEST)
    harness.renew(*harness.intent.things)
    await harness.pass_time(10.0, 30.0)
    await harness.quiet_period()


# --- the store --------------------------------------------------------------------------


async def _misread_an_edit(harness: RandomHarness) -> None:
    """Some of the reads fail once that it takes until an edit is taken up."""
    for edit in (_come_back, _turn_down_the_needed, _renew_some):
        await edit(harness)
        names = [name for name in _READS if harness.dice.happens(0.4)]
        harness.process.store.misread = {*names}
        harness.fault(f"of these reads of the store, the next fails: {', '.join(names)}")
        harness.edit()
        await harness.pass_time(5.0, 15.0)
        harness.process.store.misread.clear()
        await harness.quiet_period()


async def _turn_down_the_needed(harness: RandomHarness) -> None:
    ids = harness.intent.row(2, reading=harness.dice.happens(0.5))
    harness.edit()
    await harness.pass_time(5.0, 10.0)
    for id in ids[:1]:
        _turn_down(harness, id)


async def _renew_some(harness: RandomHarness) -> None:
    harness.intent.renew(*(id for id in harness.intent.things if harness.dice.happens(0.5)))


async def _come_back(harness: RandomHarness) -> None:
    """Something that was removed is declared again."""
    for id in harness.intent.row(1):
        _turn_down(harness, id)
        harness.edit()
        await harness.pass_time(5.0, 10.0)
        await take_out(harness, id)
        await harness.pass_time(5.0, 10.0)
    harness.intent.come_back()


# --- processes --------------------------------------------------------------------------


async def _take_over_in_trouble(harness: RandomHarness) -> None:
    """A process that cannot write is stopped; when it continues and can, another one has taken over."""
    if harness.profile.fencing is not Fencing.NATIVE:
        return  # The lock of the state folder lets only one run.
    late = harness.process
    late.store.out_of_order = True
    harness.fault(f"{late.name} cannot write")
    harness.renew(*harness.intent.things)
    await harness.pass_time(2.0, 10.0)
    late.hold()
    await harness.begin()
    try:
        await harness.pass_time(0.0, 20.0)
    finally:
        late.store.out_of_order = False
        late.release()
    await harness.pass_time(10.0, 20.0)


# --- what many do ---------------------------------------------------------------------


def _turn_down(harness: RandomHarness, id: str, fence: float = 0.0) -> None:
    harness.intent.things[id].turndown = Turndown("it leaves", 0.0, fence)


async def take_out(harness: RandomHarness, id: str) -> None:
    """Take out the lines of a thing in turndown, once no older revision can be published any more."""
    for _ in range(3):
        harness.edit()
        await harness.pass_time(0.5, 3.0)
    harness.intent.remove(id)
    harness.edit()


async def until_published(harness: RandomHarness, id: str, *, there: bool) -> None:
    """Let time pass until it is published that an asset is `there`, or should long have been."""
    for _ in range(80):  # an edit may be found only by the next regular look
        if (id in harness.witness.assets()) is there:
            return
        await harness.pass_time(1.0, 1.0)


async def _fenced(harness: RandomHarness, id: str) -> None:
    """Let time pass until an asset is fenced, or should long have been."""
    for _ in range(40):
        entry = harness.witness.ledger.get(id)
        if entry is not None and entry.goal is Goal.FENCED:
            return
        await harness.pass_time(1.0, 1.0)


ENCOUNTERS: Sequence[Step] = [
    _restart_in_a_fence,
    _leave_together,
    _needed_again,
    _fail_to_remove,
    _remove_many,
    _leave_and_prune,
    _reuse_an_id,
    _pin_in_a_row,
    _look_in_vain,
    _edit_in_a_first_look,
    _limit_briefly,
    _misread_an_edit,
    _take_over_in_trouble,
]

LAST: Sequence[Step] = [
    _pass_what_a_pin_needs,
    _depend_on_what_was_removed,
    _remove_some_of_many,
]
"""One of them ends a sequel."""
