"""One thing in production belongs to one asset."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
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
            # What an asset has claimed already, no other that has not changed does.
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
        why="each would undo the other's pushes for ever",
        fix=f"give one of them another {kind}, or make them one asset",
        subject=asset.id,
        at=proposal.place(asset),
    )
