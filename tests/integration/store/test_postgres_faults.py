"""Lost connections, a server that is killed, processes that compete: nothing is lost, nothing done twice."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import bucket_of
from lehr.model.origins import origin_bytes
from lehr.model.reason import Reason
from lehr.model.writes import RecordDecision, Refused, TakeLease
from lehr.store.postgres import Address, PostgresStore, connections, writer
from lehr.store.postgres import publication as postgres_publication
from lehr.store.postgres.connections import Connector
from lehr.testing.conformance.store.subject import (
    PARTITION,
    asset,
    commit,
    contents,
    decision,
    publication,
    published,
)
from tests.codes import raises
from tests.integration.store.relay import Break, Relay
from tests.postgres import PORT, PostgresServer

UNKNOWN = SimpleNamespace(partition=PARTITION)
"""A write of a kind that no store carries out."""

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def relay(server: PostgresServer) -> Iterator[Relay]:
    folder = server.folder / f"relay-{os.getpid()}"
    folder.mkdir(mode=0o755)
    between = Relay(folder, server.sockets)
    try:
        yield between
    finally:
        between.close()
        (folder / f".s.PGSQL.{PORT}").unlink()
        folder.rmdir()


@pytest.fixture
def through(relay: Relay, address: Address) -> Iterator[PostgresStore]:
    """A store whose connections go through the relay."""
    behind = Address(f"postgresql://plays@/postgres?host={relay.folder}&port={PORT}&schema={address.schema}")
    with contextlib.closing(PostgresStore(behind)) as store:
        commit(store, TakeLease(PARTITION, "one", 1.0))
        yield store


def decided(store: PostgresStore) -> list[str]:
    return [item.condition.reason for _number, item in store.records.decisions(PARTITION)][::-1]


def test_a_commit_whose_answer_is_lost_is_found_to_be_there(relay: Relay, through: PostgresStore) -> None:
    relay.at = Break.AFTER
    assert through.commit([RecordDecision(decision("a", "One"))]) == [None]
    assert relay.broken == 1
    assert decided(through) == ["One"]
    assert commit(through, TakeLease(PARTITION, "one", 1.0)) == 2  # and it goes on


@pytest.mark.parametrize("at", [Break.BEFORE, Break.UNHEARD])
def test_a_commit_that_the_server_never_heard_of_is_not_there(
    relay: Relay, through: PostgresStore, at: Break
) -> None:
    relay.at = at
    with raises("STO135", TransientError):
        through.commit([RecordDecision(decision("a", "One"))])
    assert relay.broken == 1
    assert decided(through) == []
    through.commit([RecordDecision(decision("a", "Two"))])
    assert decided(through) == ["Two"]


def test_one_commit_is_not_taken_for_another(relay: Relay, through: PostgresStore) -> None:
    expected: list[str] = []
    for turn, at in enumerate([Break.AFTER, Break.BEFORE, Break.BEFORE, Break.AFTER, Break.UNHEARD]):
        with pytest.raises(KeyError):
            through.commit([RecordDecision(decision("a", "Never")), UNKNOWN])  # type: ignore[list-item]
        relay.at = at
        try:
            through.commit([RecordDecision(decision("a", f"Turn{turn}"))])
        except TransientError:
            assert at is not Break.AFTER
        else:
            assert at is Break.AFTER
            expected.append(f"Turn{turn}")
        assert decided(through) == expected


def test_who_cannot_find_out_says_that_nobody_knows(
    relay: Relay, through: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_MOST_TRIES", 3)
    monkeypatch.setattr(connections, "connect", _away)
    relay.at = Break.AFTER
    with raises("STO136", StalledError):
        through.commit([RecordDecision(decision("a", "One"))])


def _away(address: Address) -> psycopg.Connection[Any]:
    raise TransientError("it is away")


def test_a_store_that_is_closed_waits_for_no_server(
    relay: Relay, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = Address(f"postgresql://plays@/postgres?host={relay.folder}&port={PORT}&schema={address.schema}")
    store = PostgresStore(behind)

    def close_then_away(address: Address) -> psycopg.Connection[Any]:
        store.close()
        raise TransientError("it is away")

    monkeypatch.setattr(connections, "connect", close_then_away)
    relay.at = Break.AFTER
    with raises("STO136", StalledError):
        store.commit([RecordDecision(decision("a", "One"))])
    store.close()  # again, which changes nothing


def test_a_transaction_under_way_ends_with_the_store(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(address)

    def close_on_the_way(id: str) -> int:
        store.close()
        return bucket_of(AssetId(id))

    monkeypatch.setattr(postgres_publication, "bucket_of", close_on_the_way)
    with contextlib.suppress(TransientError):
        store.commit([publication(0, asset("a", "1"))])
    with contextlib.closing(PostgresStore(address)) as again:
        assert list(again.check(lambda partition: None)) == []


def test_what_is_idle_when_the_server_is_restarted_goes_on_without_a_word(
    server: PostgresServer, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FIRST_PAUSE", 0.0)
    with contextlib.closing(PostgresStore(address)) as store:
        published(store, 0, asset("a", "1"))
        server.stop()
        with raises("STO122", TransientError):
            store.intent.newest(PARTITION)
        with raises("STO122", TransientError):
            store.commit([RecordDecision(decision("a"))])
        server.start()
        assert contents(store, 1) == [asset("a", "1")]
        assert published(store, 1, asset("b", "1")).sequence == 2


def test_a_server_that_is_away_is_not_asked_by_everybody(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Address] = []

    def refuse(address: Address) -> psycopg.Connection[Any]:
        tries.append(address)
        raise StalledError("too many connections", why="there is no room")

    monkeypatch.setattr(connections, "FIRST_PAUSE", 60.0)
    connector = Connector(address)
    connector.connect().close()
    monkeypatch.setattr(connections, "connect", refuse)
    # It let us in before: so whatever it is, it may pass.
    with pytest.raises(TransientError, match="too many connections: there is no room"):
        connector.connect()
    with raises("STO122", TransientError, match="there is no room"):
        connector.connect()
    assert len(tries) == 1


def test_who_was_never_let_in_is_told_that_it_is_no_use(address: Address) -> None:
    nowhere = Address(address.url.replace("dbname=postgres", "dbname=nowhere"))
    with raises("STO120", StalledError, match=r'rejects the connection.*database "nowhere" does not exist'):
        PostgresStore(nowhere)


def test_a_server_that_is_killed_in_the_middle_of_a_publication_keeps_the_last_good_one(
    server: PostgresServer, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "FIRST_PAUSE", 0.0)
    many = [asset(f"asset-{number:05}", "1") for number in range(3000)]
    with contextlib.closing(PostgresStore(address)) as store:
        published(store, 0, asset("a", "1"))
        left = iter(range(2000))

        def kill_on_the_way(item: Asset) -> bytes:
            if next(left, None) == 1000:
                _kill(server)
            return origin_bytes(item)

        monkeypatch.setattr(postgres_publication, "origin_bytes", kill_on_the_way)
        with raises("STO122", TransientError):
            store.commit([publication(1, *many)])
        monkeypatch.setattr(postgres_publication, "origin_bytes", origin_bytes)
        server.start()
        newest = store.intent.newest(PARTITION)
        assert newest is not None
        assert newest.sequence == 1
        assert contents(store, 1) == [asset("a", "1")]
        assert len(list(store.intent.heads(PARTITION))) == 1
        # The next try is the whole of it.
        assert isinstance(commit(store, publication(1, *many)), Incarnation)
        assert contents(store, 2) == [asset("a", "1"), *many]
        assert list(store.check(lambda partition: None)) == []


def _kill(server: PostgresServer) -> None:
    """As the machine's end would: no process of the server says good-bye."""
    pid = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    server.stop()  # what had started it has nothing left to end


