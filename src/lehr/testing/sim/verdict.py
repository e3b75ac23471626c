"""Rules for the end of a history, when nothing has gone wrong for long enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from lehr.base.clock import Clock
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.decision import Condition, Status
from lehr.model.diff import Goal
from lehr.model.reason import Reason
from lehr.sdk.store import PrunedError
from lehr.testing.sim.capacity import HELD
from lehr.testing.sim.process import Process, Site
from lehr.testing.sim.production import Production
from lehr.testing.sim.source import Repository
from lehr.testing.sim.things import wished
from lehr.testing.sim.witness import Witness, things
from lehr.testing.world import PARTITION


class Judged(Protocol):
    """The subject: a random history, or anything else that has reached its end.

    Attributes:
        process: the newest control plane; aside: those in whose place another one has come.
        lost: assets that stay in trouble.
    """

    @property
    def process(self) -> Process: ...
    @property
    def aside(self) -> Sequence[Process]: ...
    @property
    def lost(self) -> frozenset[str]: ...
    @property
    def witness(self) -> Witness: ...
    @property
    def site(self) -> Site: ...
    @property
    def production(self) -> Production: ...
    @property
    def repository(self) -> Repository: ...
    @property
    def clock(self) -> Clock: ...


def judge(history: Judged) -> list[str]:
    """Everything wrong now, one line each."""
    return [
        *_published(history),
        *_left_open(history),
        *_nothing_lost(history),
        *_at_rest(history),
        *_as_intended(history),
    ]


def whole(history: Judged) -> Iterator[str]:
    """Everything wrong with the state as a whole, at the very end."""
    store, witness = history.process.store, history.witness
    for damage in store.check(lambda partition: history.site.registry):
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
    pins = [item for item in witness.controls.values() if item.stands(history.clock.now())]
    # Expired controls are pruned, and a clock that goes back does not bring them back.
    pinned = {item.incarnation for item in pins if not (witness.jumped and item.expires_at)}
    for sequence in pruned & {*applied, *pinned, max(witness.incarnations, default=0)}:
        yield f"I12: incarnation {sequence} is pruned, although it is needed"


def _digests(assets: Mapping[str, Asset]) -> dict[str, str]:
    return {id: asset.digest for id, asset in assets.items()}


def _published(history: Judged) -> Iterator[str]:
    """I7 of publishing: the source's declarations are in force."""
    newest, revision = history.witness.newest, history.repository.newest.revision.revision
    wanted = history.witness.revisions.get(revision)
    found = {} if newest is None else {id: asset.digest for id, asset in newest.assets.items()}
    if wanted != found:
        yield f"I7: what the source declares is not in force, but {newest and newest.header.name}"


def _left_open(history: Judged) -> Iterator[str]:
    records = history.process.store.records
    still = records.open_operations(PARTITION)
    for operation in still:
        if operation.asset not in history.lost:
            yield f"I7: operation {operation.id} of {operation.asset} is still open"
    used, _until = records.usage(HELD, history.clock.now())
    if used != len(still):
        yield f"I7: {used} shares are held by {len(still)} pushes"
    for process in history.aside:
        if not process.dead:
            yield f"I5: {process.name} goes on although another one has taken over"


def _as_intended(history: Judged) -> Iterator[str]:
    outside = _connected(history, history.lost)
    for asset in things(history.witness.assets().values()):
        if asset.id not in outside:
            yield from _converged(history, asset)
    for id in _departed(history):
        if id not in outside:
            yield from _left_alone_or_removed(history, id)


def _connected(history: Judged, ids: Iterable[str]) -> set[str]:
    """`ids`, and everything that is or was joined with one of them by references, in any direction.

    Order among dependencies and dependants, and turndowns that wait for referrers, may keep these
    from converging while one of them is in trouble; nothing else may (I9).
    """
    joined = history.witness.joined()
    found, ahead = set(ids), list(ids)
    while ahead:
        near = joined.get(ahead.pop(), set()) - found
        ahead += near
        found |= near
    return found


