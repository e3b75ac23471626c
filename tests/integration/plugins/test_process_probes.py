# ruff: noqa: F401, F811  (fixtures)
"""Probes of real replicas: what is not live is restarted, what is not ready is waited for."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lehr.base.clock import SystemClock
from lehr.model.asset import Asset
from lehr.model.diff import Diff
from lehr.model.operation import DONE, Result
from lehr.plugins.process import rpc
from lehr.plugins.process.payload import Port
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.plugins.process.probe import Probe
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.integration.plugins.test_process_plugin import (
    KEY,
    REGISTRY,
    Site,
    get,
    kill,
    ports,
    program,
    site,
    state,
    until,
    web,
)


def touch(path: Path) -> Probe:
    """A probe that succeeds while `path` exists."""
    return Probe(command=["test", "-e", str(path)])


def woken(site: Site, asset: Asset, change: Callable[[], None]) -> Diff:
    """The diff after the watch has reported the asset, which was as intended before `change`."""

    async def run(plugin: ProcessPlugin) -> Diff:
        read = FixedReader([asset], REGISTRY)
        while not (await plugin.diff(target_of(asset), read)).empty:
            await SystemClock().sleep(0.05)
        watch = plugin.watch()
        change()
        async with asyncio.timeout(20):  # which only a bug needs
            assert await anext(watch) == KEY
        return await plugin.diff(target_of(asset), read)

    found = site.run(run)
    assert isinstance(found, Diff)
    return found


def paths(found: Diff) -> list[tuple[str, object]]:
    return [(change.path, change.observed) for change in found.changes]


def test_a_process_that_is_stopped_by_a_signal_is_noticed_between_resyncs(site: Site) -> None:
    asset = program("sleep", "600", start_timeout_seconds=2, health_timeout_seconds=0.2)
    site.apply(asset)
    until(lambda: program_age(site) > 3)
    pid = site.pids()[0]
    found = woken(site, asset, lambda: os.kill(pid, signal.SIGSTOP))
    assert paths(found) == [("replicas/0/health", "unhealthy")]
    assert found.notes == (f"replica 0 is unhealthy: process {pid} is stopped by a signal, such as SIGSTOP",)


def test_a_replica_that_turns_unhealthy_is_noticed_between_resyncs(site: Site, ports: int) -> None:
    asset = web(
        ports, replicas=1, start_timeout_seconds=2, health_timeout_seconds=0.2, health_interval_seconds=0.5
    )
    site.apply(asset)
    until(lambda: program_age(site) > 3)
    found = woken(site, asset, lambda: (get(ports, "/break"), None)[1])
    assert paths(found) == [("replicas/0/health", "unhealthy")]
    assert found.notes == (f"replica 0 is unhealthy: http://127.0.0.1:{ports}/healthz answered 503",)


def pid_of(site: Site) -> int:
    """Of replica 0, even if it has overwritten its environment."""
    return int(rpc.call(site.root / "test", "getProcessInfo", "test=web-0")["pid"])


def program_age(site: Site) -> float:
    """Seconds since the start of replica 0."""
    ticks = float(Path(f"/proc/{pid_of(site)}/stat").read_text().rpartition(")")[2].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    return up - ticks / os.sysconf("SC_CLK_TCK")


def test_a_replica_that_is_not_ready_is_reported_and_keeps_running(site: Site, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.touch()
    asset = program(
        "sleep",
        "600",
        readiness=touch(ready),
        start_timeout_seconds=3,
        health_timeout_seconds=0.2,
        health_interval_seconds=0.5,
    )
    site.apply(asset)
    before = site.pids()
    found = woken(site, asset, ready.unlink)
    assert paths(found) == [("replicas/0/readiness", "not ready")]
    assert found.look_again is not None
    [note] = found.notes
    assert note == "replica 0 is not ready: its probe `test` failed with exit status 1"
    until(lambda: program_age(site) > 4)
    assert site.diff(asset).look_again is not None, "no push, however long it takes"
    ready.touch()
    assert site.diff(asset).empty
    assert site.pids() == before


def test_a_roll_waits_until_each_replica_is_ready(site: Site, ports: int, tmp_path: Path) -> None:
    old = web(ports, version="1")
    site.apply(old)
    before = site.pids()
    late = web(ports, version="2", readiness=touch(tmp_path / "ready"), start_timeout_seconds=2)
    outcome = site.push(late)
    assert outcome.result is Result.FAILED
    assert (
        "replica 0 did not become healthy in 2 s: its probe `test` failed with exit status 1"
        in outcome.message
    )
    assert site.pids()[1] == before[1]
    middle = site.pids()[0]
    again = site.push(late)
    assert "replica 0 was not ready for 2 s" in again.message
    assert site.pids() == {0: middle, 1: before[1]}, "what is not ready is not restarted"
    (tmp_path / "ready").touch()
    site.apply(late)
    assert site.pids()[0] == middle
    assert [get(ports), get(ports + 1)] == ["2", "2"]


def test_a_replica_that_is_not_live_is_restarted_whether_it_is_ready_or_not(
    site: Site, ports: int, tmp_path: Path
) -> None:
    alive = tmp_path / "alive"
    alive.touch()
    asset = program("sleep", "600", health=touch(alive), start_timeout_seconds=1, health_timeout_seconds=0.2)
    site.apply(asset)
    old = site.pids()[0]
    alive.unlink()
    until(lambda: site.paths(asset) == [("replicas/0/health", "healthy", "unhealthy")])
    assert site.push(asset).result is Result.FAILED, "the successor is not healthy either"
    alive.touch()
    site.apply(asset)
    assert site.pids()[0] != old


def test_a_command_probes_with_the_environment_of_the_program_and_its_pid(site: Site) -> None:
    script = 'test "$GREETING" = hello && test -z "$LEHR_REPLICA" && kill -0 $MAINPID'
    probe = Probe(command=["sh", "-c", script])
    asset = program("sleep", "600", environment={"GREETING": "hello"}, health=probe, start_timeout_seconds=9)
    site.apply(asset)
    wrong = program("sleep", "600", environment={"GREETING": "bye"}, health=probe, start_timeout_seconds=2)
    assert "its probe `sh` failed with exit status 1" in site.push(wrong).message


def test_a_command_that_hangs_is_ended_with_all_that_it_started(site: Site, tmp_path: Path) -> None:
    script = f"echo $$ >> {tmp_path}/pids; sleep 600"
    probe = Probe(command=["sh", "-c", script], timeout_seconds=0.5)
    asset = program("sleep", "600", health=probe, start_timeout_seconds=2)
    assert "its probe `sh` did not end in 0.5 s" in site.push(asset).message
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        until(lambda pid=pid: not Path(f"/proc/{pid}").exists())  # type: ignore[misc]


def listener(ports: int, **fields: Any) -> Asset:
    """Accepts connections, and never answers."""
    script = (
        "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"
    )
    command = (sys.executable, "-I", "-S", "-c", script, "{port}")
    return program(*command, ports=[Port("http", ports)], **fields)


def test_an_endpoint_that_hangs_is_not_ready(site: Site, ports: int) -> None:
    probe = Probe(url="http://127.0.0.1:{port}/", timeout_seconds=0.3)
    asset = listener(ports, readiness=probe, start_timeout_seconds=2)
    assert f"http://127.0.0.1:{ports}/ did not answer in 0.3 s" in site.push(asset).message


def test_a_port_that_accepts_connections_is_healthy(site: Site, ports: int) -> None:
    site.apply(listener(ports, replicas=2, health=Probe(tcp="127.0.0.1:{port}")))
    assert sorted(site.pids()) == [0, 1]


def test_redis_is_live_by_its_own_client_and_restarted_when_it_hangs(site: Site, ports: int) -> None:
    redis, client = shutil.which("redis-server"), shutil.which("redis-cli")
    if redis is None or client is None:
        pytest.skip("NO REDIS: nothing real was tested here; install the package redis-server")
    asset = program(
        redis,
        *("--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"),
        ports=[Port("redis", ports)],
        health=Probe(command=[client, "-p", "{port}", "ping"], timeout_seconds=2),
        start_timeout_seconds=3,
        stop_timeout_seconds=1,
        health_timeout_seconds=0.5,
    )
    site.apply(asset)
    old = pid_of(site)
    until(lambda: program_age(site) > 3)
    found = woken(site, asset, lambda: os.kill(old, signal.SIGSTOP))
    assert paths(found) == [("replicas/0/health", "unhealthy")]
    site.apply(asset)
    assert pid_of(site) != old
    answer = subprocess.run([client, "-p", str(ports), "ping"], capture_output=True, check=True)
    assert answer.stdout == b"PONG\n"
