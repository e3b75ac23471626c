"""Encounters of a history's sequel in which things are removed, and others need them at some moment."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.control.messages import Lift, Pause
from lehr.model.addons import Turndown
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.reason import Reason
from lehr.testing.sim.random_harness import RandomHarness, Step
from lehr.testing.sim.sequel_encounters import take_out, until_published

_SOON = 25.0
"""Seconds within which an asset notices what has become of another, with every look and push in between."""


async def _need_in_vain(harness: RandomHarness) -> None:
    """A thing in turndown is to come back for another, waits for a third, and is then not needed any more."""
    ids = await _chain(harness)
    if not ids:
        return
    base, web, app = ids
    await _pause(harness, base, app)
    harness.intent.things[base].value += 20
    _turn_down(harness, web, app)
    harness.edit()
    await harness.pass_time(10.0, 30.0)
    _lose(harness, web)
    await harness.pass_time(5.0, 15.0)
    await harness.command(Lift(kind="pause", selector=app))
    await harness.pass_time(20.0, 40.0)
    await harness.store_answers()
    await harness.pass_time(_SOON, _SOON)
    entry, condition = harness.witness.ledger.get(app), harness.process.condition(web)
    if entry is None or entry.goal is not Goal.ABSENT or harness.clock.now() < entry.at + _SOON:
        return
    if condition is not None and condition.reason == Reason.CAPACITY_ORDER:
        harness.witness.broken("I7", f"{web} waits to come back, and {app}, which needed it, is removed")


async def _outlive_intent(harness: RandomHarness) -> None:
    """A thing that has left intent is still needed, and is lost; the one that gets its load has shrunk."""
    ids = await _chain(harness)
    if not ids:
        return
    base, web, app = ids
    await _pause(harness, app)
    _turn_down(harness, web, app)
    harness.edit()
    await harness.pass_time(10.0, 30.0)
    for id in (app, web):
        await take_out(harness, id)
        await until_published(harness, id, there=False)
    harness.intent.things[base].value //= 2
    harness.edit()
    await harness.pass_time(60.0, 80.0)
    _lose(harness, web)
    await harness.pass_time(10.0, 20.0)
    await harness.quiet_period()


async def _come_back_in_a_row(harness: RandomHarness) -> None:
    """Of things that were removed together, the last one returns alone, and needs or loads the others."""
    ids = harness.intent.row(harness.dice.number(2, 3), reading=harness.dice.happens(0.3))
    if not ids:
        return
    if harness.dice.happens(0.5):
        thing = harness.intent.things[ids[1]]
        thing.depends_on, thing.reads, thing.sends_to = [], [], [ids[0]]
        thing.value = 0
    harness.edit()
    await harness.pass_time(10.0, 40.0)
    _turn_down(harness, *ids)
    harness.edit()
    await harness.pass_time(20.0, 50.0)
    harness.intent.things[ids[-1]].turndown = None
    harness.edit()
    await harness.pass_time(20.0, 50.0)
    await harness.quiet_period()


async def _refer_to_what_leaves(harness: RandomHarness) -> None:
    """Something refers to a thing that is being removed, at any moment of that."""
    for _ in range(3):
        ids = harness.intent.row(2, reading=harness.dice.happens(0.5))
        if not ids:
            return
        ahead, later = ids
        thing = harness.intent.things[later]
        links = thing.depends_on, thing.reads
        thing.depends_on, thing.reads = [], []
        harness.edit()
        await harness.pass_time(10.0, 30.0)
        _turn_down(harness, ahead)
        harness.edit()
        await harness.pass_time(0.0, 6.0)
        thing.depends_on, thing.reads = links
        harness.edit()
        await harness.pass_time(5.0, 20.0)
        harness.intent.things[ahead].turndown = None
        harness.edit()
        await harness.quiet_period()


# --- what many do ---------------------------------------------------------------------


async def _chain(harness: RandomHarness) -> list[str]:
    """Three things in place, the second of which sends load to the first, and is needed by the third."""
    ids = harness.intent.row(3, reading=False)
    if not ids:
        return []
    base, web, app = (harness.intent.things[id] for id in ids)
    base.value, web.value = 40, 20
    web.depends_on, web.reads, web.sends_to = [], [], [ids[0]]
    app.depends_on, app.reads, app.sends_to = [ids[1]], [], []
    harness.edit()
    await harness.pass_time(20.0, 50.0)
    return ids if _in_place(harness, ids) else []


def _in_place(harness: RandomHarness, ids: Sequence[str]) -> bool:
    conditions = [harness.process.condition(id) for id in ids]
    return all(item is not None and item.status is Status.CONVERGED for item in conditions)


async def _pause(harness: RandomHarness, *ids: str) -> None:
    for id in ids:
        await harness.command(Pause(selector=id, reason="because", seconds=None))


def _turn_down(harness: RandomHarness, *ids: str) -> None:
    for id in ids:
        harness.intent.things[id].turndown = Turndown("it leaves", 0.0, 0.0)


def _lose(harness: RandomHarness, id: str) -> None:
    harness.trace.note("drift", f"{id} is removed by hand")
    harness.production.take(id)
    harness.process.hint(id)


ENCOUNTERS: Sequence[Step] = [_need_in_vain, _outlive_intent, _come_back_in_a_row, _refer_to_what_leaves]
