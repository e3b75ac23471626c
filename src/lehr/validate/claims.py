"""One thing in production belongs to one asset."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId
from lehr.validate.proposal import DeltaProposal


def claimed_twice(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL030: no two assets claim the same thing. One diagnostic for each pair of assets."""
    claimed: dict[str, AssetId] = {}
    reported: set[tuple[AssetId, AssetId]] = set()
    for change in proposal.changes():
        if change.after is None:
            continue
        for claim in proposal.registry.claims(change.after):
            others = [claimed[claim]] if claim in claimed else list(proposal.claimed_before(claim))
            claimed.setdefault(claim, change.id)
            for other in others:
                if (other, change.id) not in reported:
                    reported.add((other, change.id))
                    yield _both_claim(proposal, change.after, other, claim)


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
