"""Rollout policies do not contradict each other."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.base.text import listed
from lehr.model.governance import ROLLOUT_POLICY
from lehr.validate.proposal import DeltaProposal
from lehr.validate.references import selector_of


def governed_twice(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL064: no asset is selected by two rollout policies: both would release its content.

    All assets are compared only where a policy has changed; otherwise those that have.
    """
    registry = proposal.registry
    policies = [
        (asset, selector)
        for asset in proposal.of_types(lambda type: type == ROLLOUT_POLICY)
        if (selector := selector_of(registry, asset)[1]) is not None
    ]
    if len(policies) < 2:
        return
    policies.sort(key=lambda item: item[0].id)
    changed = {change.id: change.after for change in proposal.changes() if change.after is not None}
    for (one, first), (other, second) in itertools.combinations(policies, 2):
        if one.id in changed or other.id in changed:
            assets = proposal.of_types(lambda type: not registry.inert(type))
        else:
            assets = (asset for asset in changed.values() if not registry.inert(asset.type))
        both = [asset.id for asset in assets if first.matches(asset) and second.matches(asset)]
        if both:
            yield Diagnostic(
                code="VAL064",
                what=f"{one.id} and {other.id} both select {listed(sorted(both))}",
                why="each of them would release its content",
                fix="change one of their selectors",
                subject=other.id,
                at=proposal.place(other, "/payload/select"),
            )


def emergency_is_ahead(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL065: an emergency is for an incarnation that exists, or is about to."""
    newest = proposal.sequence
    for change in proposal.changes():
        asset = change.after
        if asset is None or asset.type != ROLLOUT_POLICY:
            continue
        target = (asset.document()["payload"].get("emergency") or {}).get("target", 0)
        if target > newest:
            yield Diagnostic(
                code="VAL065",
                what=f"{asset.id} has an emergency for incarnation {target}, which does not exist",
                why=f"the newest one is {newest}, if this is published",
                fix="commit what has to go out first; `lehr get incarnations` lists all incarnations",
                subject=asset.id,
                at=proposal.place(asset, "/payload/emergency/target"),
            )
