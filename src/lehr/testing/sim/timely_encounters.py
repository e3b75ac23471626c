"""Encounters of a history's sequel that check the result themselves, and when it comes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from lehr.control.messages import Freeze, Lift, Pause, Pin
from lehr.model.addons import Turndown
from lehr.model.decision import Status
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.faults import PushFault
from lehr.testing.sim.random_harness import RandomHarness, Step

_SOON = 20.0
"""Seconds within which a few assets follow intent, one after the other, if the store is quick."""

_QUICK_SECONDS = 0.1
"""A store is quick whose commits take at most so long."""

_MOST_SECONDS = 80
"""An edit is in force after so long, even if it is found only by the next regular look."""


async def _need_what_was_removed(harness: RandomHarness) -> None:
    """Of things that were removed together, the last one is to stay: what it needs comes back before it."""
    reading = harness.dice.happens(0.3)
    ids = await _row(harness, harness.dice.number(2, 3), reading=reading)
    if not ids:
        return
    for id in ids:
        harness.intent.things[id].turndown = Turndown("it leaves", 0.0, 0.0)
    await _in_force(harness)
    await harness.pass_time(20.0, 50.0)
    harness.intent.things[ids[-1]].turndown = None
    if any(id in harness.production.values for id in ids) or not await _in_force(harness):
        return
    await harness.store_answers()
    there = harness.production.values
    for _ in range(int(_SOON)):
        await harness.pass_time(1.0, 1.0)
        for ahead, id in itertools.pairwise(ids):
            things = harness.intent.things
            grows = things[id].value > 0 and things[ahead].value > 0  # else there is no capacity to wait for
            early = id in there and ahead not in there and not reading and grows
            _expect(harness, not early, "I3", f"{id} comes back before {ahead}")
    for id in ids:
        _expect(harness, id in there, "I7", f"{id} is needed again, and not there")


async def _roll_back_past_a_newcomer(harness: RandomHarness) -> None:
    """A thing goes back to when another one, which loads it now, did not exist."""
    ids = await _row(harness, 1)
    if not ids:
        return
    [job], things = ids, harness.intent.things
    newcomer = harness.intent.newcomer(job)
    things[job].value = 20
    if newcomer is None or not await _in_place(harness, job):
        return
    before = max(harness.witness.incarnations)
    harness.intent.declare(newcomer)
    things[newcomer].value, things[newcomer].destroys = 40, False
    things[newcomer].sends_to, things[job].value = [job], 50
    if not await _in_place(harness, job, newcomer):
        return
    await harness.command(Freeze(selector=newcomer, reason="because", seconds=None))
    things[newcomer].value = 10
    if not await _in_force(harness):
        return
    await _pin(harness, job, before)
    await _soon(harness)
    had = harness.production.values.get(job)
    _expect(harness, had == "50", "I3", f"{job} shrinks to {had} before {newcomer}, which loads it, does")
    await harness.command(Lift(kind="freeze", selector=newcomer))
    await _soon(harness)
    has = harness.production.values.get(job)
    _expect(harness, has == "20", "I7", f"{job} is {has}, and nothing keeps it from going back to 20")
    await harness.command(Lift(kind="pin", selector=job))


async def _need_a_version(harness: RandomHarness) -> None:
    """A thing needs a version of another one, which a person holds back."""
    ids = await _row(harness, 2)
    if not ids:
        return
    schema, web = (harness.intent.things[id] for id in ids)
    web.keep(())
    schema.versioned, schema.value, web.value, web.needs = True, 1, 1, {ids[0]: 1}
    if await _in_place(harness, *ids):
        await _pin(harness, ids[0], max(harness.witness.incarnations))
        schema.value, web.value, web.needs = 2, 2, {ids[0]: 2}
        await _in_force(harness)
        await _soon(harness)
        runs = harness.production.values.get(ids[1])
        _expect(harness, runs == "1", "I3", f"{ids[1]} is {runs} before {ids[0]} has the version it needs")
        await harness.command(Lift(kind="pin", selector=ids[0]))
        await _soon(harness)
        runs = harness.production.values.get(ids[1])
        _expect(harness, runs == "2", "I7", f"{ids[1]} is {runs}, and {ids[0]} has the version it needs")
    schema.versioned, web.needs = False, {}


async def _pin_while_reads_lag(harness: RandomHarness) -> None:
    """A person pins a thing while reads do not show that; the next command is about another thing."""
    ids = await _row(harness, 2)
    if not ids:
        return
    for id in ids:
        harness.intent.things[id].keep(())
    if not await _in_place(harness, *ids):
        return
    before, had = max(harness.witness.incarnations), harness.production.values[ids[0]]
    harness.intent.renew(*ids)
    if not await _in_place(harness, *ids):
        return
    harness.fault("what is read of the store lags behind")
    harness.process.store.lag()
    try:
        await _pin(harness, ids[0], before)
        await harness.pass_time(0.5, 1.5)
    finally:
        harness.process.store.catch_up()
    await harness.command(Pause(selector=ids[1], reason="because", seconds=None))
    await _soon(harness)
    has = harness.production.values.get(ids[0])
    _expect(harness, has == had, "I7", f"{ids[0]} is {has}, and was pinned to {had}")
    await harness.command(Lift(kind="pin", selector=ids[0]))
    await harness.command(Lift(kind="pause", selector=ids[1]))


async def _renew_what_has_stalled(harness: RandomHarness) -> None:
    """A push fails for good: newer content is tried without a person."""
    ids = await _row(harness, 1)
    if not ids:
        return
    [id] = ids
    harness.production.push_faults[id] = PushFault.STALL
    harness.intent.renew(id)
    await _in_force(harness)
    await _soon(harness)
    condition = harness.process.condition(id)
    harness.production.heal()
    if condition is None or condition.status is not Status.STALLED:
        return
    harness.intent.renew(id)
    if await _in_force(harness):
        await _soon(harness)
        wanted, has = str(harness.intent.things[id].value), harness.production.values.get(id)
        _expect(harness, has == wanted, "I7", f"{id} is {has}, and its newer content is {wanted}")


async def _die_in_a_push(harness: RandomHarness) -> None:
    """A push outlives the process that began it, and the next process has newer content."""
    ids = await _row(harness, 1)
    if not ids or harness.profile.fencing is not Fencing.NONE:
        return
    [id] = ids
    harness.production.push_faults[id] = PushFault.DETACHED
    harness.intent.renew(id)
    await _in_force(harness)
    for _ in range(20):
        if any(operation.asset == id for operation in harness.production.running.values()):
            break
        await harness.pass_time(0.5, 0.5)
    await harness.process.kill()
    harness.production.heal()
    await harness.begin()
    harness.renew(id)
    await harness.pass_time(60.0, 90.0)


async def _change_what_is_no_content(harness: RandomHarness) -> None:
    """An asset reads an output that changes all the time: its content stays the same."""
    production = harness.production
    if not production.connecting or not harness.profile.gentle:
        return
    ids = await _row(harness, 2, reading=True)
    if not ids or not await _in_place(harness, *ids):
        return
    read, reader = ids
    await _soon(harness)
    entry = harness.witness.ledger.get(reader)
    for _ in range(3):
        production.strangers += 1
        harness.process.hint(read)
        await harness.pass_time(2.0, 5.0)
    harness.process.hint(reader)
    await harness.pass_time(5.0, 10.0)
    same = harness.witness.ledger.get(reader) == entry
    _expect(harness, same, "I8", f"what was applied to {reader} is written down again, and is the same")


# --- what many do ---------------------------------------------------------------------


async def _row(harness: RandomHarness, number: int, *, reading: bool = False) -> list[str]:
    """Some things in place, as those of `Intent.row`, which no release governs; empty for none."""
    ids = harness.intent.row(number, reading=reading)
    if not ids or harness.commits > _QUICK_SECONDS or not await _in_place(harness, *ids):
        return []
    return ids


async def _in_place(harness: RandomHarness, *ids: str) -> bool:
    """Write the intent into the source. Whether these things get as it declares them, soon."""
    if not await _in_force(harness):
        return False
    await _soon(harness)
    conditions = [harness.process.condition(id) for id in ids]
    return not any(map(harness.witness.releases.governs, ids)) and all(
        item is not None and item.status is Status.CONVERGED for item in conditions
    )


async def _in_force(harness: RandomHarness) -> bool:
    """Write the intent into the source. Whether it is published, after some time at the most."""
    harness.edit()
    declared = {asset.id: asset.digest for asset in harness.intent.assets()}
    for _ in range(_MOST_SECONDS):
        found = harness.witness.assets()
        if declared.keys() == found.keys() and all(declared[id] == found[id].digest for id in declared):
            return True
        await harness.pass_time(1.0, 1.0)
    return False


async def _soon(harness: RandomHarness) -> None:
    await harness.store_answers()
    await harness.pass_time(_SOON, _SOON)


async def _pin(harness: RandomHarness, id: str, incarnation: int) -> None:
    await harness.command(Pin(selector=id, reason="because", seconds=None, incarnation=incarnation))


def _expect(harness: RandomHarness, holds: bool, rule: str, what: str) -> None:
    if not holds:
        harness.witness.broken(rule, what)


ENCOUNTERS: Sequence[Step] = [
    _need_what_was_removed,
    _roll_back_past_a_newcomer,
    _need_a_version,
    _pin_while_reads_lag,
    _renew_what_has_stalled,
    _die_in_a_push,
    _change_what_is_no_content,
]
