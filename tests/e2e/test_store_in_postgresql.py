"""Given a store in PostgreSQL, then every command works on it, and a server that dies loses nothing."""

from __future__ import annotations

import json
import os
import signal
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.model.lease import LEASE_SECONDS
from tests.e2e.bad_input.workspace import Workspace, until
from tests.postgres import PostgresServer

PASSWORD = "hunter2-never-shown"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    try:
        running.start()
        yield running
    finally:
        running.close()


def url(server: PostgresServer, folder: Path) -> str:
    """A store for one test, with a password, which the server does not ask for."""
    place = f"{server.url('postgres')}&schema=e2e_{zlib.crc32(bytes(folder))}"
    return place.replace("plays@", f"plays:{PASSWORD}@")


@pytest.fixture
def shop(server: PostgresServer, tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path)
    workspace.environment["LEHR_STORE"] = url(server, tmp_path)
    workspace.declare_file("motd", "welcome\n")
    workspace.commit()
    return workspace


def test_what_is_published_can_be_asked_about_by_every_command(shop: Workspace, tmp_path: Path) -> None:
    # given intent that was made so once
    done = shop.once()
    assert done.code == 0, done.err
    assert (shop.production / "motd.txt").read_text() == "welcome\n"
    assert not (shop.state / "state.sqlite").exists()
    # then each command answers from PostgreSQL
    assert json.loads(shop.lehr("get", "assets", "-o", "json").out)[0]["id"] == "motd"
    assert "AsIntended" in shop.lehr("why", "motd").out
    assert "shop@1" in shop.lehr("status").out
    assert "no damage found" in shop.lehr("store", "check").out
    assert "postgresql://" in shop.lehr("doctor").out
    shop.declare_file("motd", "hello\n")
    assert "motd (lehr.File): will be pushed" in shop.lehr("plan", str(shop.repository)).out
    shop.commit()
    assert shop.once().code == 0
    assert "hello" in shop.lehr("diff", "1", "2").out
    file = tmp_path / "one.incarnation"
    assert shop.lehr("store", "export", "1", str(file)).code == 0
    assert "imported:shop@1" in shop.lehr("store", "import", str(file)).out
    pruned = shop.lehr("store", "prune", "--keep", "1", "--older-than", "10m", "--dry-run")
    assert pruned.out.startswith("dry run"), pruned.err
    # and the state folder remembers where it is, but no password
    note = (shop.state / "store").read_text()
    assert PASSWORD not in note
    del shop.environment["LEHR_STORE"]
    assert shop.lehr("get", "incarnations", "-o", "name").out.split() == ["shop@2", "shop@1"]


def test_who_is_elsewhere_reads_the_same(shop: Workspace, tmp_path: Path) -> None:
    assert shop.once().code == 0
    completing = {"_LEHR_COMPLETE": "bash_complete", "COMP_WORDS": "lehr why mo", "COMP_CWORD": "2"}
    shop.environment |= completing
    assert "motd" in shop.lehr().out
    for name in completing:
        del shop.environment[name]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    address = shop.environment.pop("LEHR_STORE")
    shop.environment["LEHR_STATE"] = str(elsewhere / "nothing")
    shop.lehr("get", "assets").failed("error[STO142]")
    assert "motd" in shop.lehr("get", "assets", "--store", address).out


def test_another_store_is_not_taken_by_mistake(shop: Workspace, server: PostgresServer) -> None:
    assert shop.once().code == 0
    before = shop.environment["LEHR_STORE"]
    shop.environment["LEHR_STORE"] = before + "x"
    shop.once().failed("error[STO110]", "postgresql://")
    shop.environment["LEHR_STORE"] = ""
    assert shop.once().code == 0
    assert not (shop.state / "state.sqlite").exists()


def test_a_state_in_a_file_is_not_left_behind_by_mistake(shop: Workspace) -> None:
    address = shop.environment.pop("LEHR_STORE")
    assert shop.once().code == 0
    shop.environment["LEHR_STORE"] = address
    shop.once().failed("error[STO109]", "state.sqlite")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (f"postgresql://ana:{PASSWORD}@localhost:1/x", ["does not answer", "postgresql://localhost:1/x"]),
        (f"postgresql://ana:{PASSWORD}%zz@localhost/x", ["cannot be read", "~/.pgpass"]),
        (f"mysql://ana:{PASSWORD}@localhost/x", ["is not the address of a PostgreSQL database"]),
        (f"postgresql://ana:{PASSWORD}@localhost/x?schema=A-B", ["schema is not valid"]),
    ],
)
def test_an_address_that_leads_nowhere_is_told_without_its_password(
    shop: Workspace, address: str, words: list[str]
) -> None:
    shop.environment["LEHR_STORE"] = address
    for done in (shop.once(), shop.lehr("get", "assets"), shop.lehr("doctor")):
        done.failed(*words)
        assert PASSWORD not in done.out + done.err


