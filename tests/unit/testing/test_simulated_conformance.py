"""The simulation's production and source keep the rules of real ones, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from lehr.base.clock import Clock
from lehr.base.errors import StalledError, WaitingError
from lehr.model.diff import Change, Diff, Goal, Target
from lehr.model.handle import MOST_BYTES
from lehr.model.operation import Outcome
from lehr.model.types import AssetType, Registry
from lehr.sdk.plugin import Fencing, Push, Reader, Traits
from lehr.testing import VirtualClock, run
from lehr.testing.conformance import asset_plugin, source
from lehr.testing.conformance.asset_plugin import handles, outputs
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.faults import LookFault, PushFault
from lehr.testing.sim.production import Production, SimulatedPlugin
from lehr.testing.sim.source import Repository, SimulatedSource
from lehr.testing.sim.things import THINGS
from lehr.testing.sim.trace import Trace
from lehr.testing.world import THING, Thing, thing

GOALS = frozenset({Goal.DRAINED, Goal.FENCED, Goal.ABSENT})


def production_of(
    fencing: Fencing,
    *,
    naming: bool,
    connecting: bool = False,
    plugin: type[SimulatedPlugin] = SimulatedPlugin,
) -> asset_plugin.Subject:
    production = Production([THINGS], Dice(1), Trace(), fencing)
    production.naming, production.connecting = naming, connecting

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
        make=lambda: plugin(production, VirtualClock(), Traits(fencing=fencing, goals=GOALS)),
        registry=Registry([AssetType(THING, Thing)]),
        asset=thing("a", "1", reads=["b"]),
        changed=thing("a", "2"),
        others=(thing("b", "1"),),
        outputs={"b": {"name": "b#1", "neighbours": 1}},
        disturb=lambda: production.put("a", "by hand"),
        observe=lambda: (dict(production.values), list(production.broken)),
        troubles=(unreachable, failing),
        linger=5.0,
        clock=VirtualClock(),
    )


@pytest.mark.parametrize("fencing", Fencing, ids=lambda fencing: fencing.value)
@pytest.mark.parametrize(
    ("naming", "connecting"),
    [(False, False), (True, False), (True, True)],
    ids=["named-by-ids", "names-of-its-own", "outputs"],
)
@pytest.mark.parametrize("rule", asset_plugin.RULES, ids=lambda rule: rule.__name__)
def test_simulated_production_keeps_the_contract(
    rule: asset_plugin.Rule, fencing: Fencing, naming: bool, connecting: bool
) -> None:
    async def main() -> None:
        await rule(production_of(fencing, naming=naming, connecting=connecting))

    run(main, seed=1)


class Forgetful(SimulatedPlugin):
    """Finds what was made by its own memory."""

    def __init__(self, production: Production, clock: Clock, traits: Traits) -> None:
        super().__init__(production, clock, traits)
        self.memory: dict[str, str] = {}

    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(replace(target, handle=self.memory.get(target.id, "")), read)
        return replace(found, handle=UNSET)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(replace(target, handle=self.memory.get(target.id, "")), read, push)
        if isinstance(outcome.handle, str):
            self.memory[target.id] = outcome.handle
        return outcome


class Renaming(SimulatedPlugin):
    """Returns another handle with each look."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        handle = target.handle.partition("?")[0]
        found = await super().diff(replace(target, handle=handle), read)
        return replace(found, handle=f"{target.handle}?" if handle else UNSET)


class Verbose(SimulatedPlugin):
    """Its handles are too long."""

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        outcome = await super().push(target, read, push)
        return replace(outcome, handle=str(outcome.handle) + "x" * MOST_BYTES)


class Blind(SimulatedPlugin):
    """Does not look for what a lost push has made."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        return await super().diff(replace(target, lost=""), read)


class Lying(SimulatedPlugin):
    """Finds what a lost push has made, and does not return its handle."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        return replace(await super().diff(target, read), handle=UNSET)


