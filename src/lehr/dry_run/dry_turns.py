"""Dry turns over published intent: of one asset after some commands, or of each that a selector selects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from lehr.dry_run.candidate import PublishedIntent
from lehr.dry_run.memories import remembered
from lehr.dry_run.planned import Planned
from lehr.dry_run.planner import Planner
from lehr.dry_run.what_if import Rollouts, WhatIf
from lehr.model.selector import Selector
from lehr.query.asset_rows import known_asset
from lehr.query.partition_view import Reading
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.runtime import Runtime


class DryTurns:
    """Dry turns of a partition, with the plugins and checks that they need."""

    def __init__(
        self,
        reading: Reading,
        runtime: Runtime,
        plugins: Sequence[AssetPlugin],
        checks: Sequence[CheckPlugin],
        rollouts: Callable[[], Rollouts],
    ) -> None:
        """Turns over what `reading` reads. The caller closes the plugins.

        Args:
            rollouts: reads them; asked only by turns that suppose commands.
        """
        self._reading = reading
        self._runtime = runtime
        self._plugins = plugins
        self._checks = checks
        self._rollouts = rollouts

    def what_if(self, id: str) -> WhatIf:
        """Supposes commands about an asset.

        Raises:
            LehrError: there is no such asset, or it has no production; the store cannot be read.
        """
        asset, _came_with = known_asset(self._reading, id)
        return WhatIf(self._runtime, asset, self._plugins, self._checks, self._rollouts())

    async def next_turns(self, selector: Selector, most: int) -> list[Planned]:
        """The next turn of each selected asset, by id; earlier ones take shares of limits.

        Raises:
            NoIncarnationError: nothing is published yet.
            LehrError: more than `most` are selected; the store cannot be read.
        """
        newest, runtime = self._reading.incarnation("latest"), replace(self._runtime, only=selector)
        memories = remembered(runtime)
        candidate = PublishedIntent(runtime.store.intent, newest)
        planner = Planner(runtime, candidate, self._plugins, self._checks, memories)
        return await planner.plan(most)
