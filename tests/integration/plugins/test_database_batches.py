"""Schemas that are compared together: one read of each catalogue, and the trouble of one is its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import psycopg
import pytest

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Diff
from lehr.model.operation import Result
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.database import postgres, sqlite
from lehr.plugins.database.payload import DATABASE_SCHEMA, TYPES, Column, DatabaseSchema, Index, Table
from lehr.plugins.database.plugin import DatabasePlugin
from lehr.testing.plugins import FixedReader, FixedSecrets, push_of, target_of
from tests.postgres import PORT, PostgresServer

T = TypeVar("T")

REGISTRY = Registry(TYPES)
PLAYS = Table(
    {
        "id": Column("bigserial"),
        "title": Column("text", default="'a.b'"),
        "price": Column("numeric", default=1.5),
    },
    ["id"],
)


class QuickClock(SystemClock):
    """Does not let the watch wait for seconds."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(min(seconds, 0.02))


class Site:
    """A database of its own, and a plugin for each call."""

    def __init__(self, server: PostgresServer, name: str, base: Path) -> None:
        self.server, self.name, self.base = server, name, base

    def asset(self, schema: str, table: Table = PLAYS, **fields: Any) -> Asset:
        known = {"connection": self.server.url(self.name), "version": 1, "tables": {"plays": table}, **fields}
        return make_asset(AssetId(schema), DATABASE_SCHEMA, DatabaseSchema(schema=schema, **known), {})

    def file(self, id: str, file: str, **fields: Any) -> Asset:
        known = {"connection": f"sqlite:{file}", "version": 1, "tables": {"plays": PLAYS}, **fields}
        return make_asset(AssetId(id), DATABASE_SCHEMA, DatabaseSchema(**known), {})

    def run(self, work: Callable[[DatabasePlugin], Awaitable[T]]) -> T:
        async def main() -> T:
            secrets = FixedSecrets({"env:PASSWORD": "x"})
            plugin = DatabasePlugin(self.base, Threads("database", 4), QuickClock(), secrets=secrets)
            try:
                return await work(plugin)
            finally:
                await plugin.close()

        return asyncio.run(main())

    def apply(self, *assets: Asset) -> None:
        async def work(plugin: DatabasePlugin) -> None:
            for asset in assets:
                target = target_of(asset)
                pushed = await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target))
                assert pushed.result is Result.DONE

        self.run(work)

    def together(self, *assets: Asset) -> dict[str, Diff | LehrError]:
        """The answers by asset, in the order in which they came."""

        async def work(plugin: DatabasePlugin) -> dict[str, Diff | LehrError]:
            requests = [(target_of(asset), FixedReader([asset], REGISTRY)) for asset in assets]
            return {assets[index].id: answer async for index, answer in plugin.diff_many(requests)}

        return self.run(work)

    def alone(self, asset: Asset) -> Diff | LehrError:
        async def work(plugin: DatabasePlugin) -> Diff | LehrError:
            try:
                return await plugin.diff(target_of(asset), FixedReader([asset], REGISTRY))
            except LehrError as error:
                return error

        return self.run(work)

    def same_as_one_by_one(self, *assets: Asset) -> dict[str, Diff | LehrError]:
        found = self.together(*assets)
        for asset in assets:
            if asset.id in found:
                assert plain(found[asset.id]) == plain(self.alone(asset))
        return found

    def sql(self, query: LiteralString) -> list[Any]:
        return self.server.run(query, database=self.name)


def plain(answer: Diff | LehrError) -> object:
    return answer if isinstance(answer, Diff) else (type(answer), answer.code, str(answer))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with contextlib.closing(PostgresServer()) as running:
        running.start()
        yield running


@pytest.fixture
def site(server: PostgresServer, tmp_path: Path) -> Iterator[Site]:
    server.run("CREATE DATABASE batches")
    yield Site(server, "batches", tmp_path)
    server.run("DROP DATABASE batches WITH (FORCE)")


def connections(monkeypatch: pytest.MonkeyPatch, module: Any, connect: str) -> list[object]:
    """Notes each call of `connect`, by its first argument or its host."""
    found: list[object] = []
    real = getattr(module, connect)

    def counted(*arguments: Any, **parameters: Any) -> Any:
        found.append(arguments[0] if arguments else parameters.get("host"))
        return real(*arguments, **parameters)

    monkeypatch.setattr(module, connect, counted)
    return found


