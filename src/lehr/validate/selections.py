"""Selectors of calendars, limits and policies select existing assets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lehr.base.diagnostics import Diagnostic, Severity
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange
from lehr.model.policy import POLICY, Policy
from lehr.model.selector import Selector
from lehr.model.types import Registry, Schema
from lehr.validate.proposal import DeltaProposal


def selects_nothing(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL008, a warning: a new selector selects an asset, and an older one still does.

    Each selector is checked against each change. Only if it is new, or loses an asset, and selects no other
    changed asset, are the unchanged assets searched, up to the first match.
    """
    changes = {change.id: change for change in proposal.changes()}
    for asset in proposal.of_types(lambda type: _selects(proposal.registry, type)):
        pointer, selector = selector_of(proposal.registry, asset)
        if selector is None or selector.all:
            continue
        change = changes.get(asset.id)
        before = selector if change is None else _before(proposal, change)
        if before == selector and not any(_lost(change, selector) for change in changes.values()):
            continue
        if not _selects_any(proposal, changes, selector):
            yield _warning(proposal, asset, pointer, selector, lost=before == selector)


def selector_of(registry: Registry, asset: Asset) -> tuple[str, Selector | None]:
    """The JSON pointer to an asset's selector, and the selector; None if it has no selector."""
    if asset.type == POLICY:
        return "/payload/match/select", registry.payload(asset, Policy).match.select
    kind = registry.types[asset.type].payload
    found = None if isinstance(kind, Schema) else getattr(registry.payload(asset, kind), "select", None)
    return "/payload/select", found if isinstance(found, Selector) else None


def _selects(registry: Registry, type: str) -> bool:
    known = registry.types.get(type)
    fields = () if known is None else getattr(known.payload, "__struct_fields__", ())
    return type == POLICY or "select" in fields


def _before(proposal: DeltaProposal, change: AssetChange) -> Selector | None:
    """The selector that an asset had in the predecessor."""
    if change.before is None or change.after is None or change.before.type != change.after.type:
        return None
    return selector_of(proposal.registry, change.before)[1]


def _lost(change: AssetChange, selector: Selector) -> bool:
    return (
        change.before is not None
        and selector.matches(change.before)
        and (change.after is None or not selector.matches(change.after))
    )


def _selects_any(proposal: DeltaProposal, changes: Mapping[AssetId, AssetChange], selector: Selector) -> bool:
    after = (change.after for change in changes.values())
    if any(asset is not None and selector.matches(asset) for asset in after):
        return True
    return proposal.selects_unchanged(selector)


def _warning(
    proposal: DeltaProposal, asset: Asset, pointer: str, selector: Selector, *, lost: bool
) -> Diagnostic:
    return Diagnostic(
        code="VAL008",
        what=f"`{asset.id}` selects no asset: {selector}" + (" (any more)" if lost else ""),
        why="it has no effect",
        fix="check the selector's spelling; `lehr get assets` lists ids, types and labels",
        subject=asset.id,
        at=proposal.place(asset, pointer),
        severity=Severity.WARNING,
    )
