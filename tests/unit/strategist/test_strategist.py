"""The Strategist: what counts as time between two looks."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lehr.base.blocking import Inline
from lehr.base.errors import LehrError
from lehr.model.asset import AssetId
from lehr.model.evidence import Looked, UnitLook
from lehr.model.selector import Selector
from lehr.rollouts.plan import Step
from lehr.rollouts.policy import Policy, RolloutPolicy
from lehr.strategist.strategist import Strategist

POLICY = Policy(AssetId("policy"), RolloutPolicy(Selector(all=True)))


class Unreadable:
    """An Enforcer that cannot read the releases after a write."""

    governance = SimpleNamespace(policies=SimpleNamespace(items=(POLICY,)))

    async def releases_changed(self) -> None:
        raise LehrError("the store cannot be read", code="TST100")


class Committer:
    """Carries out everything."""

    async def ask(self, *writes: object) -> list[object]:
        return [None for _ in writes]


def test_the_time_before_a_look_counts_once_if_the_store_cannot_be_read_after_it() -> None:
    runtime: Any = SimpleNamespace(
        store=None,
        registry=None,
        partition="shop",
        clock=SimpleNamespace(monotonic=lambda: 70.0),
        selections=None,
        metrics=None,
        calendars=None,
        reading=Inline(),
    )
    strategist = Strategist(runtime, cast(Any, Committer()), cast(Any, Unreadable()))
    step = Step("r1", (Looked({"a": UnitLook(True, 10.0, 10.0)}),))
    cast(Any, strategist).decide = lambda policy, governance: (step, object())
    with pytest.raises(LehrError):
        asyncio.run(strategist._step(POLICY))
    assert strategist._looked == {POLICY.id: ("r1", 70.0)}


def test_commits_that_take_long_delay_no_later_step() -> None:
    now = SimpleNamespace(seconds=0.0)

    class Slow(Committer):
        async def ask(self, *writes: object) -> list[object]:
            now.seconds += 30.0
            return await super().ask(*writes)

    class Quiet(Unreadable):
        async def releases_changed(self) -> None:
            pass

    runtime: Any = SimpleNamespace(
        store=None,
        registry=None,
        partition="shop",
        clock=SimpleNamespace(monotonic=lambda: now.seconds),
        selections=None,
        metrics=None,
        calendars=None,
        reading=Inline(),
    )
    strategist = Strategist(runtime, cast(Any, Slow()), cast(Any, Quiet()))
    steps = iter([(Step("r1"), object()), (Step("r1"), None)])

    def decide(policy: object, governance: object) -> object:
        now.seconds += 0.5
        return next(steps)

    cast(Any, strategist).decide = decide
    cast(Any, strategist)._measurements = SimpleNamespace(forget=lambda *_: None, follow=lambda *_: None)
    cast(Any, strategist)._selections = SimpleNamespace(ask=lambda *_: None)
    asyncio.run(strategist._step(POLICY))
    assert now.seconds == 31.0
    assert strategist._deciding == 1.0
