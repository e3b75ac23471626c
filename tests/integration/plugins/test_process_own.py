# ruff: noqa: F401, F811  (fixtures)
"""Programs that overwrite their environment, as nginx, Redis and PostgreSQL do, are known as Lehr's own."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Goal
from lehr.model.operation import Result
from lehr.plugins.process import procfs
from lehr.plugins.process.ownership import Ownership
from lehr.plugins.process.payload import PROCESS, Port, Process
from tests.integration.plugins.test_process_plugin import (
    Site,
    end,
    free,
    get,
    ports,
    site,
    state,
    until,
)

# A master with one worker, as nginx has them: both wipe environment and arguments; the worker answers
# $VERSION, and goes on when its master is killed. With SESSION, it leaves its session, as PostgreSQL's do.
MASTER = r"""
import os, signal, socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=50)
version = os.environ.get("VERSION", "").encode()
apart = "SESSION" in os.environ
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    for first, last in (fields[45:47], fields[47:49]):
        memory.seek(int(first))
        memory.write(b"\0" * (int(last) - int(first)))
worker = os.fork()
if worker:
    signal.signal(signal.SIGTERM, lambda *_: (os.kill(worker, signal.SIGTERM), os._exit(0)))
    while True:
        time.sleep(600)
if apart:
    os.setsid()
    server.settimeout(0.2)
while not apart or os.getppid() != 1:
    try:
        connection, _ = server.accept()
    except TimeoutError:
        continue
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(version), version))
    connection.close()
"""


def master(base: int, version: str, **fields: Any) -> Asset:
    payload = Process(
        command=[sys.executable, "-I", "-S", "-c", MASTER, "{port}"],
        environment={"VERSION": version, **fields.pop("environment", {})},
        ports=[Port("http", base)],
        health_url="http://127.0.0.1:{port}/",
        version=version,
        **{"stop_timeout_seconds": 5, "start_timeout_seconds": 10, **fields},
    )
    return make_asset(AssetId("web"), PROCESS, payload, {})


def own(site: Site) -> list[procfs.ProcessId]:
    return [process for process, _ in Ownership(site.root).marked()]


def the_master(site: Site) -> procfs.ProcessId:
    found = {process.pid for process in own(site)}
    [pid] = [pid for pid in found if (kin := procfs.kin(pid)) is not None and kin.group == pid]
    process = procfs.identify(pid)
    assert process is not None
    return process


def test_a_program_without_environment_is_rolled_and_ends_with_its_workers(
    site: Site,
    ports: int,
) -> None:
    site.apply(master(ports, "1"))
    assert site.pids() == {}, "the environment shows no mark any more"
    assert len(own(site)) == 2
    site.apply(master(ports, "2"))
    assert get(ports) == "2"
    site.apply(master(ports, "2"), Goal.ABSENT)
    assert own(site) == []
    assert free(ports)


def test_what_runs_in_a_session_of_its_own_is_known_by_its_parent(site: Site, ports: int) -> None:
    site.apply(master(ports, "1", environment={"SESSION": "1"}))
    assert len(own(site)) == 1, "the worker shows nothing itself"
    site.apply(master(ports, "2", environment={"SESSION": "1"}))
    assert get(ports) == "2"


def test_workers_whose_master_was_killed_are_ended_before_the_next_one(
    site: Site,
    ports: int,
) -> None:
    asset = master(ports, "1")
    site.apply(asset)
    before = own(site)
    end(the_master(site))
    # The worker holds the port, so no restart of supervisord's helps.
    until(lambda: site.push(asset).result is Result.DONE and site.diff(asset).empty)
    assert not any(procfs.alive(process) for process in before)
    assert len(own(site)) == 2
    assert get(ports) == "1"


def test_a_killed_supervisord_leaves_no_second_copy_of_it(site: Site, ports: int) -> None:
    site.apply(master(ports, "1"))
    before = own(site)
    for process in site.supervisords():
        end(process)
    assert site.paths(master(ports, "1")) == [("replicas/0", "running", "running without supervisord")]
    site.apply(master(ports, "2"))
    assert get(ports) == "2"
    assert not any(procfs.alive(process) for process in before)
    assert len(own(site)) == 2


def test_a_stranger_without_environment_stays_one(site: Site, ports: int) -> None:
    """Also below a process group that once was a replica's, by number alone."""
    site.apply(master(ports, "1"))
    kin = procfs.kin(the_master(site).pid)
    assert kin is not None
    note = next(site.root.glob("*/assets/*/0.run"))
    text = note.read_text()
    site.apply(master(ports, "1"), Goal.ABSENT)
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    try:
        group = procfs.kin(pid)
        assert group is not None
        note.parent.mkdir(parents=True)
        note.write_text(text.replace(f'"pid": {kin.process.pid}', f'"pid": {group.group}'))
        assert own(site) == []
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
