"""Calls of plugins and checks as messages: whatever goes in or comes out is encoded, and decoded again.

The suites make each call this way, so a plugin that keeps its rules may run in another process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, TypeVar

import msgspec

from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.decision import Verdict
from lehr.model.diff import Diff, Target
from lehr.model.monitoring import MetricHistory, Question
from lehr.model.operation import Operation, Outcome, Progress
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from lehr.sdk.plugin import AssetPlugin, Found, IndexedDiff, Push, Reader, TextChange
from lehr.sdk.provider import ConfiguredProvider
from lehr.testing.conformance.rules import hold

T = TypeVar("T")


def sent(value: T) -> T:
    """A message as it arrives. Any other value, such as the answer of a broken plugin, is returned unchanged.

    Raises:
        AssertionError: it changes on the way, or cannot be encoded.
    """
    if isinstance(value, list) or (isinstance(value, tuple) and not hasattr(value, "_fields")):
        return type(value)(map(sent, value))
    if not isinstance(value, msgspec.Struct | AssetKey):
        return value
    try:
        arrived = msgspec.json.decode(msgspec.json.encode(value), type=type(value))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise AssertionError(f"{type(value).__name__} can be sent to another process: {error!r}") from error
    hold(_plain(arrived) == _plain(value), f"what is sent arrives: {value}, not {arrived}")
    return arrived


def _plain(value: object) -> object:
    return msgspec.to_builtins(value, builtin_types=(bytes,), order="deterministic")  # sets have none


class SentPlugin(AssetPlugin):
    """`plugin`, as if it were in another process."""

    def __init__(self, plugin: AssetPlugin) -> None:
        self.plugin = plugin
        self.types = plugin.types  # type: ignore[misc]
        self.traits = plugin.traits  # type: ignore[misc]
        self.versions = plugin.versions  # type: ignore[misc]
        self.outputs = {type: sent(names) for type, names in plugin.outputs.items()}  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plugin, name)

    async def diff(self, target: Target, read: Reader) -> Diff:
        return sent(await self.plugin.diff(sent(target), _SentReader(read)))

    async def diff_many(self, requests: Sequence[tuple[Target, Reader]]) -> AsyncIterator[IndexedDiff]:
        sending = [(sent(target), _SentReader(read)) for target, read in requests]
        async for index, answer in self.plugin.diff_many(sending):
            yield index, sent(answer)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        return sent(await self.plugin.push(sent(target), _SentReader(read), _SentPush(push)))

    async def texts(self, target: Target, read: Reader) -> Sequence[TextChange]:
        return sent(tuple(await self.plugin.texts(sent(target), _SentReader(read))))

    async def status(self, operation: Operation) -> Progress:
        return await self.plugin.status(sent(operation))

    async def watch(self) -> AsyncIterator[AssetKey]:
        async for key in self.plugin.watch():
            yield sent(key)

    async def discover(self, query: Sequence[str], partition: Partition) -> AsyncIterator[Found]:
        async for found in self.plugin.discover(query, partition):
            yield sent(found)

    async def discover_in(
        self, provider: ConfiguredProvider, query: Sequence[str], partition: Partition
    ) -> AsyncIterator[Found]:
        async for found in self.plugin.discover_in(sent(provider), query, partition):
            yield sent(found)

    async def close(self) -> None:
        await self.plugin.close()


class _SentReader:
    """Payloads and addons are decoded from assets on the plugin's side, so they are not sent."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def asset(self, id: AssetId) -> Asset | None:
        return sent(self._reader.asset(id))

    def output(self, id: AssetId, path: str) -> Any:
        value = self._reader.output(id, path)
        arrived = msgspec.json.decode(msgspec.json.encode(value))
        hold(arrived == value, f"what is sent arrives: {value}, not {arrived}")
        return arrived


class _SentPush:
    def __init__(self, push: Push) -> None:
        self._push = push

    @property
    def operation(self) -> Operation:
        return sent(self._push.operation)

    @property
    def superseded(self) -> bool:
        return self._push.superseded

    def progress(self, message: str) -> None:
        self._push.progress(message)


class SentCheck(CheckPlugin):
    """`check`, as if it were in another process."""

    def __init__(self, check: CheckPlugin) -> None:
        self.name = check.name  # type: ignore[misc]
        self._check = check

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return sent(await self._check.check(sent(request), _SentCheckReader(read)))


class _SentCheckReader:
    """Sends the answers to all questions but those that are decoded from an asset."""

    def __init__(self, reader: CheckReader) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def governing(self, type: str) -> Sequence[Asset]:
        return sent(self._reader.governing(type))

    def controls(self) -> Any:
        return sent(self._reader.controls())

    def usage(self, reservation: Any) -> tuple[int, float | None]:
        return self._reader.usage(sent(reservation))

    def asset(self, id: AssetId) -> Asset | None:
        return sent(self._reader.asset(id))

    async def diff(self, id: AssetId, *, own: bool = False, settled: bool = False) -> Diff | None:
        return sent(await self._reader.diff(id, own=own, settled=settled))

    async def metric_history(self, question: Question) -> MetricHistory | None:
        return sent(await self._reader.metric_history(sent(question)))

    def referrers(self) -> Any:
        return sent(self._reader.referrers())
