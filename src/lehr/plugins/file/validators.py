"""Validators of `lehr.File`."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import AssetId
from lehr.plugins.file.payload import FILE, File
from lehr.sdk.validator import Proposal


def one_asset_per_path(proposal: Proposal) -> Iterator[Diagnostic]:
    """Two assets must not write the same file: they would undo each other for ever.

    Compares the assets of this change with each other. A new asset with the path of one that
    did not change is not found here: that would take an index of all paths.
    """
    seen: dict[str, AssetId] = {}
    for change in proposal.changes():
        asset = change.after
        if asset is None or asset.type != FILE:
            continue
        path = proposal.registry.payload(asset, File).path
        other = seen.setdefault(path, asset.id)
        if other != asset.id:
            yield Diagnostic(
                code="FILE001",
                what=f"assets {other} and {asset.id} both are the file {path}",
                why="each would undo the other's pushes for ever",
                fix="give one of them another path, or make them one asset",
                subject=asset.id,
                at=asset.origin,
            )
