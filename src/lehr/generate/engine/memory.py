"""The accumulated state of the conversations with a worker."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import MappingProxyType

from msgspec.structs import force_setattr

from lehr.base.diagnostics import Position, errors, in_order
from lehr.generate.outcome.protocol import Built, Changed
from lehr.model.asset import Asset, AssetId
from lehr.model.provenance import Annotated, Derivation
from lehr.sdk.generation import Generated
from lehr.sdk.source import FileEntry, LeavesOut, Snapshot


class Memory:
    """Everything sent to a worker and its answers, so that both sides exchange only differences."""

    def __init__(self) -> None:
        self._files: dict[str, FileEntry] = {}
        self._assets: dict[AssetId, Asset] = {}
        self._fresh = True

    def changed(self, snapshot: Snapshot) -> Changed:
        """How `snapshot` differs from what the worker last received."""
        files = snapshot.files()
        return Changed(
            tuple(entry for path, entry in files.items() if self._files.get(path) != entry),
            tuple(path for path in self._files if path not in files),
            snapshot.skipped if isinstance(snapshot, LeavesOut) else (),
        )

    def forget(self) -> None:
        """The worker is new: it knows nothing, and will send everything."""
        self._files = {}
        self._fresh = True

    def record(self, sent: Changed) -> None:
        """Record that the worker knows these files."""
        for path in sent.gone:
            del self._files[path]
        self._files.update((entry.path, entry) for entry in sent.files)

    def take(self, snapshot: Snapshot, sent: Changed, built: Built) -> Generated:
        """Everything that `snapshot` declares, after the worker was sent `sent` and answered `built`."""
        self.record(sent)
        touched: frozenset[AssetId] | None = frozenset()
        if not errors(built.diagnostics):
            if self._fresh:  # the worker knows no earlier answer, and has sent everything
                self._assets = {}
            changed = [asset.id for asset in built.upserts if self._differs(asset)]
            for asset in built.upserts:
                self._assets[asset.id] = asset
            for id in built.removals:
                del self._assets[id]
            touched = None if self._fresh else frozenset((*changed, *built.removals))
            self._fresh = False
        return Generated(
            revision=snapshot.revision,
            partition=built.partition,
            limits=built.limits,
            generators=built.generators,
            assets=MappingProxyType(self._assets),
            touched=touched,
            types=built.types,
            declared=built.declared,
            diagnostics=tuple(in_order(sorted(set(built.diagnostics), key=lambda item: item.what))),
        )

    def _differs(self, asset: Asset) -> bool:
        """Whether the asset itself differs, not only its origin."""
        before = self._assets.get(asset.id)
        return before is None or before.digest != asset.digest


class Origins:
    """One shared value for all assets from one place, as before they went through the pipe."""

    def __init__(self) -> None:
        self._derivations: dict[Derivation, Derivation] = {}
        self._files: dict[Position, Position] = {}
        self._marks: dict[tuple[Annotated, ...], tuple[Annotated, ...]] = {}

    def share(self, assets: Iterable[Asset]) -> None:
        """Make `assets`, which are not published yet, hold shared values: there may be a million of them."""
        for asset in assets:
            force_setattr(asset, "type", sys.intern(asset.type))
            if asset.made_by is not None:
                force_setattr(asset, "made_by", self._shared(asset.made_by))
                if asset.origin is not None:
                    force_setattr(asset, "origin", self._files.setdefault(asset.origin, asset.origin))
            for item in asset.annotated_by:
                force_setattr(item, "addon", sys.intern(item.addon))
                force_setattr(item, "by", self._shared(item.by))
            if any(item.path for item in asset.annotated_by):  # a policy puts the same value on many
                marks = self._marks.setdefault(asset.annotated_by, asset.annotated_by)
                force_setattr(asset, "annotated_by", marks)

    def _shared(self, by: Derivation) -> Derivation:
        known = self._derivations.get(by)
        if known is not None:
            return known
        force_setattr(by, "generator", sys.intern(by.generator))
        force_setattr(by, "of", sys.intern(by.of))
        if by.reads != "asset" or not by.item:  # calls for single assets are many, and each yields few
            self._derivations[by] = by
        return by
