"""The obstacle of an asset must exist: judged while nothing happens, by production and people.

An asset that nothing wakes any more looks well: it reports what it waits for. Whether that has long
happened is seen from outside. So this needs no end of the history, at which the last publication
wakes all assets, and hides a forgotten one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lehr.model.addons import DEPENDS_ON
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Condition, Decision, Status, Verdict
from lehr.model.diff import Goal
from lehr.model.reason import Reason
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.look_faults import blinded_by
from lehr.testing.world import THING

if TYPE_CHECKING:
    from lehr.testing.sim.random_harness import RandomHarness

_LATE_SECONDS = 5.0
"""By so much may a turn be late without a word: turns queue for a lane's workers."""

_BY_CAPACITY = f"/addons/{DEPENDS_ON}/capacity/"
_BY_TIME = (Reason.RETRY_BUDGET, Reason.LIMIT_REACHED, Reason.TURNDOWN_STANDS)
_NOTHING_DIFFERS = (Reason.STILL_REFERENCED, Reason.TURNDOWN_STANDS)
_COMES_AGAIN = (Status.RETRYING, Status.UNKNOWN)
_OUT_OF_CARE = (Status.TURNED_DOWN, Status.ORPHANED)


def complaints(harness: RandomHarness) -> set[str]:
    """Assets that seem to be forgotten now, one line each, with the rule's id.

    A turn may be about to notice: only a complaint that remains for some time counts, so each line
    is the same for as long as it is true.
    """
    found: set[str] = set()
    for id in IDS:
        condition, decision = harness.process.condition(id), harness.witness.decisions.get(id)
        last = harness.witness.last(id)
        if condition is None or decision is None or last is None or last.type != THING:
            continue
        state = f"{id} is {condition.status} {condition.reason}"
        found.update(
            f"{rule}: {state} since {decision.at:.1f}, and {what}"
            for rule, what in (
                *_promise(harness, id, condition),
                *_hold(harness, last, decision, condition),
                *_awaited(harness, decision, condition),
                *_intent(harness, last, condition),
            )
        )
    return found


Complaint = tuple[str, str]
"""The rule, and what is wrong."""


def _promise(harness: RandomHarness, id: str, condition: Condition) -> Iterator[Complaint]:
    """I7: an asset due at a time has its turn then, and each retry has a time."""
    now = harness.clock.now()
    if condition.status in _OUT_OF_CARE:
        return
    if condition.next_at is not None and condition.next_at < now - _LATE_SECONDS:
        yield "I7", f"should have come again at {condition.next_at:.1f}"
    if condition.next_at is None and condition.status in _COMES_AGAIN:
        yield "I8", "has no time of its next try"
    asked = harness.production.asked.get(id)
    if condition.resync is not None and asked is not None:
        due = asked + condition.resync
        if harness.clock.monotonic() > due + _LATE_SECONDS:
            yield "I7", f"should have been looked at {due:.1f} s after the beginning"
    pushed = {operation.asset for operation in harness.production.running.values()}
    if condition.status is Status.PUSHING and id not in pushed:
        yield "I7", "its push has ended"


