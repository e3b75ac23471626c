"""A change looks at a resource once before it and once after it, unless something else came in between."""

from __future__ import annotations

import copy
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.model.asset import Asset
from lehr.model.diff import Diff, Goal
from lehr.model.operation import Outcome, Result
from lehr.plugins.terraform.changes import FIRST_POLL
from lehr.plugins.terraform.provider import Applied, State
from lehr.testing import virtual
from lehr.testing.plugins import push_of, target_of
from lehr.testing.virtual import VirtualClock
from tests.terraform.assets import PASSWORD, SECRETS, disk, network, parameter, plugin_of, reader, resource
from tests.terraform.cloud import Cloud, MemoryProvider

ORDERS = ("cloud_parameter", "orders")


class Turns:
    """Turns of one asset, as the Enforcer takes them: the push is bound to the diff before it."""

    def __init__(self, asset: Asset) -> None:
        self.cloud = Cloud()
        self.clock = VirtualClock()
        self.plugin = plugin_of(self.cloud, self.clock, settle_seconds=60.0)
        self.asset = asset
        self.handle = ""

    async def diff(self, goal: Goal = Goal.PRESENT) -> Diff:
        target = replace(target_of(self.asset, goal), handle=self.handle)
        found = await self.plugin.diff(target, reader(self.asset))
        if isinstance(found.handle, str):
            self.handle = found.handle
        return found

    async def push(self, admitted: Diff, goal: Goal = Goal.PRESENT) -> Outcome:
        target = replace(target_of(self.asset, goal), handle=self.handle)
        outcome = await self.plugin.push(target, reader(self.asset), push_of(target, diff=admitted))
        if isinstance(outcome.handle, str):
            self.handle = outcome.handle
        return outcome

    async def made(self, asset: Asset) -> None:
        """Bring the asset about, and forget the calls that this took."""
        self.asset = asset
        assert (await self.push(await self.diff())).result is Result.DONE
        assert (await self.diff()).empty
        self.cloud.calls.clear()

    def calls(self) -> list[str]:
        return [call for call, _type in self.cloud.calls]


