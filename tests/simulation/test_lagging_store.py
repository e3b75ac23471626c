"""Reads of the store that lag behind what this control plane itself has just written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from lehr.checks import TYPES
from lehr.model.diff import Goal
from lehr.sdk.plugin import Fencing, Traits
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.harness import Harness
from lehr.testing.sim.intent import encode
from lehr.testing.sim.process import Process
from lehr.testing.sim.production import Production
from lehr.testing.sim.source import Repository
from lehr.testing.sim.things import THINGS
from lehr.testing.virtual import run
from lehr.testing.world import PARTITION, registry, thing

TRAITS = Traits(fencing=Fencing.NATIVE, goals=frozenset({Goal.FENCED, Goal.ABSENT}))


def edit(repository: Repository, **values: str) -> None:
    contents = {"lehr.yaml": encode({"partition": PARTITION})}
    for id, value in values.items():
        contents[f"assets/{id}.json"] = encode(thing(id, value).document())
    repository.edit(contents, str(values))


def with_process(
    folder: Path, scenario: Callable[[Process, Repository, Production], Awaitable[None]]
) -> None:
    async def main() -> None:
        harness = Harness(folder, PARTITION, registry(TYPES), TRAITS, (THINGS,), Dice(1))
        process = harness.add_process(1)
        try:
            await scenario(process, harness.repository, harness.production)
        finally:
            await process.kill()

    run(main, seed=1)


def test_the_first_publication_may_not_be_found_at_once(tmp_path: Path) -> None:
    async def scenario(process: Process, repository: Repository, production: Production) -> None:
        edit(repository, a="1")
        process.store.lag()
        await process.start()
        process.store.catch_up()
        await process.pass_time(10.0)
        await process.settle(60.0)
        assert production.values == {"a": "1"}

    with_process(tmp_path, scenario)


def test_what_two_publications_changed_is_not_taken_for_what_the_last_changed(tmp_path: Path) -> None:
    async def scenario(process: Process, repository: Repository, production: Production) -> None:
        edit(repository, a="1", b="1")
        await process.start()
        await process.settle(60.0)
        process.store.lag()
        edit(repository, a="2", b="1")
        await process.pass_time(0.1)
        process.store.lag()  # finds the incarnation that changes a, and not the next, which changes b
        edit(repository, a="2", b="2")
        await process.pass_time(0.1)
        process.store.catch_up()
        await process.pass_time(10.0)
        await process.settle(60.0)
        assert production.values == {"a": "2", "b": "2"}

    with_process(tmp_path, scenario)
