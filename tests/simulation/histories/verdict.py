"""What must be true at the end of a history, when nothing has gone wrong for long enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Condition, Status
from lehr.model.diff import Goal
from lehr.testing.world import PARTITION, Thing
from tests.simulation.histories.capacity import HELD
from tests.simulation.histories.witness import things

if TYPE_CHECKING:
    from tests.simulation.histories.history import History


async def judge(history: History) -> None:
    """Add what is wrong to the history's violations."""
    records = history.plane.store.records
    for operation in records.open_operations(PARTITION):
        _say(history, "I7", f"operation {operation.id} of {operation.asset} is still open")
    _nothing_lost(history)
    await _at_rest(history)
    for asset in things(history.witness.assets().values()):
        _converged(history, asset)
    for id in _departed(history):
        _left_alone_or_removed(history, id)
    if history.world.two_at_once:
        _say(history, "I5", f"two pushes at once of {history.world.two_at_once}")


def _say(history: History, rule: str, what: str) -> None:
    history.violations.append(f"{rule}: {what}")


def _nothing_lost(history: History) -> None:
    """I12: whatever was written is still there."""
    records, intent, witness = history.plane.store.records, history.plane.store.intent, history.witness
    stored = {item.id for item in records.operations(PARTITION, limit=100_000)}
    for id in witness.admitted:
        if id not in stored:
            _say(history, "I12", f"operation {id} is lost")
    for sequence, published in witness.incarnations.items():
        found = intent.incarnation(PARTITION, sequence)
        if found != published.header:
            _say(history, "I12", f"incarnation {sequence} is lost, or another")
    for id, entry in witness.ledger.items():
        if records.ledger(AssetKey(PARTITION, AssetId(id))) != entry:
            _say(history, "I12", f"the ledger's entry of {id} is lost, or another")
    used, _until = records.usage(HELD, history.clock.now())
    if used:
        _say(history, "I7", f"{used} reservations are held by nobody")


async def _at_rest(history: History) -> None:
    enforcer = history.plane.enforcer
    for _ in range(100):
        if enforcer.at_rest:
            break
        await history.clock.sleep(0.5)  # a resync may be under way
    else:
        _say(history, "I7", "the Enforcer does not come to rest")
    for id in enforcer.unsettled:
        condition = _condition(history, id)
        if condition is not None and condition.status.settled:
            _say(history, "I8", f"{id} is {condition.status}, and counts as unsettled")


def _condition(history: History, id: str) -> Condition | None:
    found = history.plane.store.records.standing(AssetKey(PARTITION, AssetId(id)))
    return None if found is None else found.condition


def _converged(history: History, asset: Asset) -> None:
    """I7: production is as intent says. What holds an asset then is what intent itself says."""
    condition = _condition(history, asset.id)
    if condition is None:
        _say(history, "I8", f"nothing is known of {asset.id}")
        return
    stands = (condition.status, condition.reason)
    observed = history.world.values.get(asset.id)
    if history.witness.turndown(asset) is None:
        wanted, allowed = _value(history, asset), {(Status.CONVERGED, "AsIntended")}
    elif history.witness.stays(asset.id):
        wanted, allowed = _value(history, asset), {(Status.WAITING, "StillReferenced")}
    else:
        wanted, allowed = None, {(Status.TURNED_DOWN, "Removed")}
    if stands not in allowed:
        _say(history, "I7", f"{asset.id} is {stands}, not {allowed}: {condition.message}")
    if observed != wanted:
        _say(
            history, "I7", f"{asset.id} is {observed!r} in production, not {wanted!r}, and stands as {stands}"
        )


def _value(history: History, asset: Asset) -> str:
    registry, assets = history.plane.registry, history.witness.assets()
    payload = registry.payload(asset, Thing)
    read = [registry.payload(assets[id], Thing).value for id in payload.reads]
    return "+".join([payload.value, *read])


def _departed(history: History) -> list[str]:
    witness = history.witness
    known = {asset.id for item in witness.incarnations.values() for asset in things(item.assets.values())}
    return sorted(known - witness.assets().keys())


def _left_alone_or_removed(history: History, id: str) -> None:
    """I4: what left intent with a turndown is removed; what was let go is left, and said to be."""
    condition, last = _condition(history, id), history.witness.last(id)
    assert last is not None
    if condition is None:
        return  # It left before anybody had looked at it.
    if history.witness.turndown(last) is None:
        if condition.status is not Status.ORPHANED:
            _say(history, "I8", f"{id} was let go, and stands as {condition.status} {condition.reason}")
        return
    entry = history.witness.ledger.get(id)
    if condition.status is not Status.TURNED_DOWN:
        _say(history, "I7", f"{id} left with a turndown, and stands as {condition.status} {condition.reason}")
    elif entry is None or entry.goal is not Goal.ABSENT:
        _say(history, "I7", f"{id} is said to be turned down, which the ledger does not know")
