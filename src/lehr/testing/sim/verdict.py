"""Rules for the end of a history, when nothing has gone wrong for long enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Status
from lehr.model.diff import Goal
from lehr.model.reason import Reason
from lehr.sdk.store import PrunedError
from lehr.testing.sim.capacity import HELD
from lehr.testing.sim.harness import Harness
from lehr.testing.sim.things import intended_value
from lehr.testing.sim.witnessed_state import things
from lehr.testing.world import PARTITION


def judge(harness: Harness) -> list[str]:
    """Everything wrong now, one line each."""
    return [
        *_published(harness),
        *_left_open(harness),
        *_nothing_lost(harness),
        *_at_rest(harness),
        *_as_intended(harness),
    ]


def whole(harness: Harness) -> Iterator[str]:
    """Everything wrong with the state as a whole, at the very end."""
    store, witness = harness.process.store, harness.witness
    for damage in store.check(lambda partition: harness.registry):
        yield f"I2: {damage.what}: {damage.why}"
    pruned = set()
    for sequence, published in witness.incarnations.items():
        try:
            found = {asset.id: asset for asset in store.intent.assets(PARTITION, sequence)}
        except PrunedError:
            pruned.add(sequence)
            continue
        if {id: asset.digest for id, asset in found.items()} != _digests(published.assets):
            yield f"I2: incarnation {sequence} does not read as on its first day"
    applied = {entry.content for entry in witness.ledger.values() if entry.goal is not Goal.ABSENT}
    pins = [item for item in witness.controls.values() if item.is_active(harness.clock.now())]
    # Expired controls are pruned, and a clock that goes back does not bring them back.
    pinned = {item.incarnation for item in pins if not (witness.jumped and item.expires_at)}
    released = witness.releases.needed()
    for sequence in pruned & {*applied, *pinned, *released, max(witness.incarnations, default=0)}:
        yield f"I12: incarnation {sequence} is pruned, although it is needed"


def _digests(assets: Mapping[str, Asset]) -> dict[str, str]:
    return {id: asset.digest for id, asset in assets.items()}


def _published(harness: Harness) -> Iterator[str]:
    """I7 of publishing: the source's declarations are in force."""
    newest, revision = harness.witness.newest, harness.repository.newest.revision.revision
    wanted = harness.witness.publications.revisions.get(revision)
    if wanted != _digests(harness.witness.assets()):
        yield f"I7: what the source declares is not in force, but {newest and newest.header.name}"


def _left_open(harness: Harness) -> Iterator[str]:
    records = harness.process.store.records
    still = records.open_operations(PARTITION)
    # An unknown outcome whose comparison needs an output of a broken asset waits with it.
    connecting = harness.production.connecting
    excused = _connected(harness, harness.lost) if connecting else harness.lost
    for operation in still:
        if operation.asset not in excused:
            yield f"I7: operation {operation.id} of {operation.asset} is still open"
    used, _until = records.usage(HELD, harness.clock.now())
    if used != len(still):
        yield f"I7: {used} shares are held by {len(still)} pushes"
    for process in harness.processes[:-1]:
        if not process.dead and not process.plane.standby:
            yield f"I5: {process.name} continues although another one has taken over"


def _as_intended(harness: Harness) -> Iterator[str]:
    outside = _connected(harness, harness.lost)
    for asset in things(harness.witness.assets().values()):
        if asset.id not in outside:
            yield from _converged(harness, asset)
    for id in _departed(harness):
        if id not in outside:
            yield from _left_alone_or_removed(harness, id)


def _connected(harness: Harness, ids: Iterable[str]) -> set[str]:
    """`ids`, and everything that is or was joined with one of them by references, in any direction.

    Order among dependencies and dependants, and turndowns that wait for referrers, may keep these
    from converging while one of them is in trouble; nothing else may (I9).
    """
    joined = harness.witness.joined()
    found, ahead = set(ids), list(ids)
    while ahead:
        near = joined.get(ahead.pop(), set()) - found
        ahead += near
        found |= near
    return found