def statements(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    real = psycopg.Connection.execute

    def counted(connection: Any, query: Any, *arguments: Any, **options: Any) -> Any:
        found.append(query)
        return real(connection, query, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    return found


def test_fifty_schemas_take_one_connection_and_no_more_statements_than_two(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = [site.asset(f"s{number}") for number in range(50)]
    site.apply(assets[0], assets[1])
    site.sql("ALTER TABLE s1.plays ADD COLUMN author text")
    site.sql("CREATE INDEX by_title ON s1.plays (title)")
    found = site.same_as_one_by_one(*assets[:3])
    assert found["s0"] == Diff(effects=found["s0"].effects)  # type: ignore[union-attr]
    assert [isinstance(answer, Diff) and len(answer.changes) for answer in found.values()] == [0, 2, 3]
    connected = connections(monkeypatch, psycopg, "connect")
    asked = statements(monkeypatch)
    assert len(site.together(*assets[:2])) == 2
    of_two = len(asked)
    assert len(site.together(*assets)) == 50
    assert len(asked) == 2 * of_two
    assert len(connected) == 2


def test_a_schema_whose_names_depend_on_the_search_path_is_left_out(site: Site) -> None:
    site.sql("CREATE DOMAIN public.short AS text")
    assets = [site.asset(name) for name in ("a", "typed", "numbered")]
    assets += [site.asset("short", Table({"id": Column("short")})), site.asset("b")]
    site.apply(*assets)
    site.sql("CREATE TYPE typed.mood AS ENUM ('sad')")
    site.sql("ALTER TABLE typed.plays ADD COLUMN mood typed.mood")
    site.sql("CREATE SEQUENCE numbered.numbers")
    site.sql("ALTER TABLE numbered.plays ALTER price SET DEFAULT nextval('numbered.numbers')")
    found = site.same_as_one_by_one(*assets)
    assert set(found) == {"a", "b"}
    alone = site.alone(assets[1])
    assert isinstance(alone, Diff)
    assert [change.observed for change in alone.changes] == ["mood"]


def test_what_one_schema_has_wrong_is_left_for_one_by_one(site: Site) -> None:
    assets = [site.asset("a"), site.asset("viewed"), site.asset("typo", Table({"id": Column("intege")}))]
    site.apply(assets[0])
    site.sql("CREATE SCHEMA viewed CREATE VIEW plays AS SELECT 1 AS id")
    assert site.together(assets[0], assets[1]) == {}
    assert set(site.same_as_one_by_one(assets[0], assets[2])) == {"a"}


def test_a_server_that_hangs_fails_its_own_assets_and_the_others_are_answered_first(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_CONNECT_SECONDS", 2)  # libpq's shortest
    down, hanging = tmp_path / "down", tmp_path / "h"

    def elsewhere(name: str, folder: Path) -> Asset:
        return site.asset(name, connection=f"postgresql:///other?host={folder}&port={PORT}")

    asset = site.asset("a")
    site.apply(asset)
    assets = [
        *(elsewhere(name, hanging) for name in ("h1", "h2")),
        elsewhere("d", down),
        asset,
        site.asset("b"),
    ]
    hanging.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{hanging}/.s.PGSQL.{PORT}")
        server.listen()
        connected = connections(monkeypatch, psycopg, "connect")
        found = site.together(*assets)
        assert connected.count(str(hanging)) == 1
    assert set(list(found)[:3]) == {"d", "a", "b"}
    codes = {name: answer.code for name, answer in found.items() if isinstance(answer, LehrError)}
    assert codes == dict.fromkeys(("h1", "h2", "d"), "DBS116")


def test_a_connection_that_is_lost_leaves_the_rest_for_one_by_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = [site.asset("a"), site.asset("b")]
    site.apply(*assets)
    together = postgres.PostgresSession.together

    def ended(session: Any, schemas: Any) -> Any:
        site.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        return together(session, schemas)

    monkeypatch.setattr(postgres.PostgresSession, "together", ended)
    assert site.together(*assets) == {}


def test_a_password_is_read_once_for_a_database(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assets = [site.asset(name, password=Secret("env:PASSWORD")) for name in ("a", "b")]
    read: list[object] = []
    real = FixedSecrets.read

    async def counted(secrets: FixedSecrets, secret: Secret) -> Any:
        read.append(secret)
        return await real(secrets, secret)

    monkeypatch.setattr(FixedSecrets, "read", counted)
    assert len(site.together(*assets)) == 2
    assert len(read) == 1


def test_a_file_that_is_not_a_database_fails_its_own_assets(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("good", "other"):
        with contextlib.closing(sqlite3.connect(site.base / f"{name}.sqlite")) as made:
            made.execute("CREATE TABLE plays (id integer)")
    (site.base / "bad.sqlite").write_bytes(b"not a database, but a text of some length" * 100)
    table = Table({"id": Column("integer")})
    assets = [
        site.file("good", "good.sqlite", tables={"plays": table}),
        site.file(
            "with-index", "good.sqlite", tables={"plays": Table(table.columns, [], {"by_id": Index(["id"])})}
        ),
        site.file("other", "other.sqlite"),
        site.file("bad", "bad.sqlite"),
        site.file("missing", "missing.sqlite"),
        site.file("created", "missing.sqlite", create_database=True),
    ]
    found = site.same_as_one_by_one(*assets)
    assert {name for name, answer in found.items() if isinstance(answer, LehrError)} == {"bad", "missing"}
    assert len(found) == len(assets)
    connected = connections(monkeypatch, sqlite, "_connect")
    site.together(*assets)
    assert connected.count(site.base / "good.sqlite") == 1


def test_schemas_that_were_compared_together_are_watched(site: Site) -> None:
    assets = [
        site.asset(name, Table(PLAYS.columns, ["id"], {f"{name}_i": Index(["title"])})) for name in "ab"
    ]
    site.apply(*assets)

    async def dropped(plugin: DatabasePlugin) -> str:
        requests = [(target_of(asset), FixedReader([asset], REGISTRY)) for asset in assets]
        assert len([answer async for _, answer in plugin.diff_many(requests)]) == 2
        site.sql("DROP INDEX b.b_i")
        async with contextlib.aclosing(plugin.watch()) as hints:  # type: ignore[type-var]
            return (await anext(hints)).id

    assert site.run(dropped) == "b"