def _hold(  # noqa: C901 - one case for each reason
    harness: RandomHarness, last: Asset, decision: Decision, condition: Condition
) -> Iterator[Complaint]:
    """I7: whatever holds it is there."""
    active_control, declared = harness.witness.active_control, harness.witness.declared
    id, now = last.id, harness.clock.now()
    match condition.reason:
        case Reason.PAUSED if active_control(ControlKind.PAUSE, last, now) is None:
            yield "I7", "no pause is active"
        case Reason.PINNED_TO_NOTHING if active_control(ControlKind.PIN, last, now) is None:
            yield "I7", "no pin is active"
        case Reason.OBSERVE_ONLY if not declared("lehr.ObserveOnly", last, now):
            yield "I7", "nothing declares that it is only observed"
        case Reason.CONCURRENCY_LIMIT if _has_place(harness):
            yield "I9", "there are places for its push"
        case Reason.TURNDOWN_STANDS if (late := harness.liveness.turndowns.late(last)) > _LATE_SECONDS:
            yield "I7", f"its time was up at {now - late:.1f}"
        case Reason.LIMIT_REACHED if _within_limits(harness, last, decision):
            yield "I9", "the limits have room"
        case Reason.STILL_REFERENCED if not harness.witness.referrers(id) and _near_settled(harness, id):
            yield "I7", "nothing refers to it"
        case Reason.APPROVAL_NEEDED if _approved(harness, last, decision, now):
            yield "I7", "it is approved"
        case Reason.DIFF_FAILED | Reason.OUTCOME_UNKNOWN if _sees_again(harness, id, condition):
            yield "I7", "what it could not be compared without is there"
        case Reason.PUSH_STALLED | Reason.PUSHED_STILL_DIFFERENT if _asked_in_vain(harness, id, condition):
            yield "I7", "a person has asked for a retry since its last push began"
    waiting = [verdict for verdict in decision.verdicts if not verdict.allow]
    over = waiting and all(_is_over(harness, last, decision, verdict) for verdict in waiting)
    if over and condition.status is Status.WAITING:
        yield "I7", "nothing of what it waits for is there"
    yield from _unaware(harness, decision, waiting)
    if condition.next_at is None and _needs_time(condition, waiting):
        yield "I8", "only time can help it, and it has no time of its next try"


def _awaited(harness: RandomHarness, decision: Decision, condition: Condition) -> Iterator[Complaint]:
    """I7: an output that it waits for is not known."""
    if condition.reason == Reason.OUTPUT_UNKNOWN and harness.witness.outputs.are_known(decision):
        yield "I7", "the outputs that it waits for are known"


def _within_limits(harness: RandomHarness, last: Asset, decision: Decision) -> bool:
    """Whether a push would be within every limit that admission counts."""
    content, now = harness.witness.assets(decision.content).get(last.id, last), harness.clock.now()
    limits = harness.witness.payloads("lehr.RateLimit")
    with_room = all(harness.witness.rate_limits.has_room(content, limit, now) for limit in limits)
    return with_room and harness.liveness.turndowns.has_room(last.id, decision.goal)


def _has_place(harness: RandomHarness) -> bool:
    """Whether a push could begin: none is under way, or about to be, in one of the places."""
    return len(harness.production.running) < harness.profile.pushes and not harness.process.committing.busy


def _needs_time(condition: Condition, waiting: list[Verdict]) -> bool:
    """Whether no event signals that it may continue."""
    return condition.reason in _BY_TIME or any(
        verdict.until is not None and condition.reason == verdict.reason for verdict in waiting
    )


def _near_settled(harness: RandomHarness, id: str) -> bool:
    """Whether everything ever joined with it is done: a removed asset reports when that was seen."""
    found = (harness.process.condition(other) for other in harness.witness.joined().get(id, ()))
    return all(condition is None or condition.status.settled for condition in found)


def _sees_again(harness: RandomHarness, id: str, condition: Condition) -> bool:
    """Whether the asset that it is reached through has settled, so that a look would succeed."""
    other = harness.production.blind.get(id)
    if (
        other is None
        or not condition.message.endswith(blinded_by(other))
        or id in harness.production.look_faults
    ):
        return False
    settled = harness.process.condition(other)
    last = harness.witness.last(id)
    content = None if last is None else _in_force(harness, last)
    refers = content is not None and other in {item.target for item in harness.registry.mentions(content)}
    there = other in harness.production.values
    return refers and there and settled is not None and settled.status is Status.CONVERGED


def _approved(harness: RandomHarness, last: Asset, decision: Decision, now: float) -> bool:
    return decision.diff is not None and any(
        control.kind is ControlKind.APPROVAL
        and control.diff_digest == decision.diff.digest()
        and control.selector.matches(last)
        and control.is_active(now)
        for control in harness.witness.controls.values()
    )


def _asked_in_vain(harness: RandomHarness, id: str, condition: Condition) -> bool:
    asked, began = harness.liveness.asked_again.get(id), harness.liveness.began.get(id)
    stalled = condition.status is Status.STALLED
    return stalled and asked is not None and began is not None and began < asked


