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
