"""The calm after a history's rollouts: whatever began must end, and whatever is held must name its cause."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from lehr.checks.push_times import push_times
from lehr.control.messages import AnyRequest, CommandRollout, ReleaseToIntent, Retry
from lehr.model.asset import AssetId
from lehr.model.evidence import RolloutCommand
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.lease import LEASE_SECONDS
from lehr.model.reason import Reason
from lehr.rollouts.figures import RolloutState
from lehr.rollouts.status import RolloutStatus, UnitState
from lehr.strategist.overview import Rollouts
from lehr.testing.sim import people
from lehr.testing.sim.metrics import Answers
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.world import PARTITION

_LOOK_SECONDS = 10.0
_LOOKS_LATE = 5
"""Looks of a policy that pass at each unit besides its soak and deadline."""

_PUSHES_SECONDS = 300.0
"""Time for everything that pushes wait for among themselves, once nothing goes wrong."""

_PATIENCE = 60
"""Tries to get intent published, a second apart."""

_BY_PEOPLE = (RolloutState.PAUSED, RolloutState.HOLDING, RolloutState.BLOCKED)
_LIFTS = 3
_BLOCK = "neither of them can go first"


async def come_to_an_end(harness: RandomHarness, policy: AssetId) -> None:
    """Let nothing go wrong any more, and judge that the rollouts of `policy` end.

    Those that wait for a person do so with a cause; and once a person has decided, they end as well.
    """
    harness.trace.note("phase", "nothing goes wrong any more, and rollouts must end")
    await harness.alive(_recover)
    _leave_alone(harness, policy)
    if not await _publish(harness):
        return  # what holds and removes things is still in force
    for _ in range(_LIFTS):
        for control in harness.controls():
            await harness.alive(partial(people.lift, control=control))
    await _command(harness, Retry(selector="all"))
    await _let_others_go(harness, policy)  # a unit may wait for one of them, as long as they are held
    await _wait(harness, policy)
    await _let_others_go(harness, policy)
    for action in (RolloutCommand.RESUME, RolloutCommand.PROMOTE, RolloutCommand.RETRY):
        await _command(harness, CommandRollout(action=action, policy=policy, reason="it is repaired"))
    await _wait(harness, policy)
    status = status_of(harness, policy)
    if status is not None and status.state in _BY_PEOPLE and _begins_again(harness, status):
        restart = CommandRollout(action=RolloutCommand.RESTART, policy=policy, reason="it is repaired")
        await _command(harness, restart)
        await _wait(harness, policy)
        status = status_of(harness, policy)
    for _ in harness.intent.things:
        if status is None or status.state is not RolloutState.HOLDING or _BLOCK not in status.waits_for:
            break
        # Each promotion lets one more unit go, for which another one may wait.
        promote = CommandRollout(action=RolloutCommand.PROMOTE, policy=policy, reason="it is repaired")
        await _command(harness, promote)
        await _wait(harness, policy)
        status = status_of(harness, policy)
    if status is not None and status.state in _BY_PEOPLE and _contradicts_earlier_content(status):
        return
    if status is not None and status.state is not RolloutState.IDLE:
        what = f"{status.state}: {status.waits_for}"
        harness.witness.broken("I7", f"{policy} does not end when a person has decided, but is {what}")
    elif left := harness.witness.rollouts.behind(policy):
        harness.witness.broken("I7", f"{', '.join(left)} lack their newest content, and {policy} is idle")


def _contradicts_earlier_content(status: RolloutStatus) -> bool:
    """Whether a unit waits for the content of a later wave that is still in production, which has an order.

    Only another order of waves would end that, and the policy is left as it is.
    """
    return Reason.CAPACITY_ORDER in status.waits_for


def _begins_again(harness: RandomHarness, status: RolloutStatus) -> bool:
    """Whether a person restarts a rollout: it may be held by an order that newer content has not.

    Or a unit failed before any push of its new content began, and promoting that changes nothing.
    """
    return _is_of_earlier_content(harness, status) or "lehr rollout restart" in status.unblock


def _reads_what_is_gone(harness: RandomHarness, status: RolloutStatus) -> bool:
    """Whether a unit lacks an output of an asset that intent no longer has, so that nothing makes it.

    A person ends that: a unit that was good has no deadline.
    """
    awaited = {id for decision in harness.witness.decisions.values() for id in decision.awaits}
    gone = bool(awaited - harness.witness.assets().keys())
    return gone and Reason.OUTPUT_UNKNOWN in status.waits_for and status.unblock != ""


def _is_of_earlier_content(harness: RandomHarness, status: RolloutStatus) -> bool:
    newest = harness.witness.newest
    return newest is not None and status.rollout != "" and status.target < newest.header.sequence


async def _command(harness: RandomHarness, request: AnyRequest) -> None:
    await harness.alive(lambda harness: harness.command(request))


async def _let_others_go(harness: RandomHarness, policy: AssetId) -> None:
    """Let assets follow intent again that releases still hold and the policy does not select."""
    own = harness.witness.rollouts.members(policy)
    others = [id for id in harness.witness.releases.ids() if id not in own]
    if others:
        await _command(harness, ReleaseToIntent(selector=",".join(others), reason="it is repaired"))


def status_of(harness: RandomHarness, policy: AssetId) -> RolloutStatus | None:
    """The status of a policy's rollouts, as people see it; None if it is not in force."""
    newest = harness.witness.newest
    if newest is None or policy not in harness.witness.payloads(ROLLOUT_POLICY):
        return None
    store: Any = harness.process.store.read_from
    now = harness.clock.now()
    rollouts = Rollouts(store, harness.registry, newest.header, PARTITION, now, push_times)
    return rollouts.of(policy)


