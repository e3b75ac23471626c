# ruff: noqa: F401, F811  (fixtures)
"""A change of an asset in `reload_on` reloads running replicas, and no request is lost."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.base.errors import LehrError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Diff
from lehr.model.operation import DONE, Outcome, Progress, Result
from lehr.plugins.process import procfs
from lehr.plugins.process.payload import PROCESS, Port, Process
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests.installed import installed
from tests.integration.plugins.test_process_plugin import (
    REGISTRY,
    Site,
    free,
    get,
    kill,
    ports,
    site,
    state,
    until,
)
from tests.load import Load

# Answers what its settings hold: it reads them at its start and on SIGHUP. On SIGUSR1 it is sick.
SERVER = r"""
import os, signal, socket, sys
def read(*_):
    global settings
    settings = open(sys.argv[2], "rb").read()
def fail(*_):
    global settings
    settings = b"sick"
read()
signal.signal(signal.SIGHUP, read)
signal.signal(signal.SIGUSR1, fail)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=50)
while True:
    connection, _ = server.accept()
    connection.recv(4096)
    status = b"503 Sick" if settings == b"sick" else b"200 OK"
    connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(settings), settings))
    connection.close()
"""


class Reloadable:
    """An asset that reloads on the asset `settings`, which stands for a file that it reads.

    Args:
        site: where it runs.
        file: the file.
        asset: the process.
    """

    def __init__(self, site: Site, file: Path, asset: Asset) -> None:
        self._site = site
        self._file = file
        self.asset = asset

    def write(self, content: str) -> None:
        self._file.write_text(content)

    def diff(self, content: str) -> Diff:
        found = self._site.run(lambda plugin: plugin.diff(target_of(self.asset), self._reader(content)))
        assert isinstance(found, Diff)
        return found

    def paths(self, content: str) -> list[str]:
        return [change.path for change in self.diff(content).changes]

    def push(self, content: str) -> Outcome:
        target = target_of(self.asset)
        reader = self._reader(content)
        found = self._site.run(lambda plugin: plugin.push(target, reader, push_of(target)))
        assert isinstance(found, Outcome)
        return found

    def refused(self, content: str) -> LehrError:
        with pytest.raises(TransientError) as caught:
            self.push(content)
        return caught.value

    def apply(self, content: str) -> None:
        self.write(content)
        assert self.push(content) == DONE
        assert self.diff(content).empty

    def _reader(self, content: str) -> FixedReader:
        settings = make_asset(AssetId("settings"), PROCESS, Process(command=["true", content]), {})
        return FixedReader([self.asset, settings], REGISTRY)


def server(site: Site, folder: Path, base: int, **fields: Any) -> Reloadable:
    file = folder / "settings"
    payload = Process(
        command=[sys.executable, "-I", "-S", "-c", SERVER, "{port}", str(file)],
        ports=[Port("http", base)],
        health_url="http://127.0.0.1:{port}/",
        reload_on=["settings"],
        **{"stop_timeout_seconds": 5, "start_timeout_seconds": 10, **fields},
    )
    return Reloadable(site, file, make_asset(AssetId("web"), PROCESS, payload, {}))


def test_a_change_in_reload_on_is_loaded_by_the_same_processes(
    site: Site, tmp_path: Path, ports: int
) -> None:
    web = server(site, tmp_path, ports, replicas=2)
    web.apply("a")
    before = site.pids()
    found = web.diff("b")
    assert [change.path for change in found.changes] == ["replicas/0/loaded", "replicas/1/loaded"]
    assert not found.effects.disruptive
    assert found.effects.capacity == 0
    web.apply("b")
    assert site.pids() == before
    assert [get(ports), get(ports + 1)] == ["b", "b"]


def test_a_program_that_crashed_and_started_again_has_loaded_what_it_read(
    site: Site, tmp_path: Path, ports: int
) -> None:
    web = server(site, tmp_path, ports)
    web.apply("a")
    web.apply("b")
    old = site.pids()[0]
    kill(old)
    until(lambda: site.pids().get(0, old) != old and not free(ports))
    assert web.diff("b").empty
    assert web.paths("a") == ["replicas/0/loaded"]


def test_a_reload_of_a_former_process_does_not_count(site: Site, tmp_path: Path, ports: int) -> None:
    web = server(site, tmp_path, ports)
    web.apply("a")
    web.apply("b")
    rolled = server(site, tmp_path, ports, environment={"NEW": "1"})
    rolled.write("c")
    assert rolled.paths("c") == ["replicas/0/content"]
    rolled.apply("c")
    assert get(ports) == "c"


def test_a_command_reloads_with_the_environment_of_the_program_and_its_pid(
    site: Site, tmp_path: Path, ports: int
) -> None:
    script = 'test "$GREETING" = hello && kill -HUP $MAINPID'
    web = server(
        site, tmp_path, ports, reload_command=["sh", "-c", script], environment={"GREETING": "hello"}
    )
    web.apply("a")
    before = site.pids()
    web.apply("b")
    assert site.pids() == before
    assert get(ports) == "b"


def test_a_command_that_fails_fails_the_push_with_its_last_lines(
    site: Site, tmp_path: Path, ports: int
) -> None:
    script = "echo 'settings: line 7 is wrong' >&2; exit 3"
    web = server(site, tmp_path, ports, reload_command=["sh", "-c", script])
    web.apply("a")
    before = site.pids()
    failure = web.refused("b")
    assert failure.code == "PRO132"
    assert "the command that reloads replica 0 failed with exit status 3" in str(failure)
    assert "line 7 is wrong" in failure.why
    assert web.paths("b") == ["replicas/0/loaded"], "it has not loaded it"
    assert site.pids() == before
    assert get(ports) == "a"


def test_a_command_that_hangs_is_ended_with_all_that_it_started(
    site: Site, tmp_path: Path, ports: int
) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/child; wait"
    web = server(site, tmp_path, ports, reload_command=["sh", "-c", script], start_timeout_seconds=2)
    web.apply("a")
    assert "took longer than 2 s" in str(web.refused("b"))
    child = int((tmp_path / "child").read_text())
    until(lambda: procfs.identify(child) is None)


def test_an_operation_has_not_ended_while_a_command_that_it_started_runs(
    site: Site, tmp_path: Path, ports: int
) -> None:
    os.mkfifo(tmp_path / "go")
    web = server(site, tmp_path, ports, reload_command=["sh", "-c", f"cat {tmp_path}/go"])
    web.apply("a")
    pushing = threading.Thread(target=web.push, args=("b",))
    pushing.start()

    def progress() -> object:
        return site.run(lambda plugin: plugin.status(push_of(target_of(web.asset)).operation))

    until(lambda: progress() is Progress.RUNNING)
    (tmp_path / "go").write_text("")
    pushing.join()
    assert progress() is Progress.ENDED


def test_a_program_that_a_reload_ends_fails_the_push(site: Site, tmp_path: Path, ports: int) -> None:
    web = server(site, tmp_path, ports, reload_signal="SIGUSR2")  # which it does not handle
    web.apply("a")
    assert "replica 0 ended when it was reloaded" in str(web.refused("b"))
    until(lambda: web.diff("b").empty)  # supervisord starts it again


def test_a_reload_that_makes_a_replica_unhealthy_fails_the_push_and_the_next_reload_repairs_it(
    site: Site, tmp_path: Path, ports: int
) -> None:
    web = server(site, tmp_path, ports, start_timeout_seconds=2, replicas=2, health_timeout_seconds=0.5)
    web.apply("a")
    before = site.pids()
    web.write("sick")
    failure = web.refused("sick")
    assert failure.code == "PRO131"
    assert [get(ports), get(ports + 1)] == ["503", "a"], "it stops at the first replica that is not healthy"
    web.apply("b")
    assert site.pids() == before
    assert [get(ports), get(ports + 1)] == ["b", "b"]


# --- the programs that people reload -----------------------------------------


NGINX = """
daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log stderr;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port}; location / {{ return 200 "{answer}"; }} }}
}}
"""

HAPROXY = """
global
    maxconn 512
