"""The suites of plugins and checks send each call as messages, and find what cannot be sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.diff import Change, Diff, Target
from lehr.model.operation import DONE, Outcome
from lehr.sdk.plugin import AssetPlugin, Push, Reader
from lehr.testing.conformance.messages import SentPlugin, sent
from lehr.testing.plugins import FixedReader, push_of, target_of
from lehr.testing.world import registry, thing

ASSET = thing("a", "1")


class Recording(AssetPlugin):
    """Remembers what it was given."""

    types = ("test.Thing",)

    def __init__(self) -> None:
        self.given: list[object] = []

    async def diff(self, target: Target, read: Reader) -> Diff:
        self.given += [target, read.asset(target.id)]
        return Diff()

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        self.given += [target, push.operation, push.superseded]
        push.progress("half")
        return DONE


def test_a_plugin_is_given_copies_that_are_equal() -> None:
    plugin, target, reader = Recording(), target_of(ASSET), FixedReader([ASSET], registry())
    push = push_of(target, superseded=True)
    asyncio.run(SentPlugin(plugin).diff(target, reader))
    asyncio.run(SentPlugin(plugin).push(target, reader, push))
    expected = [target, ASSET, target, push.operation, True]
    assert plugin.given == expected
    assert not any(one is other for one, other in zip(plugin.given[:4], expected, strict=False))
    assert push.messages == ["half"]


@pytest.mark.parametrize("value", [object(), {1: 2}, float("nan"), "\ud800", (1, 2) * 3 + ({3},)])
def test_what_changes_on_the_way_or_cannot_be_sent_breaks_the_rule(value: Any) -> None:
    with pytest.raises(AssertionError, match=r"sent|arrives"):
        sent(Diff((Change("value", value, None),)))


@pytest.mark.parametrize(
    "value",
    [AssetKey(Partition("p"), AssetId("a")), [DONE, ASSET], (DONE,), None, "text", object(), (3, None)],
)
def test_messages_and_what_is_none_arrive_as_they_are(value: object) -> None:
    assert sent(value) == value