def unexplained(status: RolloutStatus) -> Iterator[str]:
    """I8: whatever waits names its cause, and what would end that."""
    if status.state is not RolloutState.IDLE and not status.waits_for:
        yield f"{status.policy} is {status.state}, and that is all"
    if status.state in _BY_PEOPLE and not status.unblock:
        yield f"{status.policy} waits for a person, and nothing names what to do"
    for unit in () if status.state is RolloutState.BLOCKED else status.units:
        if unit.state in (UnitState.WAITING, UnitState.HELD, UnitState.BAD) and not unit.why:
            yield f"unit {unit.id} of {status.policy} is {unit.state}, and nothing names the cause"


async def _recover(harness: RandomHarness) -> None:
    harness.production.heal()
    harness.production.seconds = 1.0
    harness.metrics.answers = Answers.GOOD
    harness.pace.calm()
    for process in harness.processes:
        process.store.out_of_order = False
        process.store.dies = None
    began = harness.clock.monotonic()
    while harness.process.plane.standby and harness.clock.monotonic() < began + 2 * LEASE_SECONDS:
        await harness.process.pass_time(1.0)


def _leave_alone(harness: RandomHarness, policy: AssetId) -> None:
    """Declare nothing that holds or removes things, but for the policy, and renew something.

    Also no order among things: one of an early wave would fail while it waits for one of a later wave.
    """
    intent, governing = harness.intent, harness.intent.governing
    kept = governing.assets[policy]
    intent.calm()
    governing.assets = {policy: kept}
    for spec in intent.things.values():
        spec.turndown, spec.depends_on, spec.sends_to, spec.needs = None, [], [], {}
    harness.renew(*list(intent.things)[::2])


async def _publish(harness: RandomHarness) -> bool:
    """Wait until what is declared is the newest incarnation: whether it is.

    It is refused while an acknowledgement is missing, or something is gone that is not removed yet.
    """
    for _ in range(_PATIENCE):
        declared = {asset.id: asset.digest for asset in harness.intent.assets()}
        if declared == {id: asset.digest for id, asset in harness.witness.assets().items()}:
            return True
        await harness.alive(lambda harness: harness.process.pass_time(1.0))
        harness.edit()
    return False


async def _wait(harness: RandomHarness, policy: AssetId) -> None:
    """Let time pass until the rollouts have ended or wait for a person, or must long have."""
    began, seconds = harness.clock.monotonic(), _bound(harness, policy)
    while harness.clock.monotonic() < began + seconds:
        await harness.alive(lambda harness: harness.process.pass_time(_LOOK_SECONDS))
        await harness.alive(people.approve)
        status = status_of(harness, policy)
        if status is None:
            continue
        for line in unexplained(status):
            harness.witness.broken("I8", line)
        done = status.state is RolloutState.IDLE and not harness.witness.rollouts.behind(policy)
        if status.state in _BY_PEOPLE or (done and harness.process.enforcer.at_rest):
            return
    status = status_of(harness, policy)
    if status is None or _reads_what_is_gone(harness, status):
        return
    if status.state is RolloutState.RUNNING:
        harness.witness.broken("I7", f"a rollout of {policy} does not end: {status.waits_for}")


def _bound(harness: RandomHarness, policy: AssetId) -> float:
    """Seconds in which all units can be updated one after the other, each as slowly as the policy allows.

    Twice: the rollout under way may fail at a deadline, and the newest content follows.
    """
    payload = harness.intent.governing.assets[policy].document()["payload"]
    validation = payload.get("validation", {})
    soak = max(wave.get("soak_seconds", 0.0) for wave in payload["target_selection"].get("waves", [{}]))
    looks = _LOOKS_LATE * validation["look_every"]
    return _PUSHES_SECONDS + 2 * len(harness.intent.things) * float(soak + validation["deadline"] + looks)
