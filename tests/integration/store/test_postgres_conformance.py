"""The store in PostgreSQL keeps the rules of stores, on a real server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg
import pytest

from lehr.model.merkle import incarnation_digest
from lehr.store.postgres import Address, PostgresStore, connections
from lehr.testing.conformance.store import RULES, Rule, Subject
from lehr.testing.conformance.store.subject import PARTITION, asset, contents, published


@contextlib.contextmanager
def locked(address: Address) -> Iterator[None]:
    """Another program writes a table, and does not come to an end."""
    with contextlib.closing(psycopg.connect(address.conninfo)) as other:
        other.execute(f"LOCK TABLE {address.schema}.decision IN EXCLUSIVE MODE".encode())
        yield
        other.rollback()


@contextlib.contextmanager
def without_rights(address: Address) -> Iterator[None]:
    """The server takes no writes, as a standby does."""
    with contextlib.closing(psycopg.connect(address.conninfo, autocommit=True)) as other:
        role = b"ALTER ROLE CURRENT_USER SET default_transaction_read_only = "
        other.execute(role + b"on")
        _end_others(other)
        yield
        other.execute(b"SET default_transaction_read_only = off")
        other.execute(role + b"off")
        _end_others(other)


@contextlib.contextmanager
def cut_off(address: Address) -> Iterator[None]:
    """Connections end as soon as they are used."""
    with contextlib.closing(psycopg.connect(address.conninfo, autocommit=True)) as other:
        other.execute(b"ALTER ROLE CURRENT_USER SET session_preload_libraries = 'there-is-no-such-library'")
        _end_others(other)
        yield
        other.execute(b"ALTER ROLE CURRENT_USER RESET session_preload_libraries")


def _end_others(other: psycopg.Connection[tuple[object, ...]]) -> None:
    other.execute(
        b"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        b" WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_store_in_postgresql_keeps_the_contract(
    rule: Rule, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "LOCK_SECONDS", 0.05)
    monkeypatch.setattr(connections, "FIRST_PAUSE", 0.0)
    troubles = (lambda: locked(address), lambda: without_rights(address), lambda: cut_off(address))
    rule(Subject(lambda: PostgresStore(address), troubles=troubles))


def test_the_server_digests_odd_ids_as_we_do(address: Address) -> None:
    # Texts of every width in bytes, so many that some share a bucket, in an order that languages disagree on.
    starts = ("a", "B", "\u00e4", "\u540d", "\U0001f9ca", "a-", "a/", "_")
    ids = [f"{start}{number}" for start in starts for number in range(999)]
    with contextlib.closing(PostgresStore(address)) as store:
        published(store, 0, asset("first", "1"))
        header = published(store, 1, *(asset(id, "1") for id in ids))
        found = list(store.intent.heads(PARTITION))
        assert header.digest == incarnation_digest((head.id, head.digest) for head in found)
        assert [item.id for item in contents(store, 2)] == sorted([*ids, "first"])
