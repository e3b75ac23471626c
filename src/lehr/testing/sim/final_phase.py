"""The quiet phase of a random history: whatever can recover must settle."""

from __future__ import annotations

from lehr.control.messages import Retry
from lehr.model.control import Control, ControlKind
from lehr.model.lease import LEASE_SECONDS
from lehr.model.writes import RecordAttempt
from lehr.testing.sim import people
from lehr.testing.sim.faults import LASTING_PUSHES, LookFault
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.sim.verdict import judge

MOST_LOST = 2
"""Assets that may stay in trouble: fewer than the places of the limit that all share."""

_LIFTS = 3
"""How often people lift controls: the store may not have taken them up, and expired ones are refused."""

_LEASES_SECONDS = 2 * LEASE_SECONDS
"""How long the last process may stand by: until the lease of one that is gone ends."""

_LOOK_SECONDS = 17.0
_STAYS_SECONDS = 60.0
"""How long everything must stay as it should, once it is so."""


async def pass_by(harness: RandomHarness) -> None:
    """Let it be, until all is as it should be or must long have been."""
    gentle = harness.profile.gentle
    await _heal(harness)
    harness.intent.calm()
    renewed = not gentle and harness.dice.happens(0.5)
    if renewed:
        harness.intent.renew(*harness.intent.things)
    if unannounced := harness.dice.happens(0.3):
        _publish_unannounced(harness)
    harness.edit()  # and no look at it is requested: the source is followed
    await harness.alive(lambda harness: harness.process.pass_time(2.0))
    if unannounced:  # the next notification is not the next
        if harness.dice.happens(0.5):
            harness.intent.take_back()
            renewed = False
        else:
            harness.intent.renew(harness.dice.pick(list(harness.intent.things)))
        harness.edit()
        await harness.alive(lambda harness: harness.process.pass_time(2.0))
    for _ in range(_LIFTS):
        for control in blocking_controls(harness):
            await people.lift(harness, control)
    if not gentle:
        await _retry(harness, renewed)
    await settle(harness)
    if not gentle:
        await _drift_unseen(harness)
    await harness.clock.sleep(_STAYS_SECONDS)
    harness.commits = 0.0  # or another turn begins while the last is written down
    await come_to_rest(harness)


async def settle(harness: RandomHarness) -> None:
    """Approve what waits for that, until all is as it should be or must long have been."""
    began = harness.clock.monotonic()
    while harness.clock.monotonic() < began + _seconds(harness):
        await harness.clock.sleep(_LOOK_SECONDS)
        await people.approve(harness)
        if not judge(harness):
            break


def _seconds(harness: RandomHarness) -> float:
    """Seconds after which everything must have converged."""
    profile = harness.profile
    if profile.gentle:
        return 1500.0  # without a retry: the longest backoff has to pass
    return 400.0 + 3 * profile.resync + (600.0 if profile.jumps else 0.0)


async def _heal(harness: RandomHarness) -> None:
    _choose_lost(harness)
    lost = ", ".join(sorted(harness.lost))
    harness.trace.note("phase", f"all is well from here on{f', but for {lost}' if lost else ''}")
    harness.production.heal(harness.lost)
    harness.production.seconds = 1.0
    harness.pace.calm()
    harness.clock.jump(-harness.offset)
    for process in harness.processes:
        process.store.out_of_order = False
        process.store.dies = None
    await harness.alive(lambda harness: harness.process.pass_time(5.0))
    began = harness.clock.monotonic()
    while harness.process.plane.standby and harness.clock.monotonic() < began + _LEASES_SECONDS:
        # Until it enforces, it refuses the commands of people.
        await harness.alive(lambda harness: harness.process.pass_time(1.0))


def blocking_controls(harness: RandomHarness) -> list[Control]:
    """Anything that would hold assets for ever."""
    jumps = harness.profile.jumps
    held = [item for item in harness.controls() if item.kind is not ControlKind.APPROVAL]
    return [item for item in held if item.expires_at is None or jumps]


def _choose_lost(harness: RandomHarness) -> None:
    """Some assets may stay in trouble for ever: they must delay no other (I9)."""
    if harness.dice.happens(0.5):
        return
    production = harness.production
    for _ in range(harness.dice.number(1, MOST_LOST)):
        id = harness.dice.pick(IDS)
        if harness.dice.happens(0.5):
            production.push_faults[id] = harness.dice.pick(LASTING_PUSHES)
        else:
            production.look_faults[id] = harness.dice.pick(tuple(LookFault))
        harness.lost |= {id}


async def _retry(harness: RandomHarness, renewed: bool) -> None:
    """A stalled asset gets a retry, or newer content, amid hints that must not take its place."""
    gone = [id for id in IDS if id not in harness.intent.things]
    harness.hint_all()
    if harness.dice.happens(0.5):
        await harness.clock.sleep(0.2)
    await harness.command(Retry(selector=",".join(gone or IDS) if renewed else "all"))
    harness.hint_all()


def _publish_unannounced(harness: RandomHarness) -> None:
    """The next publication is not announced, because the store fails just then."""
    harness.intent.renew(harness.dice.pick(list(harness.intent.things)))
    harness.fault("the store fails once, after the next publication")
    harness.process.store.fail_once(RecordAttempt)


async def _drift_unseen(harness: RandomHarness) -> None:
    """Production is changed, and not noticed before the resync."""
    steady = [
        id
        for id, spec in harness.intent.things.items()
        if spec.turndown is None and not spec.destroys and id not in harness.lost
    ]
    if steady:
        id = harness.dice.pick(steady)
        harness.trace.note("drift", f"{id} is changed by hand, without a notification")
        harness.production.put(id, "by hand, unseen")
        await harness.clock.sleep(harness.profile.resync + _STAYS_SECONDS)


async def come_to_rest(harness: RandomHarness) -> None:
    """A resync may be under way, and another begin while the last turns are written down.

    Or a chain of turndowns, each of which must stand for a time before the next one begins.
    """
    process = harness.process
    for _ in range(400):
        if process.enforcer.at_rest:
            await process.plane.committer.flush()
            if process.enforcer.at_rest:
                break
        await harness.clock.sleep(0.5)
