"""A password of a database is read where it is kept, when it is needed, and shown by nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.database.payload import DATABASE_SCHEMA, TYPES, Column, DatabaseSchema, Table
from lehr.plugins.database.plugin import DatabasePlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, FixedSecrets, target_of
from tests.codes import raises
from tests.postgres import PostgresServer

REGISTRY = Registry(TYPES)
PASSWORD = "canary-4711-canary"
NAMES = ("secrets_are_not_shown", "push_converges", "trouble_is_named")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that lets the user `shop` in with the password alone."""
    with contextlib.closing(PostgresServer()) as running:
        running.start()
        running.run(f"CREATE ROLE shop LOGIN CREATEDB PASSWORD '{PASSWORD}'")
        rules = Path(running.run("SHOW hba_file")[0][0])
        rules.write_text("local all shop scram-sha-256\n" + rules.read_text())
        running.run("SELECT pg_reload_conf()")
        yield running


def asset(server: PostgresServer, default: str = "'one'") -> Asset:
    payload = DatabaseSchema(
        connection=server.url("shop").replace("//plays@", "//shop@"),
        password=Secret("env:PASSWORD"),
        version=1,
        tables={"orders": Table({"id": Column("text", default=default)})},
        create_database=True,
    )
    return make_asset(AssetId("database"), DATABASE_SCHEMA, payload, {})


def defaults(server: PostgresServer) -> list[str]:
    query = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = to_regclass('orders')"
    return [default for (default,) in server.run(query, database="shop")]


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.__name__ in NAMES], ids=lambda rule: rule.__name__
)
def test_keeps_the_contract_with_a_password(rule: Rule, server: PostgresServer) -> None:
    server.run("DROP DATABASE IF EXISTS shop WITH (FORCE)")
    secrets = FixedSecrets({"env:PASSWORD": f"{PASSWORD}\n"})

    @contextlib.contextmanager
    def with_password(text: str) -> Iterator[None]:
        kept = secrets.values["env:PASSWORD"]
        secrets.values["env:PASSWORD"] = text
        yield
        secrets.values["env:PASSWORD"] = kept

    def disturb() -> None:
        server.run("ALTER TABLE orders ALTER COLUMN id SET DEFAULT 'three'", database="shop")

    subject = Subject(
        make=lambda: DatabasePlugin(Path("/"), Inline(), SystemClock(), secrets=secrets),
        registry=REGISTRY,
        asset=asset(server),
        changed=asset(server, "'two'"),
        disturb=disturb,
        observe=lambda: defaults(server),
        secret=PASSWORD,
        troubles=(
            lambda: with_password(f"{PASSWORD}-wrong"),
            lambda: with_password(f"{PASSWORD}\0"),
        ),
        interruptions=2,
    )
    asyncio.run(rule(subject))


def test_a_wrong_password_is_named_as_such_without_telling_it(server: PostgresServer) -> None:
    async def look(password: str) -> None:
        secrets = FixedSecrets({"env:PASSWORD": password})
        plugin = DatabasePlugin(Path("/"), Inline(), SystemClock(), secrets=secrets)
        wanted = asset(server)
        await plugin.diff(target_of(wanted), FixedReader([wanted], REGISTRY))

    with raises("DBS118") as error:
        asyncio.run(look("canary-wrong"))
    assert "password" in str(error.value)
    assert "canary" not in str(error.value)


def test_a_file_of_sqlite_has_no_password() -> None:
    fields = {"connection": "sqlite:a.sqlite", "version": 1, "password": {"secret": "env:A"}}
    with pytest.raises(msgspec.ValidationError, match="no passwords"):
        msgspec.convert(fields, DatabaseSchema)
