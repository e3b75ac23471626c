"""Each thing in production belongs to one asset."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.sdk.claims import Conflict
from lehr.validate.proposal import DeltaProposal


def claimed_twice(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL030: no two assets claim the same thing. One diagnostic for each pair of assets."""
    claimed: dict[str, AssetId] = {}
    reported: set[tuple[AssetId, AssetId]] = set()
    for change in proposal.changes():
        if change.after is None:
            continue
        claims = proposal.claims.get(change.id, ())
        kept = _claims_before(proposal, change) if claims else ()
        for claim in claims:
            # A claim that the asset already had cannot belong to another unchanged asset.
            others = () if claim in kept else tuple(proposal.claimed_by_others(claim))
            if claim in claimed:
                others = (claimed[claim],)
            claimed.setdefault(claim, change.id)
            for other in others:
                if (other, change.id) not in reported:
                    reported.add((other, change.id))
                    yield _both_claim(proposal, change.after, other, claim)


def _claims_before(proposal: DeltaProposal, change: AssetChange) -> tuple[str, ...]:
    return () if change.before is None else proposal.registry.claims(change.before)


def _both_claim(proposal: DeltaProposal, asset: Asset, other: AssetId, claim: str) -> Diagnostic:
    kind, _, name = claim.partition(":")
    return Diagnostic(
        code="VAL030",
        what=f"`{other}` and `{asset.id}` both claim {kind} {name}",
        why="each would undo the other's pushes forever",
        fix=f"give one of them another {kind}, or merge them into one asset",
        subject=asset.id,
        at=proposal.place(asset),
    )


def claimed_elsewhere(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL031: no asset claims what another partition of this host holds, or another asset by another name.

    VAL030: nor what is held by an asset that has left intent but not yet production.
    """
    reported: set[tuple[AssetId, object]] = set()
    for conflict in proposal.conflicts:
        asset, holder = proposal.asset(conflict.asset), conflict.holder
        if asset is None or conflict.protected:
            continue
        leaving = proposal.leaving(holder.asset) if holder.ours else None
        if holder.ours and leaving is None and not _still_claims(proposal, conflict):
            continue
        pair = (conflict.asset, holder.asset if holder.ours else (holder.partition, holder.state))
        if pair not in reported:
            reported.add(pair)
            yield _held(proposal, asset, conflict) if leaving is None else _left_by(proposal, asset, conflict)


def leads_into_protected(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL032: no asset changes anything in Lehr's own state or in a git repository."""
    for conflict in proposal.conflicts:
        asset = proposal.asset(conflict.asset)
        if asset is not None and conflict.protected:
            yield Diagnostic(
                code="VAL032",
                what=f"`{asset.id}` claims {conflict.what}, which is in {conflict.protected}",
                why="anyone who can write there controls what Lehr enforces, or which programs git runs",
                fix="choose a path outside it",
                subject=asset.id,
                at=proposal.place(asset),
            )


def _still_claims(proposal: DeltaProposal, conflict: Conflict) -> bool:
    """Whether an asset of our own partition holds it by another name; VAL030 reports the same name."""
    other = proposal.asset(conflict.holder.asset)
    return other is not None and conflict.claim not in proposal.registry.claims(other)


def _left_by(proposal: DeltaProposal, asset: Asset, conflict: Conflict) -> Diagnostic:
    other = conflict.holder.asset
    kind = conflict.claim.partition(":")[0]
    return Diagnostic(
        code="VAL030",
        what=f"`{asset.id}` claims {conflict.what}, which `{other}` holds: it is still being turned down",
        why=f"the turndown of `{other}` would remove what `{asset.id}` puts there",
        fix=f"wait until `{other}` is removed (lehr why {other}), or give `{asset.id}` another {kind};"
        f" to keep it, declare it as `{other}` again, without a turndown",
        subject=asset.id,
        at=proposal.place(asset),
    )


def _held(proposal: DeltaProposal, asset: Asset, conflict: Conflict) -> Diagnostic:
    holder = conflict.holder
    kind = conflict.claim.partition(":")[0]
    who = f"`{holder.asset}`" if holder.ours else f"partition {holder.partition} (its asset `{holder.asset}`)"
    fix = f"give it another {kind}, or merge them into one asset"
    if not holder.ours:
        fix = (
            f"give it another {kind}; or turn `{holder.asset}` down or let it go there; if that workspace is"
            f" gone for good: lehr claims --release {holder.state}"
        )
    return Diagnostic(
        code="VAL031",
        what=f"`{asset.id}` claims {conflict.what}, which {who} holds",
        why="two writers would undo each other's pushes"
        + ("" if holder.ours else f"; the state of that partition is in {holder.state}"),
        fix=fix,
        subject=asset.id,
        at=proposal.place(asset),
    )
