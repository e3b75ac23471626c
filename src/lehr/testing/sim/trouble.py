"""Faults in a random history: production, source, store, network, clocks and processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from lehr.control.messages import Pin
from lehr.model.reason import Reason
from lehr.model.writes import Publish
from lehr.sdk.plugin import Fencing
from lehr.testing.sim import people
from lehr.testing.sim.faults import PASSING_LOOKS, PASSING_PUSHES, LookFault, PushFault
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.random_harness import RandomHarness, Step
from lehr.testing.sim.store import altered
from lehr.testing.world import Crash

T = TypeVar("T")


def steps(harness: RandomHarness) -> Sequence[Step]:
    """Everything that may go wrong, each as often as it is likely."""
    steps: list[Step] = [
        *[_push_fault] * 3,
        *[_drift] * 3,
        _drift_and_govern,
        _look_fault,
        _blind,
        _mute,
        _heal,
        _hint,
        _break_watch,
        _slow_or_fast,
        _cut_off,
        _lose_source,
        _store_trouble,
        _flaky_store,
        _unreadable,
        _misread,
        _fail_publication,
        _lag,
        _kill,
        _kill_in_a_turndown,
        _kill_twice_in_a_push,
        _die_at_commit,
        _hold,
    ]
    profile = harness.profile
    if profile.jumps:
        steps += [_jump, _contradict]
    if not profile.gentle:
        steps.append(_hide)
    if profile.fencing is Fencing.NATIVE:
        steps += [_take_over] * 2
    return steps


# --- production ----------------------------------------------------------------------


def _push_fault(harness: RandomHarness) -> None:
    faults = PASSING_PUSHES if harness.profile.gentle else tuple(PushFault)
    _some_fault(harness, "pushes of", harness.production.push_faults, faults)


def _look_fault(harness: RandomHarness) -> None:
    faults = PASSING_LOOKS if harness.profile.gentle else tuple(LookFault)
    _some_fault(harness, "looks at", harness.production.look_faults, faults)


def _some_fault(harness: RandomHarness, what: str, now: dict[str, T], faults: Sequence[T]) -> None:
    id, fault = harness.dice.pick(IDS), harness.dice.pick(faults)
    harness.fault(f"{what} {id}: {fault}")
    now[id] = fault


async def _blind(harness: RandomHarness) -> None:
    """An asset is reached through another one, which is then taken away."""
    references = harness.intent.references()
    if not references:
        return
    id, ahead = harness.dice.pick(references)
    production = harness.production
    harness.fault(f"{id} is reached through {ahead}, which is taken away")
    production.blind[id] = ahead
    production.take(ahead)
    harness.process.hint(id)
    await harness.pass_time(0.0, 60.0)
    harness.process.hint(ahead)
    await harness.quiet_period()


def _mute(harness: RandomHarness) -> None:
    id = harness.dice.pick(IDS)
    harness.fault(f"{id} is mute")
    harness.production.mute.add(id)


def _hide(harness: RandomHarness) -> None:
    id = harness.dice.pick(IDS)
    harness.fault(f"changes of {id} show late")
    harness.production.hidden[id] = harness.dice.seconds(0.1, 3.0)


def _heal(harness: RandomHarness) -> None:
    harness.fault("production is healthy again")
    harness.production.heal()


async def _cut_off(harness: RandomHarness) -> None:
    """The network between control plane and production."""
    harness.fault("production cannot be reached")
    with altered(harness.production, unreachable=True):
        await harness.pass_time(0.0, 20.0)


def _drift(harness: RandomHarness) -> None:
    """Production is changed by hand; the plugin may notice, or notice twice, or not."""
    id = harness.dice.pick(IDS)
    if harness.dice.happens(0.3):
        harness.production.take(id)
    elif id in harness.production.values:
        by_hand = [f"by hand {harness.dice.number(0, 99)}", str(harness.dice.number(0, 99))]
        if "?" not in harness.production.values.values():
            by_hand.append("?")  # of two that cannot be measured, neither may go first
        harness.production.put(id, harness.dice.pick(by_hand))
    hints = 1 if harness.profile.gentle else harness.dice.number(0, 2)
    harness.trace.note("drift", f"{id} is changed by hand; {hints} hints")
    for _ in range(hints):
        harness.process.hint(id)


async def _drift_and_govern(harness: RandomHarness) -> None:
    """While assets are looked at, they are governed otherwise."""
    _drift(harness)
    await harness.pass_time(0.0, 3.0)
    harness.intent.governing.change()
    harness.edit()


def _hint(harness: RandomHarness) -> None:
    harness.process.hint(harness.dice.pick(IDS))


def _break_watch(harness: RandomHarness) -> None:
    harness.fault("the watch of production breaks")
    harness.process.plugin.hints.put_nowait(None)


def _slow_or_fast(harness: RandomHarness) -> None:
    production = harness.production
    production.seconds = harness.dice.pick((0.0, 1.0, 5.0, 18.0))
    if harness.dice.happens(0.5):
        production.look_slowly(IDS, harness.dice.pick((0.0, 4.0)))


# --- source, store and clocks --------------------------------------------------------


async def _lose_source(harness: RandomHarness) -> None:
    harness.fault("the source cannot be read")
    with harness.repository.lost():
        await harness.pass_time(0.0, 20.0)


def _store_trouble(harness: RandomHarness) -> None:
    store = harness.process.store
    store.out_of_order = not store.out_of_order
    harness.fault(f"the store is {'out of' if store.out_of_order else 'in'} order")


async def _flaky_store(harness: RandomHarness) -> None:
    harness.fault("now and then, a commit fails")
    dice = harness.dice
    gets_to = (lambda: dice.number(0, 12)) if dice.happens(0.5) else (lambda: None)
    with altered(harness.process.store, fails=lambda writes: dice.happens(0.4), gets_to=gets_to):
        await harness.pass_time(0.0, 20.0)


async def _fail_publication(harness: RandomHarness) -> None:
    """The next publication fails when all of it has been carried out; then it is another one."""
    harness.fault("the next publication cannot be written")
    store = harness.process.store
    statements = harness.dice.number(8, 26)
    store.fail_once(Publish)
    store.gets_to = lambda: statements
    harness.publish()
    try:
        await harness.pass_time(0.0, 5.0)
    finally:
        store.fails, store.gets_to = lambda writes: False, lambda: None
        if harness.dice.happens(0.5):
            harness.intent.take_back()
            harness.renew(harness.dice.pick(list(harness.intent.things)))
        else:
            harness.publish()


async def _misread(harness: RandomHarness) -> None:
    harness.fault("now and then, a read of the store fails")
    probability = harness.dice.pick((0.02, 0.1, 0.3))
    named = [id for _by, id in harness.intent.references()]
    if named and harness.dice.happens(0.5):
        harness.intent.turn_down(harness.dice.pick(named))
        harness.edit()
    with altered(harness.process.store, misreads=lambda: harness.dice.happens(probability)):
        await harness.pass_time(0.0, 20.0)


async def _unreadable(harness: RandomHarness) -> None:
    harness.fault("the store cannot be read")
    with altered(harness.process.store, unreadable=True):
        await harness.pass_time(0.0, 3.0)


async def _lag(harness: RandomHarness) -> None:
    harness.fault("what is read of the store lags behind")
    with harness.process.store.lagging():
        if harness.dice.happens(0.5):
            await people.set_control(harness)
        await harness.pass_time(0.0, 10.0)


def _jump(harness: RandomHarness) -> None:
    seconds = harness.dice.seconds(-300.0, 300.0) * harness.dice.pick((1, 1, 300))
    harness.fault(f"the wall clock jumps by {seconds:.0f} s")
    harness.jump(seconds)


async def _contradict(harness: RandomHarness) -> None:
    """A person changes their mind about a pin after the clock went back: the last word counts."""
    newest = max(harness.witness.incarnations, default=0)
    if newest < 2:
        return
    id = harness.dice.pick(IDS)
    first, last = harness.dice.number(1, newest - 1), newest
    if harness.dice.happens(0.5):
        first, last = last, first
    await harness.command(Pin(selector=id, reason="because", seconds=None, incarnation=first))
    harness.fault("the wall clock goes back")
    harness.jump(-200.0)
    await harness.command(Pin(selector=id, reason="on second thought", seconds=None, incarnation=last))


# --- processes -----------------------------------------------------------------------


def _kill(harness: RandomHarness) -> None:
    harness.fault(f"{harness.process.name} is killed")
    raise Crash


async def _kill_in_a_turndown(harness: RandomHarness) -> None:
    """Whatever the progress of a turndown, it continues in time when the process is another one."""
    stages = (Reason.TURNDOWN_STANDS, Reason.PUSHING, Reason.STILL_REFERENCED)
    leaving = [
        id
        for id, decision in harness.witness.decisions.items()
        if decision.condition.reason in stages
        and (last := harness.witness.last(id)) is not None
        and harness.witness.turndown(last) is not None
    ]
    if not leaving:
        return
    for _ in range(harness.dice.number(1, 3)):
        await harness.kill(" in a turndown")
        await harness.pass_time(0.0, 15.0)
    await harness.quiet_period()


async def _kill_twice_in_a_push(harness: RandomHarness) -> None:
    """The end of a push is unknown, and two processes find that out, one after the other."""
    production = harness.production
    running = sorted(operation.asset for operation in production.running.values())
    if not running:
        return
    id = harness.dice.pick(running)
    production.mute.add(id)
    try:
        for _ in range(2):
            await harness.kill(f" in a push of {id}")
            await harness.pass_time(0.0, 10.0)
    finally:
        production.mute.discard(id)
    await harness.quiet_period()


def _die_at_commit(harness: RandomHarness) -> None:
    process = harness.process
    process.store.dies = harness.dice.pick(("before", "within", "after"))
    harness.fault(f"{process.name} dies {process.store.dies} its next commit")


async def _hold(harness: RandomHarness) -> None:
    """Stop the process for a time."""
    process = harness.process
    process.hold()
    try:
        await harness.pass_time(0.0, 40.0)
    finally:
        process.release()


async def _take_over(harness: RandomHarness) -> None:
    """The process is stopped and thought dead; when it continues, another one has taken over."""
    late = harness.process
    late.hold()
    await harness.begin(out_of_order=late.store.out_of_order)
    try:
        await harness.pass_time(0.0, 20.0)
    finally:
        late.store.out_of_order = False  # or it would not find out for as long as that lasts
        late.release()