def test_of_two_who_publish_over_the_same_incarnation_one_is_refused(address: Address) -> None:
    with (
        contextlib.closing(PostgresStore(address)) as one,
        contextlib.closing(PostgresStore(address)) as other,
    ):
        assert isinstance(commit(one, publication(0, asset("a", "1"))), Incarnation)
        refused = commit(other, publication(0, asset("b", "1")))
        assert isinstance(refused, Refused)
        assert refused.reason == Reason.OVERTAKEN


def test_a_process_that_was_stopped_in_a_commit_does_not_hold_up_others_for_ever(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "STOPPED_AFTER", "50ms")
    with (
        contextlib.closing(PostgresStore(address)) as stopped,
        contextlib.closing(PostgresStore(address)) as other,
    ):

        def stop_on_the_way(id: str) -> int:
            # Here it is stopped, with its locks in its hands; the other waits until they are taken away.
            assert commit(other, TakeLease(PARTITION, "one", 1.0)) == 1
            return bucket_of(AssetId(id))

        monkeypatch.setattr(postgres_publication, "bucket_of", stop_on_the_way)
        with pytest.raises(TransientError):
            stopped.commit([publication(0, asset("a", "1"))])
        assert stopped.intent.newest(PARTITION) is None


def contend(address: Address, limit: int, *assets: list[str]) -> list[dict[str, list[str]]]:
    """What processes got that began at the same moment."""
    command = [sys.executable, "-m", "tests.integration.store.contender", address.url]
    running = [
        subprocess.Popen(
            [*command, f"p{number}", str(limit), *wanted],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, wanted in enumerate(assets)
    ]
    try:
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        return [json.loads(process.communicate(timeout=150)[0]) for process in running]
    finally:
        for process in running:
            process.kill()
            process.communicate()


@pytest.fixture
def ready(address: Address) -> Address:
    with contextlib.closing(PostgresStore(address)) as store:
        published(store, 0, *(asset(f"a{number:02}", "1") for number in range(40)))
        commit(store, TakeLease(PARTITION, "one", 1.0))
    return address


def test_two_processes_never_both_push_an_asset(ready: Address) -> None:
    names = [f"a{number:02}" for number in range(40)]
    one, other = contend(ready, 100, names, names)
    assert sorted([*one["admitted"], *other["admitted"]]) == names
    assert set(one["refused"]) | set(other["refused"]) == {Reason.IN_FLIGHT}


def test_two_processes_never_take_more_of_a_limit_than_there_is(ready: Address) -> None:
    names = [f"a{number:02}" for number in range(40)]
    one, other = contend(ready, 7, names[:20], names[20:])
    assert len(one["admitted"]) + len(other["admitted"]) == 7
    assert set(one["refused"]) | set(other["refused"]) == {Reason.LIMIT_REACHED}
