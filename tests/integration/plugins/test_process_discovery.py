"""What `lehr.Process` drafts of programs that run."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.operation import DONE
from lehr.model.types import Registry
from lehr.plugins.process import procfs
from lehr.plugins.process.payload import PROCESS, TYPES, Port, Process
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.sdk.plugin import Found
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.codes import raises
from tests.ports import free_ports

REGISTRY = Registry(TYPES)
LISTEN = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(600)"
)
MASTER = """
import os, socket, sys, time
if "worker" in sys.argv:
    time.sleep(600)
alone = "alone" in sys.argv
server = None if alone else socket.create_server(("127.0.0.1", int(sys.argv[1])))
if os.fork():
    time.sleep(600)
if alone:
    server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    time.sleep(600)
os.set_inheritable(server.fileno(), True)
os.execv(sys.orig_argv[0], [*sys.orig_argv, "worker"])
"""
SLEEP = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"]


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state directory; at the end nothing that was started below it is left."""
    yield tmp_path / "state"
    root = (tmp_path / "state").resolve() / "supervisor"
    while left := list(procfs.marked(root)):
        for process, _ in sorted(left, key=lambda item: procfs.REPLICA in item[1]):
            procfs.send(process, signal.SIGKILL)


def asset_of(payload: Process, id: str = "shop/web") -> Asset:
    return make_asset(AssetId(id), PROCESS, payload, {})


def apply(state: Path, *assets: Asset) -> None:
    async def main() -> None:
        plugin = ProcessPlugin(state, Inline(), SystemClock())
        for asset in assets:
            target = target_of(asset)
            assert await plugin.push(target, FixedReader(assets, REGISTRY), push_of(target)) == DONE

    asyncio.run(main())


def drafts(state: Path, *query: str, partition: str = "test") -> list[Found]:
    """What is found; each without an obstacle differs in nothing."""

    async def main() -> list[Found]:
        plugin = ProcessPlugin(state, Inline(), SystemClock())
        found = [item async for item in plugin.discover(query, Partition(partition))]
        for draft in found:
            if not draft.obstacle:
                asset = asset_of(msgspec.convert(draft.payload, Process), draft.id)
                assert (await plugin.diff(target_of(asset), FixedReader([asset], REGISTRY))).changes == ()
        return found

    return asyncio.run(main())


def test_what_lehr_runs_and_nobody_declares_any_more_is_drafted_with_its_placeholders(state: Path) -> None:
    ports = free_ports(2)
    payload = Process(
        command=[sys.executable, "-I", "-S", "-c", LISTEN, "{port}", "number {replica}"],
        environment={"PLACE": "at {port}", "SHOP": "yes"},
        ports=[Port("http", ports)],
        replicas=2,
        stop_timeout_seconds=3,
        group="shops",
        version="v7",
    )
    apply(state, asset_of(payload), asset_of(Process(command=SLEEP), "other"))
    [draft] = drafts(state, "shop/*")
    assert (draft.id, draft.obstacle) == ("shop/web", "")
    assert msgspec.convert(draft.payload, Process, strict=False).command == payload.command
    assert draft.payload["environment"] == {"PLACE": "at {port}", "SHOP": "yes"}
    said = {name: draft.payload[name] for name in ("group", "version", "replicas", "stop_timeout_seconds")}
    assert said == {"group": "shops", "version": "v7", "replicas": 2, "stop_timeout_seconds": 3}
    assert drafts(state, str(ports)) == [draft]


def test_what_cannot_be_rebuilt_from_what_runs_is_not_offered_as_it_is(state: Path) -> None:
    other = asset_of(Process(command=SLEEP), "configuration")
    apply(state, asset_of(Process(command=SLEEP, restart_on=["configuration"])), other)
    [draft] = drafts(state, "shop/web")
    assert "content" in draft.obstacle


def test_another_partition_s_programs_are_not_found(state: Path) -> None:
    apply(state, asset_of(Process(command=SLEEP)))
    with raises("PRO101", StalledError, match="shop/web"):
        drafts(state, "shop/web", partition="another")


def test_what_others_have_started_is_described_and_cannot_be_taken_over(state: Path, tmp_path: Path) -> None:
    port = free_ports(1)
    command = [sys.executable, "-I", "-S", "-c", LISTEN, str(port)]
    with subprocess.Popen(command, cwd=tmp_path, env={"PASSWORD": "hunter2"}) as started:
        try:
            while not procfs.listening_ports(started.pid):
                assert started.poll() is None
            [draft] = drafts(state, f":{port}")
        finally:
            started.kill()
    assert f"process {started.pid}" in draft.obstacle
    assert draft.payload == {
        "command": [*command[:-1], "{port}"],
        "directory": str(tmp_path),
        "ports": [{"name": "http", "base": port}],
    }
    assert "hunter2" not in str(draft)


@pytest.mark.parametrize("worker", ["alone", "shares"])
def test_of_a_master_and_its_worker_the_master_is_drafted(state: Path, worker: str) -> None:
    """The worker is a fork that listens alone, or another program that has the port from its master."""
    port = free_ports(1)
    command = [sys.executable, "-I", "-S", "-c", MASTER, str(port), worker]
    with subprocess.Popen(command, start_new_session=True) as started:
        try:
            while not procfs.listeners(frozenset({port})):
                assert started.poll() is None
            [draft] = drafts(state, str(port))
        finally:
            os.killpg(started.pid, signal.SIGKILL)
    assert f"did not start process {started.pid}" in draft.obstacle
    assert draft.payload["command"][-1] == worker


def test_a_port_that_nobody_listens_on_is_refused(state: Path) -> None:
    with raises("PRO119", StalledError):
        drafts(state, str(free_ports(1)))