class Asking(SimulatedPlugin):
    """Cannot find what a lost push has made, and says nothing useful."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        if target.lost:
            raise StalledError("it may exist", fix="call support")
        return await super().diff(target, read)


class Observing(SimulatedPlugin):
    """Returns outputs of its own making."""

    def observed(self, outputs: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        assert found.outputs is not UNSET
        return replace(found, outputs=self.observed(dict(found.outputs)))


class Undeclared(Observing):
    """Has an output that it does not declare."""

    def observed(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "size": 1}


class Lengthy(Observing):
    """Its outputs are too long."""

    def observed(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "name": "x" * MOST_BYTES}


class Leaking(Observing):
    """One of its outputs is a secret."""

    def observed(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "neighbours": {"root_password": "hunter2"}}


class Changing(Observing):
    """A stable output of it is another at each look."""

    looks = 0

    def observed(self, outputs: dict[str, Any]) -> dict[str, Any]:
        self.looks += 1
        return {**outputs, "name": self.looks}


class Remembering(Observing):
    """A stable output of it is known to the process that has seen it first."""

    processes = 0

    def __init__(self, production: Production, clock: Clock, traits: Traits) -> None:
        super().__init__(production, clock, traits)
        Remembering.processes += 1
        self.number = Remembering.processes

    def observed(self, outputs: dict[str, Any]) -> dict[str, Any]:
        return {**outputs, "name": self.number}


class Clinging(SimulatedPlugin):
    """Keeps the last outputs whatever happens."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        found = await super().diff(target, read)
        return found if found.outputs else replace(found, outputs=UNSET)


class Guessing(SimulatedPlugin):
    """Makes something up where an output is not known."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        try:
            return await super().diff(target, read)
        except WaitingError:
            return Diff((Change("connections/b", "unknown", None),))


class Stalling(SimulatedPlugin):
    """Asks for a person where an output is not known."""

    async def diff(self, target: Target, read: Reader) -> Diff:
        try:
            return await super().diff(target, read)
        except WaitingError as error:
            raise StalledError("b is missing") from error


BREAKS: list[tuple[type[SimulatedPlugin], asset_plugin.Rule]] = [
    (Forgetful, handles.a_handle_lasts),
    (Renaming, handles.a_handle_lasts),
    (Verbose, handles.a_handle_lasts),
    (Blind, handles.what_was_made_is_found_without_its_handle),
    (Lying, handles.what_was_made_is_found_without_its_handle),
    (Asking, handles.what_was_made_is_found_without_its_handle),
    (Undeclared, outputs.outputs_may_be_kept),
    (Lengthy, outputs.outputs_may_be_kept),
    (Leaking, outputs.outputs_may_be_kept),
    (Changing, outputs.stable_outputs_last),
    (Remembering, outputs.stable_outputs_last),
    (Clinging, outputs.outputs_go_with_production),
    (Guessing, outputs.unknown_outputs_are_waited_for),
    (Stalling, outputs.unknown_outputs_are_waited_for),
]


@pytest.mark.parametrize(("plugin", "rule"), BREAKS)
def test_a_plugin_that_mishandles_handles_or_outputs_breaks_a_rule(
    plugin: type[SimulatedPlugin], rule: asset_plugin.Rule
) -> None:
    async def main() -> None:
        await rule(production_of(Fencing.NONE, naming=True, connecting=True, plugin=plugin))

    with pytest.raises(AssertionError):
        run(main, seed=1)


def test_a_plugin_that_asks_for_an_import_keeps_the_rule() -> None:
    class AskingForImport(Asking):
        async def diff(self, target: Target, read: Reader) -> Diff:
            if target.lost:
                raise StalledError("it may exist", fix="find it, and write `import: ID` into intent")
            return await super().diff(target, read)

    async def main() -> None:
        subject = production_of(Fencing.NONE, naming=True, plugin=AskingForImport)
        await handles.what_was_made_is_found_without_its_handle(subject)

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
