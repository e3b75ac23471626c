"""The simulation's production and source keep the rules of real ones, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lehr.model.diff import Goal
from lehr.model.types import AssetType, Registry
from lehr.sdk.plugin import Fencing, Traits
from lehr.testing import VirtualClock, run
from lehr.testing.conformance import asset_plugin, source
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.production import Production, SimulatedPlugin
from lehr.testing.sim.source import Repository, SimulatedSource
from lehr.testing.sim.things import THINGS
from lehr.testing.sim.trace import Trace
from lehr.testing.world import THING, Thing, thing

GOALS = frozenset({Goal.DRAINED, Goal.FENCED, Goal.ABSENT})


def production_of(fencing: Fencing) -> asset_plugin.Subject:
    production = Production([THINGS], Dice(1), Trace(), fencing)

    @contextmanager
    def unreachable() -> Iterator[None]:
        production.unreachable = True
        yield
        production.heal()

    @contextmanager
    def failing() -> Iterator[None]:
        production.push_faults["a"] = PushFault.PARTIAL
        production.look_faults["a"] = LookFault.SLOW
        yield
        production.heal()

    return asset_plugin.Subject(
        make=lambda: SimulatedPlugin(production, VirtualClock(), Traits(fencing=fencing, goals=GOALS)),
        registry=Registry([AssetType(THING, Thing)]),
        asset=thing("a", "1", reads=["b"]),
        changed=thing("a", "2"),
        others=(thing("b", "1"),),
        disturb=lambda: production.put("a", "by hand"),
        observe=lambda: (dict(production.values), list(production.broken)),
        troubles=(unreachable, failing),
        linger=5.0,
        clock=VirtualClock(),
    )


@pytest.mark.parametrize("fencing", Fencing, ids=lambda fencing: fencing.value)
@pytest.mark.parametrize("rule", asset_plugin.RULES, ids=lambda rule: rule.__name__)
def test_simulated_production_keeps_the_contract(rule: asset_plugin.Rule, fencing: Fencing) -> None:
    async def main() -> None:
        await rule(production_of(fencing))

    run(main, seed=1)


def place() -> source.Subject:
    repository = Repository(Trace())

    def edit(edit: source.Edit) -> None:
        contents = {**repository.newest.contents, **edit}
        left = {path: content for path, content in contents.items() if content is not None}
        repository.edit(left, "an edit")

    @contextmanager
    def unreadable() -> Iterator[None]:
        repository.unreadable = True
        yield
        repository.unreadable = False

    return source.Subject(
        open=lambda: SimulatedSource(repository, VirtualClock(), poll=60.0), edit=edit, troubles=(unreadable,)
    )


@pytest.mark.parametrize("rule", source.RULES, ids=lambda rule: rule.__name__)
def test_a_simulated_source_keeps_the_contract(rule: source.Rule) -> None:
    async def main() -> None:
        await rule(place())

    run(main, seed=1)
