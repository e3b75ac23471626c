"""The plugin `lehr.Workflow` over real engines: DBOS with SQLite and PostgreSQL, and a Temporal server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import pickle
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.diff import Goal
from lehr.model.operation import Progress, Result
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.workflow.addresses import Dbos, EngineAddress, Temporal
from lehr.plugins.workflow.connections import Connections, connector
from lehr.plugins.workflow.engines import BusyError, Engine, Order, Run, RunState
from lehr.plugins.workflow.notes import Notes
from lehr.plugins.workflow.observing import Observer
from lehr.plugins.workflow.payload import TYPES, WORKFLOW, HttpObservation, Observation, Removal, Workflow
from lehr.plugins.workflow.plugin import WorkflowPlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, FixedSecrets, push_of, target_of
from tests import firmware
from tests.firmware import Switch
from tests.postgres import USER, PostgresServer

REGISTRY = Registry(TYPES)
KEY = AssetKey(Partition("test"), AssetId("switches/leaf-1"))
PASSWORD = "hunter2-hunter2"
SECRETS = FixedSecrets({"env:PASSWORD": PASSWORD})
SOME_RULES = (
    "push_converges",
    "push_is_idempotent",
    "disturbance_is_seen_and_healed",
    "known_goals_are_reached_and_taken_back",
    "push_survives_a_crash",
    "push_survives_new_intent",
    "ended_operations_change_nothing",
    "finished_operations_have_ended",
    "secrets_are_not_shown",
)
SLOW = [rule for rule in RULES if rule.__name__ in SOME_RULES]


@contextlib.contextmanager
def dbos_on_postgres(folder: Path) -> Iterator[EngineAddress]:
    server = PostgresServer()
    server.start()
    try:
        url = f"postgresql://{USER}@/{USER}?host={server.sockets}"
        with firmware.dbos_app(folder, url):
            password = Secret("env:PASSWORD")
            yield EngineAddress(dbos=Dbos(database=url, queue="firmware", password=password))
    finally:
        server.close()


class Site(NamedTuple):
    """A switch, and the engine whose workflows update it.

    Attributes:
        id: of the asset. Each test has its own, since pushes have the same ids in all of them.
    """

    switch: Switch
    engine: EngineAddress
    id: AssetId = AssetId("switches/leaf-1")

    @property
    def key(self) -> AssetKey:
        return AssetKey(Partition("test"), self.id)


ENGINES = {"dbos": firmware.dbos, "dbos-postgres": dbos_on_postgres, "temporal": firmware.temporal}


@pytest.fixture(scope="module", params=ENGINES)
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp(request.param)
    with ENGINES[request.param](folder) as engine, firmware.switch(folder, reboot_seconds=0) as switch:
        yield Site(switch, engine)


@pytest.fixture
def site(shared: Site, tmp_path: Path) -> Site:
    shared.switch.act("drain")  # so that nothing is as intended yet
    return shared._replace(id=AssetId(f"switches/{tmp_path.name}"))


def plugin_of(folder: Path) -> WorkflowPlugin:
    clock, threads = SystemClock(), Threads("workflow", 8)
    return WorkflowPlugin(
        Observer(folder, Threads("observations", 2), clock, 5.0),
        Connections(connector(folder, threads), threads),
        Notes(folder / "notes", Threads("notes", 2)),
        clock,
        secrets=SECRETS,
        request_seconds=1.0,
    )


def asset_of(site: Site, version: str, **fields: Any) -> Asset:
    payload = Workflow(
        intended={"version": version, "serving": True},
        observe=Observation(http=HttpObservation(url=f"http://{site.switch.address}/state")),
        engine=site.engine,
        workflow="UpdateFirmware",
        input={"address": site.switch.address},
        settle_seconds=1.0,
        version="/version",
        remove=Removal(workflow="TakeOutOfService", intended={"serving": False}),
        **fields,
    )
    return make_asset(site.id, WORKFLOW, payload, {})


@pytest.mark.parametrize("rule", SLOW, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, site: Site, tmp_path: Path) -> None:
    subject = Subject(
        make=lambda: plugin_of(tmp_path),
        registry=REGISTRY,
        asset=asset_of(site, "4.2.0"),
        changed=asset_of(site, "4.3.0"),
        disturb=lambda: site.switch.act("drain"),
        observe=site.switch.shown,
        secret=PASSWORD,
        interruptions=1,
    )
    asyncio.run(rule(subject))


def run(site: Site, tmp_path: Path, play: Callable[[WorkflowPlugin], Awaitable[None]]) -> None:
    async def played() -> None:
        plugin = plugin_of(tmp_path)
        try:
            await play(plugin)
        finally:
            await plugin.close()

    asyncio.run(played())


def test_a_failure_is_reported_with_its_message_and_the_steps_so_far(site: Site, tmp_path: Path) -> None:
    asset = asset_of(site, "9-broken")

    async def play(plugin: WorkflowPlugin) -> None:
        push = push_of(target_of(asset), "broken-1")
        outcome = await plugin.push(target_of(asset), FixedReader([asset], REGISTRY), push)
        assert outcome.result is Result.STALLED
        assert "after the reboot, not 9-broken" in outcome.message or "verify" in outcome.message
        assert "UpdateFirmware started" in push.messages
        assert any("drain has ended" in message for message in push.messages)
        assert await plugin.status(push.operation) is Progress.ENDED
        assert site.switch.shown()["serving"]

    run(site, tmp_path, play)


async def engine_of(plugin: WorkflowPlugin, site: Site) -> Engine:
    key = await plugin._key_of(site.engine)
    return await plugin._connections.engine(site.engine, key)


async def ended(engine: Engine, site: Site) -> Run:
    """The newest run once it has ended."""
    deadline = time.monotonic() + 60
    while True:
        run = await engine.find(site.key)
        if run is not None and not run.running:
            return run
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def order_of(site: Site, operation: str, **argument: Any) -> Order:
    return Order(site.key, operation, "UpdateFirmware", {"address": site.switch.address, **argument}, 60.0)


def test_an_engine_runs_one_workflow_of_an_asset_at_a_time(site: Site, tmp_path: Path) -> None:
    async def play(plugin: WorkflowPlugin) -> None:
        engine = await engine_of(plugin, site)
        await engine.start(order_of(site, "one", version="5.0"))
        with pytest.raises(BusyError):
            await engine.start(order_of(site, "two", version="6.0"))
        run = await engine.find(site.key)
        assert run is not None
        assert (run.operation, run.work) == ("one", order_of(site, "", version="5.0").work)
        run = await ended(engine, site)
        assert run.state is RunState.COMPLETED
        assert site.switch.shown() == {"version": "5.0", "serving": True}
        steps = (await engine.progress(run)).steps
        assert steps == tuple(
            f"{step} has ended" for step in ("drain", "flash", "reboot", "verify", "undrain")
        )

    run(site, tmp_path, play)


def test_a_run_that_waits_for_a_worker_says_so(site: Site, tmp_path: Path) -> None:
    given = site.engine
    if given.temporal is not None:
        address = EngineAddress(temporal=Temporal(address=given.temporal.address, task_queue="nobody"))
    else:
        assert given.dbos is not None
        address = EngineAddress(
            dbos=Dbos(database=given.dbos.database, queue="nobody", password=given.dbos.password)
        )
    idle, key = site._replace(engine=address), site.key

    async def play(plugin: WorkflowPlugin) -> None:
        engine = await engine_of(plugin, idle)
        await engine.start(Order(key, "idle-1", "UpdateFirmware", {}, 1.5))
        found = await engine.find(key)
        assert found is not None
        assert found.running
        assert "waits for a worker" in (await engine.progress(found)).now
        await engine.cancel(found, "")
        found = await ended(engine, idle)
        assert found.state in (RunState.CANCELLED, RunState.TIMED_OUT)

    run(site, tmp_path, play)


def test_an_asset_whose_id_begins_another_is_not_confused_with_it(site: Site, tmp_path: Path) -> None:
    async def play(plugin: WorkflowPlugin) -> None:
        engine = await engine_of(plugin, site)
        await engine.start(order_of(site, "1", version="5.0"))
        assert await engine.find(site.key) is not None
        for id in (
            "switches",
            site.id[:-1],
            f"{site.id}/x",
            site.id.replace("-", "_"),
            site.id.replace("/", ":"),
        ):
            found = await engine.find(AssetKey(Partition("test"), AssetId(id)))
            assert (found is None) == (id != site.id), id
        await ended(engine, site)

    run(site, tmp_path, play)


def test_a_superseded_run_is_left_alone_unless_intent_allows_more(site: Site, tmp_path: Path) -> None:
    asset = asset_of(site, "7.0")

    async def play(plugin: WorkflowPlugin) -> None:
        push = push_of(target_of(asset), "superseded-1")
        task = asyncio.ensure_future(plugin.push(target_of(asset), FixedReader([asset], REGISTRY), push))
        while not push.messages:  # noqa: ASYNC110 - the plugin adds them
            await asyncio.sleep(0.01)
        push.superseded = True
        assert (await task).result is Result.DONE
        assert site.switch.shown()["version"] == "7.0"

    run(site, tmp_path, play)


def test_what_is_turned_down_is_as_its_workflow_leaves_it(site: Site, tmp_path: Path) -> None:
    asset = asset_of(site, "7.0")
    target = target_of(asset, Goal.ABSENT)

    async def play(plugin: WorkflowPlugin) -> None:
        read = FixedReader([asset], REGISTRY)
        outcome = await plugin.push(target, read, push_of(target, "removal-1"))
        assert outcome.result is Result.DONE, outcome
        assert (await plugin.diff(target, read)).empty
        assert site.switch.shown()["serving"] is False

    run(site, tmp_path, play)


# --- an engine that cannot be used ----------------------------------------------------


def test_a_temporal_server_that_does_not_answer_is_a_trouble_that_passes(tmp_path: Path) -> None:
    pytest.importorskip("temporalio")
    address = EngineAddress(
        temporal=Temporal(address="127.0.0.1:9", task_queue="firmware", api_key=Secret("env:PASSWORD"))
    )

    async def play() -> None:
        plugin = plugin_of(tmp_path)
        engine = await plugin._connections.engine(address, await plugin._key_of(address))
        for call in (engine.find(KEY), engine.start(Order(KEY, "1", "W", {}, 60.0))):
            with pytest.raises(TransientError) as caught:
                await call
            assert PASSWORD not in repr(caught.value) + str(caught.value)
        await plugin.close()

    asyncio.run(play())


def test_a_namespace_that_does_not_exist_stalls(tmp_path: Path) -> None:
    with firmware.temporal_server(tmp_path) as server:
        address = EngineAddress(temporal=Temporal(address=server, task_queue="firmware", namespace="nobody"))

        async def play() -> None:
            plugin = plugin_of(tmp_path)
            engine = await plugin._connections.engine(address, None)
            for call in (engine.find(KEY), engine.start(Order(KEY, "1", "W", {}, 60.0))):
                with pytest.raises(StalledError, match="nobody"):
                    await call
            await plugin.close()

        asyncio.run(play())


@pytest.mark.parametrize(
    ("content", "kind"),
    [(None, TransientError), (b"", LehrError), (b"not a database at all" * 99, LehrError)],
)
def test_a_database_that_is_not_one_of_dbos_is_named(
    content: bytes | None, kind: type[LehrError], tmp_path: Path
) -> None:
    pytest.importorskip("dbos")
    file = tmp_path / "nothing.sqlite"
    if content is not None:
        file.write_bytes(content)
    address = EngineAddress(dbos=Dbos(database="sqlite:nothing.sqlite", queue="firmware"))

    async def play() -> None:
        plugin = plugin_of(tmp_path)
        engine = await plugin._connections.engine(address, None)
        with pytest.raises(kind, match=r"nothing\.sqlite"):
            await engine.find(KEY)
        with pytest.raises(LehrError):
            await engine.start(Order(KEY, "1", "W", {}, 60.0))
        await plugin.close()

    asyncio.run(play())
    assert file.exists() == (content is not None), "a database that is gone is not made anew"


class Bomb:
    """What it loads to is a file that exists."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_nothing_that_an_application_has_pickled_is_loaded(tmp_path: Path) -> None:
    with firmware.dbos(tmp_path) as address:
        assert address.dbos is not None
        database = address.dbos.database.removeprefix("sqlite:")
        idle = EngineAddress(dbos=Dbos(database=address.dbos.database, queue="nobody"))

        async def play() -> None:
            plugin = plugin_of(tmp_path)
            engine = await plugin._connections.engine(idle, None)
            await engine.start(Order(KEY, "1", "UpdateFirmware", {}, 60.0))
            bomb = base64.b64encode(pickle.dumps(Bomb(tmp_path / "loaded"))).decode()
            with contextlib.closing(sqlite3.connect(database)) as connection, connection:
                connection.execute(
                    "UPDATE workflow_status SET status = 'ERROR', error = ?, output = ?, inputs = ?, "
                    "serialization = 'py_pickle'",
                    (bomb, bomb, bomb),
                )
            run = await engine.find(KEY)
            assert run is not None
            assert run.state is RunState.FAILED
            assert run.message == "its error is not stored as JSON"
            await engine.progress(run)
            await plugin.close()

        asyncio.run(play())
        assert not (tmp_path / "loaded").exists()
        # The library itself would have loaded it.
        pickle.loads(pickle.dumps(Bomb(tmp_path / "loaded")))
        assert (tmp_path / "loaded").exists()