def run(asset: Asset, main: Callable[[Turns], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        turns = Turns(asset)
        await turns.made(asset)
        await main(turns)
        await turns.plugin.close()

    virtual.run(whole, seed=1)


LOOK = ["validate", "import", "read", "plan"]


def test_a_change_is_looked_at_once_before_it_and_once_after_it() -> None:
    async def main(turns: Turns) -> None:
        turns.asset = parameter(2)
        admitted = await turns.diff()
        assert (await turns.push(admitted)).result is Result.DONE
        assert (await turns.diff()).empty
        assert turns.calls() == [*LOOK, "apply", *LOOK]
        assert turns.cloud.resources[ORDERS]["description"] == "size 2"

    run(parameter(1), main)


async def _wait(turns: Turns, admitted: Diff) -> Diff:
    await turns.clock.sleep(6.0)
    return admitted


async def _admit_another(turns: Turns, admitted: Diff) -> Diff:
    return replace(admitted, changes=admitted.changes[:0])


async def _change_intent(turns: Turns, admitted: Diff) -> Diff:
    turns.asset = parameter(3)
    return admitted


async def _change_handle(turns: Turns, admitted: Diff) -> Diff:
    turns.handle = turns.handle.replace('"incarnation":1', '"incarnation":2')
    assert '"incarnation":2' in turns.handle
    return admitted


async def _change_secret(turns: Turns, admitted: Diff) -> Diff:
    SECRETS.values["env:PASSWORD"] = "another"
    return admitted


@pytest.mark.parametrize(
    "between",
    [_wait, _admit_another, _change_intent, _change_handle, _change_secret],
    ids=lambda one: one.__name__,
)
def test_a_push_looks_again_if_anything_may_be_different(
    between: Callable[[Turns, Diff], Coroutine[Any, Any, Diff]],
) -> None:
    async def main(turns: Turns) -> None:
        turns.asset = parameter(2)
        admitted = await between(turns, await turns.diff())
        turns.cloud.calls.clear()
        assert (await turns.push(admitted)).result is Result.DONE
        assert turns.cloud.count("read") >= 1

    try:
        run(parameter(1), main)
    finally:
        SECRETS.values["env:PASSWORD"] = PASSWORD


def test_a_look_counts_for_one_push() -> None:
    async def main(turns: Turns) -> None:
        turns.asset = parameter(2)
        admitted, handle = await turns.diff(), turns.handle
        await turns.push(admitted)
        turns.cloud.calls.clear()
        turns.handle = handle
        await turns.push(admitted)
        assert turns.calls() == LOOK

    run(parameter(1), main)


def test_what_is_created_destroyed_or_replaced_is_looked_at_again() -> None:
    async def main(turns: Turns) -> None:
        turns.asset = resource("cloud_network", {"range": "10.1.0.0/16"})
        admitted = await turns.diff()
        assert admitted.effects.destructive
        turns.cloud.calls.clear()
        assert (await turns.push(admitted)).result is Result.DONE
        assert turns.calls()[:4] == LOOK
        gone = await turns.diff(Goal.ABSENT)
        turns.cloud.calls.clear()
        assert (await turns.push(gone, Goal.ABSENT)).result is Result.DONE
        assert turns.calls()[:2] == ["import", "read"]
        created = await turns.diff()
        turns.cloud.calls.clear()
        assert (await turns.push(created)).result is Result.DONE
        assert "plan" in turns.calls()[: turns.calls().index("apply")]

    run(network(1), main)


def _showing_late(turns: Turns, reads: int) -> None:
    """After the next change, the API shows the resource as it was, so many times."""
    old = copy.deepcopy(turns.cloud.resources[ORDERS])
    left, new = reads, None

    async def happen(call: str, _type: str) -> None:
        nonlocal left, new
        if call == "read" and turns.cloud.resources[ORDERS] != old:
            new = turns.cloud.resources[ORDERS]
        if call == "read" and new is not None:
            turns.cloud.resources[ORDERS] = copy.deepcopy(old) if left else new
            left = max(0, left - 1)

    turns.cloud.before = happen


def test_a_change_that_an_api_shows_late_is_waited_for_and_made_once() -> None:
    async def main(turns: Turns) -> None:
        turns.asset = parameter(2)
        admitted = await turns.diff()
        _showing_late(turns, 4)
        assert (await turns.push(admitted)).result is Result.DONE
        assert (await turns.diff()).empty
        assert turns.cloud.count("apply") == 1

    run(parameter(1), main)


def test_a_change_that_an_api_never_shows_is_a_difference_in_the_end() -> None:
    async def main(turns: Turns) -> None:
        turns.asset = parameter(2)
        admitted = await turns.diff()
        _showing_late(turns, 10_000)
        assert (await turns.push(admitted)).result is Result.DONE
        began = turns.clock.monotonic()
        assert [change.path for change in (await turns.diff()).changes] == ["description"]
        assert 60.0 <= turns.clock.monotonic() - began < 70.0
        began = turns.clock.monotonic()
        assert not (await turns.diff()).empty  # waited for once
        assert turns.clock.monotonic() < began + FIRST_POLL

    run(parameter(1), main)


@pytest.mark.parametrize(
    ("size", "goal", "incarnation"), [(3, Goal.PRESENT, 2), (2, Goal.ABSENT, 1)], ids=["newer", "turndown"]
)
def test_other_intent_is_not_waited_for(size: int, goal: Goal, incarnation: int) -> None:
    async def main(turns: Turns) -> None:
        turns.asset = disk(2)
        await turns.push(await turns.diff())
        began, other = turns.clock.monotonic(), disk(size)
        target = replace(target_of(other, goal, incarnation=incarnation), handle=turns.handle)
        assert not (await turns.plugin.diff(target, reader(other))).empty
        assert turns.clock.monotonic() < began + FIRST_POLL

    run(disk(1), main)


def test_a_provider_that_makes_something_other_than_it_planned_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(turns: Turns) -> None:
        turns.asset = parameter(2)
        admitted = await turns.diff()
        apply = MemoryProvider.apply

        async def otherwise(self: MemoryProvider, *arguments: Any) -> Applied:
            applied = await apply(self, *arguments)
            turns.cloud.resources[ORDERS]["description"] = "size two"
            return replace(applied, state=State({**applied.state.value, "description": "size two"}))

        monkeypatch.setattr(MemoryProvider, "apply", otherwise)
        outcome = await turns.push(admitted)
        assert outcome.result is Result.FAILED
        assert outcome.message == "it was applied, and still differs: description"

    run(parameter(1), main)
