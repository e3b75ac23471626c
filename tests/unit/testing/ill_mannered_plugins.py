"""Plugins that do what they should, and break a rule of good conduct."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import msgspec
import structlog

from lehr.base.errors import TransientError
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Change, Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.sdk.plugin import Push, Reader
from tests.unit.testing.broken_plugins import Good, Value

LOG = structlog.get_logger()
NOTHING: tuple[AssetKey, ...] = ()


class ServesSomethingElse(Good):
    types = ("test.Value", "test.Nothing")


class HasNoTime(Good):
    traits = msgspec.structs.replace(Good.traits, push_timeout=0.0)


class ShowsSecrets(Good):
    async def diff(self, target: Target, read: Reader) -> Diff:
        diff = await super().diff(target, read)
        value = read.payload(target.id, Value).value
        return diff if diff.empty else Diff((Change("value", value, None),))


class TellsSecrets(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        push.progress(f"setting {read.payload(target.id, Value).value}")
        return await super().push(target, read, push)


class LogsSecrets(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        logging.getLogger("test").debug("setting %s", read.payload(target.id, Value).value)
        return await super().push(target, read, push)


class LogsSecretsWithFields(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        LOG.debug("setting", value=read.payload(target.id, Value).value)
        return await super().push(target, read, push)


class RaisesSecrets(Good):
    """Shows them as the cause of what it raises."""

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        try:
            return await super().push(target, read, push)
        except TransientError as error:
            cause = ValueError(read.payload(target.id, Value).value)
            raise TransientError(error.what) from cause


class RaisesAnything(Good):
    def intended(self, target: Target, read: Reader) -> dict[str, str]:
        try:
            return super().intended(target, read)
        except TransientError as error:
            raise ConnectionError from error


class BoastsInTrouble(Good):
    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        try:
            return await super().push(target, read, push)
        except TransientError:
            return DONE

    async def diff(self, target: Target, read: Reader) -> Diff:
        try:
            return await super().diff(target, read)
        except TransientError:
            return Diff((Change("value", "x", None),))


class HintsAtNames(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        yield "value"  # type: ignore[misc]


class HintsAtNothing(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        yield AssetKey(Partition("Test"), AssetId(""))


class HealsByItself(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        while True:
            await asyncio.sleep(0.001)
            self.world["watched"] = f"{len(self.world)} {asyncio.get_running_loop().time()}"
            for key in NOTHING:
                yield key


class WatchRaises(Good):
    async def watch(self) -> AsyncIterator[AssetKey]:
        for key in NOTHING:
            yield key
        raise OSError("too many watches")


class CleansUpOnClose(Good):
    closed = False

    async def close(self) -> None:
        if self.closed:
            self.world.clear()
        self.closed = True
