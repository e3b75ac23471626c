"""Two events that meet just when it matters, brought about on purpose: by chance they hardly ever do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lehr.base.digest import Digest
from lehr.control.messages import Approve, Freeze, Lift, Pause, Pin, Retry
from lehr.model.attempt import Publication
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.operation import Operation
from lehr.model.reason import Reason
from lehr.testing.sim.faults import PushFault
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.random_harness import RandomHarness, Step
from lehr.testing.sim.store import altered
from lehr.testing.world import PARTITION

T = TypeVar("T")

_AHEAD_SECONDS = 20_000.0
"""By so much a clock is wrong: for longer than any limit counts, and than a history waits at its end."""

_TOLD_SECONDS = 4.0
"""After so long, a push knows of newer content, and has reached its next step."""

_SAID_SECONDS = 15.0
"""After so long, the result of a pass over the source is written down."""

_RIVAL_SECONDS = 90
_MOST_REPAIRS = 12
"""Pushes of one content in that time against a person who undoes each: the backoff allows half as many."""


Encounter = Callable[[RandomHarness, T], Awaitable[None]]


def _with(choose: Callable[[RandomHarness], T | None]) -> Callable[[Encounter[T]], Step]:
    """Make a step of an encounter with what is chosen, if anything is, while nothing else goes wrong."""

    def step_of(encounter: Encounter[T]) -> Step:
        async def step(harness: RandomHarness) -> None:
            chosen = choose(harness)
            if chosen is not None:
                _in_order(harness)
                await encounter(harness, chosen)

        return step

    return step_of


def _any_thing(harness: RandomHarness) -> str:
    return harness.dice.pick(list(harness.intent.things))


def _any_reference(harness: RandomHarness) -> tuple[str, str] | None:
    references = harness.intent.references()
    return harness.dice.pick(references) if references else None


def _at_rest(harness: RandomHarness) -> str | None:
    """A thing that is as intended and stays; None for none."""
    found = [
        id
        for id, spec in harness.intent.things.items()
        if spec.turndown is None
        and not spec.destroys
        and (condition := harness.process.condition(id)) is not None
        and condition.reason == Reason.AS_INTENDED
    ]
    return harness.dice.pick(found) if found else None


def _in_order(harness: RandomHarness) -> None:
    """Nothing else goes wrong for now."""
    production = harness.production
    production.heal()
    production.seconds = 1.0
    production.looking = {}
    harness.process.store.out_of_order = False


# --- between a turn's beginning and its end -------------------------------------------


@_with(_at_rest)
async def _thaw_during_a_look(harness: RandomHarness, id: str) -> None:
    """The asset that holds another leaves intent while a turn still relying on it looks at production."""
    harness.intent.governing.freeze(id)
    harness.edit()
    await harness.pass_time(2.0, 5.0)
    harness.production.look_slowly(IDS, 4.0)
    harness.change_by_hand(id)
    await harness.pass_time(0.0, 2.0)
    harness.intent.governing.thaw()
    harness.edit()
    await harness.quiet_period()


async def _edit_at_the_start(harness: RandomHarness) -> None:
    """A thing that another one reads is published again while a new process first looks at the other."""
    things = harness.intent.things
    id = harness.dice.pick(list(things))
    read = harness.intent.lean_on(id)
    if read is None:
        return
    _in_order(harness)
    harness.production.look_slowly(IDS, 4.0)
    harness.edit()
    await harness.pass_time(10.0, 20.0)
    await harness.kill()
    await harness.pass_time(0.0, 2.0)
    harness.renew(read)
    await harness.quiet_period()


async def _insist_in_a_queue(harness: RandomHarness) -> None:
    """Stalled assets get a retry while their turns are queued or under way, amid hints."""
    ids = [id for id in harness.intent.things if harness.dice.happens(0.6)]
    _in_order(harness)
    harness.production.push_faults.update(dict.fromkeys(ids, PushFault.STALL))
    harness.renew(*ids)
    await harness.pass_time(5.0, 10.0)
    harness.production.heal()
    harness.production.look_slowly(IDS, 4.0)
    decisions = harness.witness.decisions
    stalled = [id for id in ids if id in decisions and decisions[id].condition.status is Status.STALLED]
    if not stalled:
        return
    harness.hint_all()
    await harness.process.pass_time(harness.dice.pick((0.0, 0.05, 0.5)))
    await harness.command(Retry(selector=harness.dice.pick((",".join(stalled), "all"))))
    harness.hint_all()
    await harness.quiet_period()


@_with(_any_thing)
async def _misread_a_lift(harness: RandomHarness, id: str) -> None:
    """A pause is lifted, and one of the reads that this takes fails."""
    await harness.command(Pause(selector=id, reason="because", seconds=None))
    harness.renew(id)
    await harness.pass_time(2.0, 5.0)
    left = harness.dice.number(0, 12)

    def misreads() -> bool:
        nonlocal left
        left -= 1
        return left == -1

    harness.fault(f"after {left} reads of the store, one fails")
    with altered(harness.process.store, misreads=misreads):
        await harness.command(Lift(kind="pause", selector=id))
    await harness.quiet_period()


async def _refer_while_reads_lag(harness: RandomHarness) -> None:
    """Something refers to an asset about to be removed, and what is read does not show that yet."""
    intent = harness.intent
    id = intent.retire()
    later = [other for other, spec in intent.things.items() if id and other > id and not spec.turndown]
    if id is None or not later:
        return
    _in_order(harness)
    harness.edit()
    await harness.pass_time(1.0, 10.0)
    other = harness.dice.pick(later)
    harness.fault("what is read of the store lags behind")
    harness.process.store.lag()
    try:
        intent.things[other].reads.append(id)
        harness.edit()
        await harness.pass_time(5.0, 40.0)
    finally:
        harness.process.store.catch_up()
        if other in intent.things and id in intent.things[other].reads:
            intent.things[other].reads.remove(id)
        harness.edit()


async def _lose_the_source_aloud(harness: RandomHarness) -> None:
    """The source cannot be read, for whatever reason: that is written down (I8)."""
    _in_order(harness)
    await harness.store_answers()
    harness.fault("the source cannot be read when it has been edited")
    with harness.repository.lost():
        harness.publish()
        harness.repository.announce()
        await harness.process.pass_time(_SAID_SECONDS)
    if harness.process.plane.standby:
        return  # it waits for the lease, and reads no source until then
    attempt = harness.process.store.records.attempt(PARTITION)
    if attempt is None or attempt.publication is not Publication.UNREADABLE:
        publication = None if attempt is None else attempt.publication.value
        harness.witness.broken("I8", f"the source cannot be read, and is reported as {publication}")


# --- pushes ----------------------------------------------------------------------------


@_with(_any_thing)
async def _overtake(harness: RandomHarness, id: str) -> None:
    """Newer content arrives during a push, which is notified and stops early (I7)."""
    harness.production.seconds = 18.0
    harness.renew(id)
    operation = await _pushed(harness, id)
    if operation is None:
        return
    harness.renew(id)
    await harness.process.pass_time(8.0)
    if _goes_on_although_overtaken(harness, operation):
        harness.witness.broken("I7", f"a push of {id} continues although newer content has arrived")


def _goes_on_although_overtaken(harness: RandomHarness, operation: Operation) -> bool:
    """Whether newer content arrived some time ago for an unpinned asset, and its push still runs.

    A push that is detached or hangs cannot be stopped, and content that no read shows yet stops none.
    """
    if harness.process.store.lags:
        return False
    id = operation.asset
    newest, last = harness.witness.newest, harness.witness.last(id)
    under_way = harness.production.running.keys() - harness.production.detached
    if newest is None or last is None or operation.id not in under_way:
        return False
    witness, now = harness.witness, harness.clock.now()
    pinned = witness.active_control(ControlKind.PIN, last, now) is not None
    came = newest.header.created_at > now - _TOLD_SECONDS
    before = witness.assets(operation.governing).get(id)
    held = pinned or witness.pin_may_have_ended(last) or witness.releases.governs(id)
    return not (held or came) and newest.assets.get(id) != before


@_with(_at_rest)
async def _pin_in_a_push(harness: RandomHarness, id: str) -> None:
    """While an asset is pushed, a person pins it to what it was before."""
    before = max(harness.witness.incarnations, default=0)
    harness.production.seconds = 5.0
    harness.renew(id)
    if await _pushed(harness, id) is None:
        return
    await harness.pass_time(0.0, 4.0)
    await harness.command(Pin(selector=id, reason="because", seconds=None, incarnation=before))
    await harness.pass_time(5.0, 10.0)
    await harness.quiet_period()
    await harness.command(Lift(kind="pin", selector=id))


@_with(_at_rest)
async def _pin_twice(harness: RandomHarness, id: str) -> None:
    """A person pins one asset, and then everything: the last word counts."""
    before = max(harness.witness.incarnations, default=0)
    harness.renew(id)
    await harness.pass_time(3.0, 6.0)
    newest = max(harness.witness.incarnations, default=0)
    for selector, incarnation in ((id, before), ("all", newest)):
        await harness.command(Pin(selector=selector, reason="because", seconds=None, incarnation=incarnation))
        await harness.pass_time(0.0, 5.0)
    await harness.quiet_period()
    for selector in (id, "all"):
        await harness.command(Lift(kind="pin", selector=selector))


async def _pushed(harness: RandomHarness, id: str) -> Operation | None:
    """The push of an asset, once it is under way; None if none comes."""
    for _ in range(20):
        for operation in harness.production.running.values():
            if operation.asset == id:
                return operation
        await harness.process.pass_time(0.5)
    return None


@_with(_any_thing)
async def _answer_too_late(harness: RandomHarness, id: str) -> None:
    """A push runs on independently, sometimes for longer than its caller waits."""
    harness.production.push_faults[id] = PushFault.DETACHED
    harness.renew(id)
    await harness.pass_time(25.0, 45.0)
    harness.production.push_faults.pop(id, None)


@_with(_any_reference)
async def _blind_after_a_push(harness: RandomHarness, link: tuple[str, str]) -> None:
    """How a push ended stays unknown until its asset can be reached again."""
    id, ahead = link
    harness.production.push_faults[id] = PushFault.LOST
    harness.renew(id)
    if await _pushed(harness, id) is None:
        return
    await harness.command(Freeze(selector=ahead, reason="because", seconds=None))
    harness.fault(f"{id} is reached through {ahead}, which is taken away")
    harness.production.blind[id] = ahead
    harness.production.take(ahead)
    harness.process.hint(ahead)
    await harness.pass_time(120.0, 200.0)
    harness.production.push_faults.pop(id, None)
    await harness.command(Lift(kind="freeze", selector=ahead))
    await harness.quiet_period()


@_with(_at_rest)
async def _recover(harness: RandomHarness, id: str) -> None:
    """The production of an asset crashes, and starts itself again."""
    harness.trace.note("drift", f"{id} crashes")
    seconds = harness.dice.seconds(2.0, 20.0)
    harness.production.break_down(id, seconds)
    harness.process.hint(id)
    try:
        await harness.process.pass_time(seconds + 1.0)
    finally:
        harness.production.returning.pop(id, None)  # or it would come back whatever has become of it
        harness.process.hint(id)


@_with(_at_rest)
async def _contest(harness: RandomHarness, id: str) -> None:
    """A person undoes each push: it is repaired ever less often (I9)."""
    harness.trace.note("drift", f"another writer changes {id} again and again")
    good, repairs = harness.production.values.get(id), Counter[Digest]()
    for _ in range(_RIVAL_SECONDS):
        if harness.production.values.get(id) == good:
            harness.production.put(id, "by another")
            harness.process.hint(id)
        before = harness.production.applied[id, "present"]
        await harness.process.pass_time(1.0)
        # Other content may be released in between. Its first pushes follow each other quickly again.
        repairs[harness.witness.ledger[id].content_digest] += (
            harness.production.applied[id, "present"] - before
        )
    most = max(repairs.values())
    if most > _MOST_REPAIRS:
        what = f"{id} is pushed {most} times in {_RIVAL_SECONDS} s against a writer that undoes it"
        harness.witness.broken("I9", what)


# --- limits and approvals ----------------------------------------------------------------


async def _limit_halves(harness: RandomHarness) -> None:
    """Two limits count pushes of different things by the same group, each for itself."""
    things = harness.intent.things
    first = [id for id in things if id < "t4"]
    if len(first) == len(things):
        return
    _in_order(harness)
    harness.intent.governing.limit_halves()
    harness.renew(*first)
    await harness.pass_time(3.0, 8.0)
    harness.renew(*(id for id in things if id not in first))
    await harness.quiet_period()
    harness.intent.governing.assets.pop("rate-2", None)
    harness.edit()


async def _count_ahead(harness: RandomHarness) -> None:
    """Pushes are counted by a clock that is ahead, and then is set right."""
    _in_order(harness)
    harness.intent.governing.limit_all()
    for seconds in (_AHEAD_SECONDS, -_AHEAD_SECONDS):
        harness.fault(f"the wall clock jumps by {seconds:.0f} s")
        harness.jump(seconds)
        harness.renew(*harness.intent.things)
        await harness.pass_time(5.0, 20.0)


async def _approve_one_of_two(harness: RandomHarness) -> None:
    """Two assets have the same destructive difference, and a person approves one of them."""
    things = harness.intent.things
    alone = [id for id, spec in things.items() if spec.turndown is None and not spec.names()]
    if len(alone) < 2:
        return
    _in_order(harness)
    first = alone.pop(harness.dice.number(0, len(alone) - 1))
    pair = (first, harness.dice.pick(alone))
    harness.intent.renew(first)
    for id in pair:
        things[id].destroys, things[id].value = True, things[first].value
        harness.production.put(id, "by hand")
        harness.process.hint(id)
    harness.trace.note("drift", f"{' and '.join(pair)} are changed by hand")
    harness.edit()
    await harness.pass_time(3.0, 8.0)
    if (digest := harness.waits_for_approval(first)) is not None:
        await harness.command(Approve(selector=first, reason="seen", seconds=None, diff_digest=digest))
        harness.hint_all()
        await harness.pass_time(3.0, 8.0)
    for id in pair:
        if id in things:
            things[id].destroys = False
    harness.edit()


def steps(harness: RandomHarness) -> Sequence[Step]:
    """All of them, each as often as it is likely."""
    steps: list[Step] = [
        _limit_halves,
        _thaw_during_a_look,
        _edit_at_the_start,
        _overtake,
        _approve_one_of_two,
        _blind_after_a_push,
        _recover,
        _answer_too_late,
        _pin_in_a_push,
        _pin_twice,
        _refer_while_reads_lag,
        _misread_a_lift,
        _lose_the_source_aloud,
        _contest,
    ]
    profile = harness.profile
    if not profile.gentle:
        steps += [_insist_in_a_queue] * 2
    if profile.jumps:
        steps.append(_count_ahead)
    return steps
