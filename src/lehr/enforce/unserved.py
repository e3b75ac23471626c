"""Replacement for a missing plugin."""

from __future__ import annotations

from lehr.base.errors import StalledError
from lehr.model.diff import Diff, Target
from lehr.model.operation import Operation, Outcome, Progress
from lehr.sdk.plugin import AssetPlugin, Traits


class Unserved(AssetPlugin):
    """Serves the types that no plugin serves. The loop stalls before it pushes any."""

    types = ()
    traits = Traits(resync=600.0)

    async def diff(self, target: Target, read: object) -> Diff:
        raise StalledError(f"no plugin serves type {target.type}", code="ENF104")

    async def push(self, target: Target, read: object, push: object) -> Outcome:
        raise StalledError(f"no plugin serves type {target.type}", code="ENF104")

    async def status(self, operation: Operation) -> Progress:
        raise StalledError(f"no plugin serves type {operation.type}", code="ENF105")