def _nothing_lost(harness: Harness) -> Iterator[str]:
    """I12: whatever was written is still there."""
    records, intent, witness = harness.process.store.records, harness.process.store.intent, harness.witness
    stored = {item.id for item in records.operations(PARTITION, limit=100_000)}
    for id in witness.admitted:
        if id not in stored and id not in witness.let_prune:
            yield f"I12: operation {id} is lost"
    for sequence, published in witness.incarnations.items():
        found = intent.incarnation(PARTITION, sequence)
        if found != published.header:
            yield f"I12: incarnation {sequence} is lost, or another"
        if published.header.sources[0].revision not in harness.repository.kept:
            yield f"I2: the revision that {published.header.name} was made from is not kept"
    for id, entry in witness.ledger.items():
        if records.ledger(AssetKey(PARTITION, AssetId(id))) != entry:
            yield f"I12: the ledger's entry of {id} is lost, or another"


def _at_rest(harness: Harness) -> Iterator[str]:
    enforcer = harness.process.enforcer
    if not enforcer.at_rest and not harness.lost:
        yield "I7: the Enforcer does not settle"
    for id in sorted(enforcer.unsettled):
        condition = harness.process.condition(id)
        if condition is not None and condition.status.settled:
            yield f"I8: {id} is {condition.status}, and counts as unsettled"


def _converged(harness: Harness, asset: Asset) -> Iterator[str]:
    """I7: production matches intent. Only intent itself holds an asset then."""
    condition = harness.process.condition(asset.id)
    if condition is None:
        yield f"I8: nothing is known of {asset.id}"
        return
    state = (condition.status, condition.reason)
    observed = harness.production.values.get(asset.id)
    wanted: str | None = intended_value(harness.witness.assets(), asset.id, harness.registry)
    if harness.witness.turndown(asset) is None:
        expected = (Status.CONVERGED, Reason.AS_INTENDED)
    elif harness.witness.stays(asset.id):
        expected = (Status.WAITING, Reason.STILL_REFERENCED)
    else:
        expected, wanted = (Status.TURNED_DOWN, Reason.REMOVED), None
    if state != expected:
        yield f"I7: {asset.id} is {state}, not {expected}: {condition.message}"
    if (entry := harness.witness.ledger.get(asset.id)) is None:
        yield f"I12: {asset.id} is {state}, and is not in the ledger"
    elif (entry.goal is Goal.ABSENT) is not (wanted is None):
        yield f"I12: {asset.id} is {state}, and {entry.goal} in the ledger"
    if observed != wanted:
        yield f"I7: {asset.id} is {observed!r} in production, not {wanted!r}, with status {state}"
    elif wanted is not None and not harness.production.is_connected(asset):
        yield f"I7: {asset.id} is not connected to what it reads, with status {state}"
    yield from _outputs_known(harness, asset.id, condition.status)


def _departed(harness: Harness) -> list[str]:
    witness = harness.witness
    known = {asset.id for item in witness.incarnations.values() for asset in things(item.assets.values())}
    return sorted(known - {asset.id for asset in things(witness.assets().values())})


def _left_alone_or_removed(harness: Harness, id: str) -> Iterator[str]:
    """I4: assets that left intent with a turndown are removed; released ones stay, and are reported."""
    condition, last = harness.process.condition(id), harness.witness.last_thing(id)
    assert last is not None
    if condition is None:
        return  # It left before anybody had looked at it.
    if harness.witness.turndown(last) is None:
        if condition.status is not Status.ORPHANED:
            yield f"I8: {id} was let go, and is {condition.status} {condition.reason}"
        return
    entry = harness.witness.ledger.get(id)
    yield from _outputs_known(harness, id, condition.status)
    if condition.status is not Status.TURNED_DOWN:
        yield f"I7: {id} left with a turndown, and is {condition.status} {condition.reason}"
    elif entry is None or entry.goal is not Goal.ABSENT:
        yield f"I7: {id} is reported as turned down, and the ledger does not have it as absent"


def _outputs_known(harness: Harness, id: str, status: Status) -> Iterator[str]:
    """I12: what is known of production is true, where it connects assets."""
    if harness.production.connecting:
        yield from harness.witness.outputs.at_rest(id, status, harness.production.names)