def _in_force(harness: RandomHarness, last: Asset) -> Asset:
    """The version of an asset that counts now: its last one, or that of its pin or release."""
    sequence = harness.liveness.contents.incarnation(last.id, max(harness.witness.incarnations))
    return harness.witness.assets(sequence).get(last.id, last)


def _is_over(harness: RandomHarness, last: Asset, decision: Decision, verdict: Verdict) -> bool:
    """Whether what a check waited for has happened."""
    witness, now = harness.witness, harness.clock.now()
    content = witness.assets(decision.content).get(last.id, last)
    # A pin may have moved since: a turn that waits for the same again is not recorded.
    pinned = _in_force(harness, last)
    if verdict.reason == Reason.FROZEN:
        return not any(
            witness.active_control(ControlKind.FREEZE, asset, now) is not None
            or witness.declared("lehr.Freeze", asset, now)
            for asset in (last, content, pinned)
        )
    if verdict.reason == Reason.OUTSIDE_WINDOW:
        return not any(witness.closed(asset, now) for asset in (last, content, pinned))
    if verdict.reason == Reason.RATE_LIMITED:
        return witness.rate_limits.has_room(content, verdict.check.partition("/")[2], now)
    turns = (decision, _as_pinned_now(harness, last, decision))
    return bool(verdict.wait_for) and not any(
        _differs(harness, turn, id) for turn in turns for id in verdict.wait_for
    )


def _as_pinned_now(harness: RandomHarness, last: Asset, decision: Decision) -> Decision:
    """`decision` with the content that a turn would have now.

    A turn under a pin that was set or lifted since is not recorded if it waits for the same.
    """
    pin = harness.witness.active_control(ControlKind.PIN, last, harness.clock.now())
    evidence = {name: value for name, value in decision.evidence.items() if name != "pin"}
    if pin is None:
        return replace(decision, evidence=evidence)
    return replace(decision, content=pin.incarnation or 0, evidence=evidence | {"pin": pin.id})


def _differs(harness: RandomHarness, decision: Decision, id: str) -> bool:
    """Whether an asset may still be what another one's turn would wait for."""
    witness, production, condition = harness.witness, harness.production, harness.process.condition(id)
    if id in witness.open or id in production.look_faults:
        return True
    if condition is not None and not condition.status.settled and condition.reason not in _NOTHING_DIFFERS:
        return True  # its own next turn finds out, and reports it
    content = decision.content
    if decision.goal is not Goal.PRESENT:
        content = decision.governing
    if decision.asset in witness.assets() and "pin" not in decision.evidence:
        content = max(witness.incarnations)
        if witness.releases.governs(decision.asset) and decision.goal is Goal.PRESENT:
            content = harness.liveness.contents.incarnation(decision.asset, content)
    # A push that goes back to older content does not wait for others to go back.
    own = max(content, harness.liveness.contents.incarnation(AssetId(id), decision.governing))
    contents = {content} if _names(harness, decision, id) else {own}
    outlives_intent = decision.asset not in witness.assets() and "pin" not in decision.evidence
    if outlives_intent or _goes_first(harness, decision, id):
        contents.add(own)
    return all(_differs_at(harness, id, content) for content in contents)


def _differs_at(harness: RandomHarness, id: str, content: int) -> bool:
    intended = _intended(harness, id, content)
    if intended is None or harness.production.values.get(id) != intended:
        return True
    return not harness.production.is_connected(harness.witness.assets(content)[AssetId(id)])


def _goes_first(harness: RandomHarness, decision: Decision, id: str) -> bool:
    """Whether the content of an asset refers to another one only as what has to be pushed before."""
    asset = harness.witness.assets(decision.content).get(decision.asset)
    if asset is None or decision.goal is not Goal.PRESENT:
        return False
    by_capacity = {
        item.target for item in harness.registry.mentions(asset) if item.path.startswith(_BY_CAPACITY)
    }
    return AssetId(id) in harness.registry.dependencies(asset) and id not in by_capacity


