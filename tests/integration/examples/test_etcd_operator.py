"""The etcd example with real members: it grows, mends and shrinks, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from etcd_operator.machine import PROGRAM_VARIABLE, LocalMachine
from lehr.base.errors import TransientError
from tests.etcd import Site, Writer
from tests.ports import free_ports


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.fixture
def writer(site: Site) -> Iterator[Writer]:
    made = Writer(site)
    yield made
    made.stop()


def test_a_port_that_somebody_else_has_is_named_and_nothing_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRAM_VARIABLE, "/bin/true")
    port = free_ports(2)
    machine = LocalMachine(tmp_path / "kv", port)
    told = f"port {port + 1} of 127.0.0.1 cannot be had"
    with socket.create_server(("127.0.0.1", port + 1)), pytest.raises(TransientError, match=told):
        machine.run("0-a", {"0-a": 0}, new=True)
    assert machine.homes() == []


@pytest.mark.timeout(240)
def test_a_cluster_grows_mends_and_shrinks_and_nothing_acknowledged_is_lost(
    site: Site, writer: Writer
) -> None:
    site.declare(1)
    site.start()
    site.wait_for_size(1)
    writer.wait_for_more()

    site.declare(3)
    site.wait_for_size(3)
    writer.wait_for_more()

    site.declare(5)
    site.wait_until(lambda status: status["voters"] == 4)
    site.stop(signal.SIGKILL)  # the members go on; the next controller finds them
    assert len(site.processes()) >= 4
    site.start()
    site.wait_for_size(5)

    before = site.processes()
    victim = min(before)
    site.kill(victim)
    site.wait_until(lambda status: site.processes().get(victim, before[victim]) != before[victim])
    site.wait_for_size(5)
    assert {home for home, process in site.processes().items() if before.get(home) != process} == {victim}

    site.kill(victim)
    shutil.rmtree(site.data / "members" / victim)
    site.wait_until(lambda status: victim not in {member["home"] for member in status["members"]})
    site.wait_for_size(5)
    assert len(site.homes() - before.keys()) == 1

    site.declare(3)
    site.wait_for_size(3)
    assert {path.name for path in (site.data / "members").iterdir()} == site.homes()
    writer.wait_for_more()

    writer.stop()
    kept = site.contents("written/")
    assert {key: kept.get(key) for key in writer.acknowledged} == writer.acknowledged
    site.stop(signal.SIGTERM)
    assert len(site.processes()) == 3


@pytest.mark.timeout(120)
def test_a_controller_that_is_killed_at_every_step_gets_there_all_the_same(site: Site) -> None:
    site.declare(3)
    for step in ("begin", "launch", "add a member", "launch", "let a member vote", "add a member"):
        told = len(site.log())
        site.start()
        site.wait_for_log(step, told)
        site.stop(signal.SIGKILL)
    site.start()
    site.wait_for_size(3)
    assert {path.name for path in (site.data / "members").iterdir()} == site.homes()


@pytest.mark.timeout(120)
def test_no_healthy_member_is_removed_while_another_does_not_answer(site: Site) -> None:
    site.declare(3)
    site.start()
    site.wait_for_size(3)
    before = site.processes()
    hanging = max(before)
    os.kill(before[hanging], signal.SIGSTOP)
    site.declare(1)
    site.wait_until(lambda status: status["size"] == 1 and f"{hanging} does not answer" in status["why"])
    time.sleep(3)  # it does not change its mind
    assert (site.status()["voters"], site.status()["answering"], site.processes()) == (3, 2, before)
    os.kill(before[hanging], signal.SIGCONT)
    site.wait_for_size(1)


@pytest.mark.timeout(120)
def test_two_controllers_keep_out_of_each_others_way(site: Site) -> None:
    site.declare(1)
    site.start()
    site.wait_for_size(1)
    before = site.processes()
    site.start()
    site.wait_for_log("another controller is at work", 0)
    assert site.processes() == before


@pytest.mark.timeout(120)
def test_what_cannot_be_mended_is_left_to_a_person_and_a_turndown_keeps_the_data(site: Site) -> None:
    site.declare(1)
    site.start()
    site.wait_for_size(1)
    (home,) = site.homes()
    site.post(0, "kv/put", {"key": "YQ==", "value": "YQ=="})

    site.declare(1, "{lehr.Turndown: {reason: nobody reads it}}")
    site.wait_until(lambda status: status["step"] == "rest" and not site.processes())
    assert "turned down" in site.status()["why"]

    site.declare(1)
    site.wait_for_size(1)
    assert site.contents("a") == {"a": "a"}

    site.kill(home)
    shutil.rmtree(site.data / "members" / home / "data")
    site.wait_until(lambda status: "restore a snapshot" in status["why"])
    time.sleep(2)  # it does not change its mind
    assert not site.processes()