def _nothing_lost(history: Judged) -> Iterator[str]:
    """I12: whatever was written is still there."""
    records, intent, witness = history.process.store.records, history.process.store.intent, history.witness
    stored = {item.id for item in records.operations(PARTITION, limit=100_000)}
    for id in witness.admitted:
        if id not in stored and id not in witness.let_prune:
            yield f"I12: operation {id} is lost"
    for sequence, published in witness.incarnations.items():
        found = intent.incarnation(PARTITION, sequence)
        if found != published.header:
            yield f"I12: incarnation {sequence} is lost, or another"
        if published.header.sources[0].revision not in history.repository.kept:
            yield f"I2: the revision that {published.header.name} was made from is not kept"
    for id, entry in witness.ledger.items():
        if records.ledger(AssetKey(PARTITION, AssetId(id))) != entry:
            yield f"I12: the ledger's entry of {id} is lost, or another"


def _at_rest(history: Judged) -> Iterator[str]:
    enforcer = history.process.enforcer
    if not enforcer.at_rest and not history.lost:
        yield "I7: the Enforcer does not come to rest"
    for id in sorted(enforcer.unsettled):
        condition = _condition(history, id)
        if condition is not None and condition.status.settled:
            yield f"I8: {id} is {condition.status}, and counts as unsettled"


def _condition(history: Judged, id: str) -> Condition | None:
    found = history.process.store.records.standing(AssetKey(PARTITION, AssetId(id)))
    return None if found is None else found.condition


def _converged(history: Judged, asset: Asset) -> Iterator[str]:
    """I7: production matches intent. Only intent itself holds an asset then."""
    condition = _condition(history, asset.id)
    if condition is None:
        yield f"I8: nothing is known of {asset.id}"
        return
    stands = (condition.status, condition.reason)
    observed = history.production.values.get(asset.id)
    wish = wished(history.witness.assets(), asset.id, history.site.registry)
    if history.witness.turndown(asset) is None:
        wanted, allowed = (
            wish,
            {(Status.CONVERGED, Reason.AS_INTENDED)},
        )
    elif history.witness.stays(asset.id):
        wanted, allowed = (
            wish,
            {(Status.WAITING, Reason.STILL_REFERENCED)},
        )
    else:
        wanted, allowed = None, {(Status.TURNED_DOWN, Reason.REMOVED)}
    if stands not in allowed:
        yield f"I7: {asset.id} is {stands}, not {allowed}: {condition.message}"
    if (entry := history.witness.ledger.get(asset.id)) is None:
        yield f"I12: {asset.id} stands as {stands}, and the ledger does not know it"
    elif (entry.goal is Goal.ABSENT) is not (wanted is None):
        yield f"I12: {asset.id} stands as {stands}, and as {entry.goal} in the ledger"
    if observed != wanted:
        yield f"I7: {asset.id} is {observed!r} in production, not {wanted!r}, and stands as {stands}"


def _departed(history: Judged) -> list[str]:
    witness = history.witness
    known = {asset.id for item in witness.incarnations.values() for asset in things(item.assets.values())}
    return sorted(known - witness.assets().keys())


def _left_alone_or_removed(history: Judged, id: str) -> Iterator[str]:
    """I4: assets that left intent with a turndown are removed; released ones stay, and are reported."""
    condition, last = _condition(history, id), history.witness.last(id)
    assert last is not None
    if condition is None:
        return  # It left before anybody had looked at it.
    if history.witness.turndown(last) is None:
        if condition.status is not Status.ORPHANED:
            yield f"I8: {id} was let go, and stands as {condition.status} {condition.reason}"
        return
    entry = history.witness.ledger.get(id)
    if condition.status is not Status.TURNED_DOWN:
        yield f"I7: {id} left with a turndown, and stands as {condition.status} {condition.reason}"
    elif entry is None or entry.goal is not Goal.ABSENT:
        yield f"I7: {id} is said to be turned down, which the ledger does not know"
