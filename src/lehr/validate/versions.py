"""Versions that are needed can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lehr.base.diagnostics import Diagnostic
from lehr.base.versions import precedes
from lehr.model.addons import DEPENDS_ON, DependsOn
from lehr.model.asset import Asset, AssetId
from lehr.validate.proposal import DeltaProposal

_FIELD = b'"version":'


def needed_version_is_never_reached(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL005: no asset needs a version that is above the one that intent gives.

    Only types whose payload has a `version` can be judged before production is asked.
    """
    asked: set[tuple[AssetId, AssetId]] = set()
    for asset, mention in proposal.changed_mentions():
        yield from _judge(proposal, asset, mention.target, asked)
    for change in proposal.changes():
        if _version(change.before) != _version(change.after):
            for asset, _mention in proposal.mentioned_by(change.id):
                yield from _judge(proposal, asset, change.id, asked)


def _version(asset: Asset | None) -> Any:
    """What intent gives; None when it gives none."""
    if asset is None or _FIELD not in asset.body:
        return None
    return asset.document()["payload"].get("version")


def _judge(
    proposal: DeltaProposal, asset: Asset, target: AssetId, asked: set[tuple[AssetId, AssetId]]
) -> Iterator[Diagnostic]:
    if (asset.id, target) in asked:
        return
    asked.add((asset.id, target))
    addon = proposal.registry.addon(asset, DEPENDS_ON, DependsOn)
    given = _version(proposal.asset(target))
    if addon is None or given is None:
        return
    for place, need in enumerate(addon.versions):
        if need.asset == target and precedes(str(given), need.at_least):
            pointer = f"/addons/{DEPENDS_ON}/versions/{place}/at_least"
            yield Diagnostic(
                code="VAL005",
                what=f"`{asset.id}` needs version {need.at_least} of `{target}`, which gets {given}",
                why="it would wait for ever: a newer version is not asked for by anybody",
                fix=f"give `{target}` version {need.at_least}, or need less",
                subject=asset.id,
                at=proposal.place(asset, pointer),
            )