defaults
    mode http
    timeout client 30s
    timeout connect 5s
    timeout server 30s
frontend web
    bind 127.0.0.1:{port}
    http-request return status 200 content-type text/plain string "{answer}"
"""


def reloaded_under_load(web: Reloadable, template: str, folder: Path, port: int, times: int) -> Load:
    def settings(answer: str) -> str:
        return template.format(folder=folder, port=port, answer=answer)

    web.apply(settings("0"))
    with Load(port) as load:
        for time in range(1, times + 1):
            web.apply(settings(str(time)))
            until(lambda answer=str(time): answer in load.answers)  # type: ignore[misc]
    return load


def nginx(site: Site, folder: Path, port: int) -> Reloadable:
    program, file = installed("nginx"), folder / "nginx.conf"
    run = f"{program} -c {file} -p {folder} -e stderr"
    payload = Process(
        command=run.split(),
        ports=[Port("http", port)],
        health_url="http://127.0.0.1:{port}/",
        reload_on=["settings"],
        reload_command=["sh", "-c", f"{run} -t && kill -HUP $MAINPID"],
    )
    return Reloadable(site, file, make_asset(AssetId("web"), PROCESS, payload, {}))


def test_nginx_loses_no_request_when_it_is_reloaded(site: Site, tmp_path: Path, ports: int) -> None:
    load = reloaded_under_load(nginx(site, tmp_path, ports), NGINX, tmp_path, ports, 10)
    assert load.lost == []
    assert load.asked > 10


def test_nginx_keeps_its_configuration_when_the_new_one_is_wrong(
    site: Site, tmp_path: Path, ports: int
) -> None:
    web = nginx(site, tmp_path, ports)
    web.apply(NGINX.format(folder=tmp_path, port=ports, answer="good"))
    web.write("http { server { listem 80; } }")
    failure = web.refused("wrong")
    assert "listem" in failure.why
    assert get(ports) == "good"


def test_haproxy_loses_no_request_when_it_is_reloaded(site: Site, tmp_path: Path, ports: int) -> None:
    program, file = installed("haproxy"), tmp_path / "haproxy.cfg"
    payload = Process(
        command=[program, "-W", "-db", "-f", str(file)],
        ports=[Port("http", ports)],
        health_url="http://127.0.0.1:{port}/",
        reload_on=["settings"],
        reload_command=["sh", "-c", f"{program} -c -q -f {file} && kill -USR2 $MAINPID"],
    )
    web = Reloadable(site, file, make_asset(AssetId("web"), PROCESS, payload, {}))
    load = reloaded_under_load(web, HAPROXY, tmp_path, ports, 10)
    assert load.lost == []
    assert load.asked > 10
