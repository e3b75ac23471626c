"""Generation in this process: the real builds and memory, without worker, forks and sandbox."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from types import MappingProxyType

import msgspec

from lehr.base.clock import Clock
from lehr.generate.engine.build import Build
from lehr.generate.engine.memo import Memo
from lehr.generate.engine.memory import Memory
from lehr.generate.engine.runs import Run
from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox.forks import RunResult, Take, Work
from lehr.generate.sandbox.meter import Overrun
from lehr.model.addons import TURNDOWN, Turndown
from lehr.model.asset import AssetId, make_asset
from lehr.model.types import Registry, addon_names
from lehr.sdk.generation import Generated
from lehr.sdk.source import Snapshot


class InlineGeneration:
    """`lehr.sdk.generation.Generation` in this process. For trusted generators only.

    Attributes:
        dreams: id of an asset that gets a turndown without an author; None for a sound mind.
    """

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self.dreams: AssetId | None = None
        self._dreamt: frozenset[AssetId] = frozenset()
        self._memory = Memory()
        self._snapshot: Snapshot | None = None
        self._build = Build(registry, self._fetch, Run(SandboxLimits(), clock, _run_here, _run_here), Memo())

    def _fetch(self, paths: Sequence[str]) -> Iterator[bytes]:
        assert self._snapshot is not None
        yield from map(self._snapshot.read, paths)

    async def generate(self, snapshot: Snapshot) -> Generated:
        self._snapshot = snapshot
        told = self._memory.changed(snapshot)
        return self._dreaming(self._memory.take(snapshot, told, self._build.build(told)))

    def _dreaming(self, generated: Generated) -> Generated:
        """Result when a part of the memo is wrong."""
        asset = None if self.dreams is None else generated.assets.get(self.dreams)
        if asset is not None and TURNDOWN in addon_names(asset):
            asset = None  # it is awake
        before, self._dreamt = self._dreamt, frozenset() if asset is None else frozenset([asset.id])
        touched = None if generated.touched is None else generated.touched | before | self._dreamt
        if asset is None:
            return msgspec.structs.replace(generated, touched=touched)
        document = asset.document()
        addons = {**document["addons"], TURNDOWN: Turndown("dreamt")}
        dreamt = make_asset(asset.id, asset.type, document["payload"], addons, asset.origin)
        assets = MappingProxyType({**generated.assets, asset.id: dreamt})
        return msgspec.structs.replace(generated, assets=assets, touched=touched)

    async def close(self) -> None:
        """There is nothing to end."""


def _run_here(work: Work, limits: SandboxLimits, clock: Clock, take: Take) -> RunResult:
    """Call `work` in this process, and undo its imports."""
    modules, finders = dict(sys.modules), list(sys.meta_path)
    handler = signal.getsignal(signal.SIGPROF)
    try:
        work(take)
    finally:
        signal.signal(signal.SIGPROF, handler)
        sys.meta_path[:] = finders
        for name in sys.modules.keys() - modules.keys():
            del sys.modules[name]
    return RunResult(b"", Overrun.NOTHING, 0)