def test_without_the_driver_it_is_said_what_to_install(shop: Workspace, tmp_path: Path) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('No module named psycopg')\n")
    shop.environment["PYTHONPATH"] = str(tmp_path)
    shop.lehr("get", "assets").failed("error[STO106]", "pip install 'lehr[postgres]'")


def test_a_server_that_dies_while_lehr_runs_loses_nothing(shop: Workspace, server: PostgresServer) -> None:
    with shop.run() as running:
        running.says("enforcing partition shop")
        motd = shop.production / "motd.txt"
        until("the first is made", motd.exists, running.said)
        # when the server is killed, and intent changes meanwhile
        server.stop(signal.SIGKILL)
        shop.declare_file("motd", "back\n")
        shop.commit()
        running.says("does not answer")
        assert PASSWORD not in running.said()
        # then what was in force stays so
        assert motd.read_text() == "welcome\n"
        shop.lehr("get", "assets").failed("the PostgreSQL server", "does not answer")
        # and when it is back, all goes on by itself
        server.start()
        until("the change is made", lambda: motd.read_text() == "back\n", running.said)
        assert shop.lehr("get", "incarnations", "-o", "name").out.split() == ["shop@2", "shop@1"]


@pytest.fixture
def other(shop: Workspace) -> Workspace:
    """Another machine, as far as one can be had here: another state folder."""
    other = Workspace(shop.folder / "elsewhere")
    other.repository = shop.repository
    other.environment["LEHR_STORE"] = shop.environment["LEHR_STORE"]
    return other


def test_of_two_over_one_store_the_second_stands_by_until_the_first_ends(
    shop: Workspace, other: Workspace
) -> None:
    motd = shop.production / "motd.txt"
    with shop.run() as first:
        first.says("enforcing partition shop")
        until("the first is made", motd.exists, first.said)
        with other.run() as second:
            # given that the second was refused the lease, and says whose it is
            second.says("standing by", f":{shop.state} enforces partition shop")
            status = other.lehr("status").out
            assert f"standing by, process {second.pid}: " in status
            assert f":{shop.state} enforces partition shop" in status
            other.lehr("pause", "motd", "--reason", "why not").failed(
                "error[CTL136]", "enforces partition shop"
            )
            waits = other.lehr("why", "motd").out
            assert "AsIntended" in waits
            # when the first is ended, then the second takes over at once
            assert first.end() == 0
            second.says("enforcing partition shop")
            shop.declare_file("motd", "from the second\n")
            shop.commit()
            until("the second goes on", lambda: motd.read_text() == "from the second\n", second.said)


def test_who_was_stopped_for_longer_than_its_lease_stands_by_and_comes_back(
    shop: Workspace, other: Workspace
) -> None:
    motd = shop.production / "motd.txt"
    with shop.run() as first:
        first.says("production is as intended")
        with other.run() as second:
            second.says("standing by")
            # when the first stops for longer than its lease, then the second takes over
            os.kill(first.pid, signal.SIGSTOP)
            try:
                time.sleep(LEASE_SECONDS)
                second.says("enforcing partition shop")
            finally:
                os.kill(first.pid, signal.SIGCONT)
            # and when it goes on, it writes nothing, and waits
            first.says("the lease is lost; standing by", f":{other.state}")
            assert second.end() == 0
            # then it takes the lease again, and enforces what was published meanwhile
            first.says("the lease is taken again")
            shop.declare_file("motd", "from the first again\n")
            shop.commit()
            until("the first goes on", lambda: motd.read_text() == "from the first again\n", first.said)


def test_a_run_that_may_only_wait_for_so_long_says_who_enforces(shop: Workspace, other: Workspace) -> None:
    with shop.run() as first:
        first.says("production is as intended")
        done = other.once("--timeout", "3s")
        assert done.code == 1
        assert "gave up after 3s: " in done.err
        assert f":{shop.state} enforces partition shop" in done.err


def test_a_second_partition_is_refused_before_it_takes_the_lease_of_the_first(
    shop: Workspace, tmp_path: Path
) -> None:
    # given a partition that runs on the store
    other = Workspace(tmp_path / "other")
    other.environment["LEHR_STORE"] = shop.environment["LEHR_STORE"]
    lehr_yaml = other.repository / "lehr.yaml"
    other.write("lehr.yaml", lehr_yaml.read_text().replace("partition: shop", "partition: theatre"))
    other.commit()
    with shop.run() as running:
        running.says("production is as intended")
        # when another workspace is started on the same store
        refused = other.once()
        # then it is refused, says what to do, and the state folder does not remember the store
        refused.failed("belongs to partition shop", "the workspace names theatre", "?schema=theatre")
        assert not (other.state / "store").exists()
        # and the first one goes on
        (shop.production / "motd.txt").write_text("by hand")
        assert shop.lehr("retry", "motd").code == 0
        shop.wait()
        assert (shop.production / "motd.txt").read_text() == "welcome\n"
