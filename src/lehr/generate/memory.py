"""What the conversations with a worker add up to."""

from __future__ import annotations

from types import MappingProxyType

from lehr.base.diagnostics import errors, in_order
from lehr.generate.protocol import Built, Changed
from lehr.model.asset import Asset, AssetId
from lehr.sdk.generation import Generated
from lehr.sdk.source import FileEntry, LeavesOut, Snapshot


class Memory:
    """What a worker has been told and has answered, so that both sides speak of differences only."""

    def __init__(self) -> None:
        self._files: dict[str, FileEntry] = {}
        self._assets: dict[AssetId, Asset] = {}
        self._fresh = True

    def changed(self, snapshot: Snapshot) -> Changed:
        """How `snapshot` differs from what the worker was told last."""
        files = snapshot.files()
        return Changed(
            tuple(entry for path, entry in files.items() if self._files.get(path) != entry),
            tuple(path for path in self._files if path not in files),
            snapshot.skipped if isinstance(snapshot, LeavesOut) else (),
        )

    def forget(self) -> None:
        """The worker is a new one: it knows nothing, and will say everything."""
        self._files = {}
        self._fresh = True

    def take(self, snapshot: Snapshot, told: Changed, built: Built) -> Generated:
        """Everything that `snapshot` declares, after the worker was `told` and has `built`."""
        for path in told.gone:
            del self._files[path]
        self._files.update((entry.path, entry) for entry in told.files)
        touched: frozenset[AssetId] | None = frozenset()
        if not errors(built.diagnostics):
            if self._fresh:  # the worker knows of no earlier answer, and has said everything
                self._assets = {}
            for asset in built.upserts:
                self._assets[asset.id] = asset
            for id in built.removals:
                del self._assets[id]
            ids = (*(asset.id for asset in built.upserts), *built.removals)
            touched = None if self._fresh else frozenset(ids)
            self._fresh = False
        return Generated(
            revision=snapshot.revision,
            partition=built.partition,
            limits=built.limits,
            generators=built.generators,
            assets=MappingProxyType(self._assets),
            touched=touched,
            types=built.types,
            diagnostics=tuple(in_order(sorted(set(built.diagnostics), key=lambda item: item.what))),
        )