def _names(harness: RandomHarness, decision: Decision, id: str) -> bool:
    """Whether the content of an asset refers to another one directly, or that one to it.

    An asset that the content has may also refer to it since then, and is compared at that content as well.
    """
    assets, last = harness.witness.assets(decision.content), harness.witness.last(id)
    if id not in assets or last is None:
        return False
    own = harness.registry.mentions(_in_force(harness, last))
    if any(item.target == decision.asset and item.path.startswith(_BY_CAPACITY) for item in own):
        return True
    pairs = ((decision.asset, id), (id, decision.asset))
    return any(
        one in assets and other in {item.target for item in harness.registry.mentions(assets[one])}
        for one, other in pairs
    )


def _unaware(harness: RandomHarness, decision: Decision, waiting: list[Verdict]) -> Iterator[Complaint]:
    """I7: an asset that was seen to differ does not count as settled, with the content of both."""
    if {"pin", "release"} & decision.evidence.keys():
        return  # It is compared at content that is not what the other one is to have.
    for id in dict.fromkeys(other for verdict in waiting for other in verdict.wait_for):
        condition, last = harness.process.condition(id), harness.witness.last(id)
        if condition is None or condition.reason != Reason.AS_INTENDED or last is None:
            continue
        pinned = harness.witness.active_control(ControlKind.PIN, last, harness.clock.now()) is not None
        faulty = id in harness.production.look_faults
        if not pinned and not faulty and _differs(harness, decision, id):
            yield "I7", f"{id}, which it waits for, does not know that it differs"


def _intended(harness: RandomHarness, id: str, content: int | None = None) -> str | None:
    """Intended production of a thing now, with the content of an incarnation, by default the newest.

    None if it is not there, or something that it reads is not.
    """
    newest = max(harness.witness.incarnations)
    return harness.liveness.contents.value(id, newest if content is None else content, newest)


def _intent(harness: RandomHarness, last: Asset, condition: Condition) -> Iterator[Complaint]:
    """I7: a settled asset is done with what is published, and with every hint."""
    witness, id = harness.witness, last.id
    assets = witness.assets()
    if condition.status is Status.ORPHANED and id in assets:
        yield "I8", "intent has it"
    if (pin := witness.active_control(ControlKind.PIN, last, harness.clock.now())) is not None:
        yield from _pinned(harness, pin, last, condition)
        return
    if condition.status is Status.TURNED_DOWN and witness.turndown(last) is None:
        yield "I7", "its turndown is taken back"
    elif condition.status is Status.TURNED_DOWN and id in assets and witness.stays(id):
        yield "I7", "something that stays needs it"
    if witness.releases.governs(id):
        return
    if condition.reason == Reason.AS_INTENDED and harness.profile.gentle and id in assets:
        observed, intended = harness.production.values.get(id), _intended(harness, id)
        if intended not in (None, observed) and witness.turndown(last) is None:
            yield "I7", f"it is {observed!r} in production, not {intended!r}"
        elif intended is not None and _has_lost_touch(harness, assets[AssetId(id)]):
            yield "I7", "it is not connected to what it reads"


def _has_lost_touch(harness: RandomHarness, asset: Asset) -> bool:
    """Whether what it reads is all there, and it was made with other names of that."""
    names = harness.production.names
    reads = asset.document()["payload"]["reads"]
    return all(id in names for id in reads) and not harness.production.is_connected(asset)


def _pinned(harness: RandomHarness, pin: Control, last: Asset, condition: Condition) -> Iterator[Complaint]:
    """I7: a settled asset is done with what its pin names."""
    witness, id = harness.witness, last.id
    assets = {} if pin.incarnation is None else witness.assets(pin.incarnation)
    if condition.status is not Status.CONVERGED or not harness.profile.gentle or id not in assets:
        return
    observed, intended = harness.production.values.get(id), _intended(harness, id, pin.incarnation)
    turned_down = any(witness.turndown(asset) is not None for asset in (last, assets[id]))
    if intended not in (None, observed) and not turned_down and not witness.releases.governs(id):
        yield "I7", f"it is pinned to {pin.incarnation}, and {observed!r} in production, not {intended!r}"
