"""Rules of the plugin `lehr.Process`, with real supervisords and real programs."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.blocking import Inline, Threads
from lehr.base.clock import SystemClock
from lehr.base.digest import Digest
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.diff import Diff, Goal
from lehr.model.operation import DONE, Outcome, Progress, Result
from lehr.model.types import Registry
from lehr.plugins.process import procfs, rpc
from lehr.plugins.process.ownership import Ownership
from lehr.plugins.process.payload import PROCESS, TYPES, Port, Process
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import troubles
from tests.ports import free_ports

REGISTRY = Registry(TYPES)
SECRET = "hunter2-hunter2"
KEY = AssetKey(Partition("test"), AssetId("web"))

# Serves one request at a time: /healthz, /break and /mend (the health), anything else: $VERSION.
SERVER = r"""
import os, signal, socket, sys
if os.environ.get("STUBBORN"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.environ.get("DIES"):
    sys.stdout.write("reading settings\n")
    sys.stderr.write("cannot read settings\nline 7 is wrong\n")
    sys.exit(int(os.environ["DIES"]))
healthy = not os.environ.get("SICK")
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=50)
while True:
    connection, _ = server.accept()
    path = (connection.recv(4096).split(b" ") + [b"", b""])[1]
    healthy = {b"/break": False, b"/mend": True}.get(path, healthy)
    status = b"200 OK" if healthy or path != b"/healthz" else b"503 Sick"
    body = os.environ.get("VERSION", "").encode()
    connection.sendall(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
    connection.close()
"""


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    """A state directory; at the end nothing that was started below it is left."""
    directory = tmp_path / "state"
    yield directory
    root = directory.resolve() / "supervisor"
    while left := [*procfs.marked(root), *Ownership(root).marked()]:
        # supervisord first, or it would start its programs again
        for process, _ in sorted(left, key=lambda item: procfs.REPLICA in item[1]):
            procfs.send(process, signal.SIGKILL)


@pytest.fixture
def ports() -> int:
    """The first of four ports that are free."""
    return free_ports(4)


def free(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) != 0


def web(base: int, id: str = "web", **fields: Any) -> Asset:
    environment = {"VERSION": fields.get("version", ""), **fields.pop("environment", {})}
    payload = Process(
        command=[sys.executable, "-I", "-S", "-c", SERVER, "{port}"],
        environment=environment,
        ports=[Port("http", base)],
        health_url="http://127.0.0.1:{port}/healthz",
        **{"replicas": 2, "stop_timeout_seconds": 5, "start_timeout_seconds": 10, **fields},
    )
    return make_asset(AssetId(id), PROCESS, payload, {})


def program(*command: str, id: str = "web", **fields: Any) -> Asset:
    return make_asset(AssetId(id), PROCESS, Process(command=list(command), **fields), {})


class Site:
    """A plugin over a state directory, in a control plane that starts and ends with each call."""

    def __init__(self, state: Path) -> None:
        self.root = state.resolve() / "supervisor"
        self._state = state

    def run(self, work: Callable[[ProcessPlugin], Coroutine[Any, Any, Any]]) -> Any:
        threads = Threads("process", 4)
        try:
            return asyncio.run(work(ProcessPlugin(self._state, threads, SystemClock())))
        finally:
            threads.close()

    def diff(self, asset: Asset, goal: Goal = Goal.PRESENT) -> Diff:
        found = self.run(lambda plugin: plugin.diff(target_of(asset, goal), FixedReader([asset], REGISTRY)))
        assert isinstance(found, Diff)
        return found

    def paths(self, asset: Asset, goal: Goal = Goal.PRESENT) -> list[tuple[str, Any, Any]]:
        return [(item.path, item.intended, item.observed) for item in self.diff(asset, goal).changes]

    def push(self, asset: Asset, goal: Goal = Goal.PRESENT, push: FixedPush | None = None) -> Outcome:
        target = target_of(asset, goal)
        word = push or push_of(target)
        try:
            found = self.run(lambda plugin: plugin.push(target, FixedReader([asset], REGISTRY), word))
        except StalledError as error:
            return Outcome(Result.STALLED, str(error))
        except TransientError as error:
            return Outcome(Result.FAILED, str(error))
        assert isinstance(found, Outcome)
        return found

    def apply(self, asset: Asset, goal: Goal = Goal.PRESENT) -> None:
        assert self.push(asset, goal) == DONE
        assert self.diff(asset, goal).empty

    def pids(self, key: AssetKey = KEY) -> dict[int, int]:
        """Pid by replica; every replica must be there once."""
        found: dict[int, int] = {}
        for process, environment in procfs.marked(self.root):
            owner, _, index = environment.get(procfs.REPLICA, "").rpartition("#")
            if owner == str(key):
                assert int(index) not in found, f"replica {index} runs twice"
                found[int(index)] = process.pid
        return found

    def supervisords(self) -> list[procfs.ProcessId]:
        return [process for process, marks in procfs.marked(self.root) if procfs.REPLICA not in marks]


@pytest.fixture
def site(state: Path) -> Site:
    return Site(state)


def get(port: int, path: str = "/") -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return str(error.code)


def end(process: procfs.ProcessId) -> None:
    procfs.send(process, signal.SIGKILL)
    while procfs.alive(process):
        pass


def kill(pid: int) -> None:
    process = procfs.identify(pid)
    assert process is not None
    end(process)


def until(holds: Callable[[], bool]) -> None:
    """Return when `holds`; the test's own timeout is the limit."""
    while not holds():
        time.sleep(0.02)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_keeps_the_contract_of_asset_plugins(rule: Rule, state: Path, ports: int) -> None:
    site = Site(state)

    def stop_by_hand() -> None:
        directory = site.root / "test"
        rpc.call(directory, "stopProcess", "test=web-0")

    def running() -> object:
        marks = [marks for _, marks in procfs.marked(site.root)]
        return sorted((item.get(procfs.REPLICA, ""), item.get(procfs.CONTENT, "")) for item in marks)

    secret = {"TOKEN": SECRET}
    subject = Subject(
        make=lambda: ProcessPlugin(state, Inline(), SystemClock()),
        registry=REGISTRY,
        asset=web(ports, replicas=1, environment=secret),
        changed=web(ports, replicas=1, version="2", environment=secret),
        disturb=stop_by_hand,
        crash=lambda: kill(site.pids()[0]),
        observe=running,
        secret=SECRET,
        troubles=(lambda: troubles.file_at(site.root),),
        query=("web",),
    )
    asyncio.run(rule(subject))


def test_from_nothing_to_serving(site: Site, ports: int) -> None:
    asset = web(ports, version="1")
    assert site.paths(asset) == [("replicas/0", "running", None), ("replicas/1", "running", None)]
    site.apply(asset)
    assert [get(ports), get(ports + 1)] == ["1", "1"]
    assert sorted(site.pids()) == [0, 1]


def test_a_change_rolls_every_replica_one_at_a_time(site: Site, ports: int) -> None:
    site.apply(web(ports, version="1"))
    before = site.pids()
    push = push_of(target_of(web(ports)))
    assert site.push(web(ports, version="2"), push=push) == DONE
    assert push.messages == ["rolling replica 0", "rolling replica 1"]
    assert [get(ports), get(ports + 1)] == ["2", "2"]
    assert not set(before.values()) & set(site.pids().values())


def test_a_roll_stops_at_the_first_replica_that_ends_and_says_what_it_said(site: Site, ports: int) -> None:
    site.apply(web(ports, version="1"))
    before = site.pids()
    outcome = site.push(web(ports, version="2", environment={"DIES": "3"}))
    assert outcome.result is Result.FAILED
    assert "replica 0" in outcome.message
    assert "exit status 3" in outcome.message
    assert "stderr: cannot read settings | line 7 is wrong; stdout: reading settings" in outcome.message
    assert site.pids()[1] == before[1]
    assert get(ports + 1) == "1"
    site.apply(web(ports, version="3"))


def test_a_roll_stops_at_the_first_replica_that_does_not_become_healthy(site: Site, ports: int) -> None:
    site.apply(web(ports, version="1"))
    before = site.pids()
    outcome = site.push(web(ports, version="2", environment={"SICK": "1"}, start_timeout_seconds=0.3))
    assert outcome.result is Result.FAILED
    assert "replica 0 did not become healthy in 0.3 s" in outcome.message
    assert "answered 503" in outcome.message
    assert site.pids()[1] == before[1]


def test_growing_and_shrinking_leave_the_others_alone(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=2))
    two = site.pids()
    site.apply(web(ports, replicas=4))
    four = site.pids()
    assert sorted(four) == [0, 1, 2, 3]
    site.apply(web(ports, replicas=2))
    assert site.pids() == two
    site.apply(web(ports, replicas=0))
    assert site.pids() == {}
    assert site.supervisords() == []


def test_a_push_that_is_superseded_stops_between_replicas_and_the_next_goes_on(
    site: Site, ports: int
) -> None:
    class Overtaken(FixedPush):
        def progress(self, message: str) -> None:
            super().progress(message)
            self.superseded = True

    site.apply(web(ports, version="1"))
    before = site.pids()
    push = Overtaken(push_of(target_of(web(ports))).operation)
    assert site.push(web(ports, version="2"), push=push) == Outcome(Result.FAILED, "superseded")
    middle = site.pids()
    assert middle[0] != before[0]
    assert middle[1] == before[1]
    site.apply(web(ports, version="2"))
    assert site.pids()[0] == middle[0], "what is right already is not touched"


def test_processes_outlive_a_control_plane_that_is_killed(site: Site, state: Path, ports: int) -> None:
    script = f"""
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_process_plugin import Site, web
Site(Path({str(state)!r})).apply(web({ports}, version="1"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    before = site.pids()
    assert sorted(before) == [0, 1]
    assert site.diff(web(ports, version="1")).empty
    assert site.pids() == before


def test_supervisord_restarts_what_crashes(site: Site, ports: int) -> None:
    asset = web(ports, version="1")
    site.apply(asset)
    kill(site.pids()[0])
    until(lambda: site.diff(asset).empty)
    assert get(ports) == "1"


def test_a_supervisord_that_was_killed_is_healed_without_a_second_copy(site: Site, ports: int) -> None:
    asset = web(ports, version="1")
    site.apply(asset)
    before = site.pids()
    for process in site.supervisords():
        end(process)
    assert site.pids() == before, "its programs still run"
    assert site.paths(asset) == [
        ("replicas/0", "running", "running without supervisord"),
        ("replicas/1", "running", "running without supervisord"),
    ]
    push = push_of(target_of(asset))
    assert site.push(asset, push=push) == DONE
    assert push.messages == ["rolling replica 0", "rolling replica 1"]
    assert site.diff(asset).empty
    assert sorted(site.pids()) == [0, 1]
    assert len(site.supervisords()) == 1


def test_a_supervisord_listens_at_a_socket_of_the_state_and_on_no_port(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=1))
    [supervisord] = site.supervisords()
    links = [os.readlink(file) for file in Path(f"/proc/{supervisord.pid}/fd").iterdir()]
    sockets = {
        link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:")
    }
    listening = {
        fields[9]
        for table in ("tcp", "tcp6")
        for fields in map(
            str.split, Path(f"/proc/{supervisord.pid}/net/{table}").read_text().splitlines()[1:]
        )
    }
    assert sockets
    assert listening, "the program listens, so there is something to be found"
    assert not sockets & listening
    [socket_file] = [path for path in site.root.rglob("*") if path.is_socket()]
    assert socket_file.stat().st_mode & 0o077 == 0


def test_a_supervisord_that_cannot_be_reached_is_replaced(site: Site, ports: int) -> None:
    asset = web(ports)
    site.apply(asset)
    (before,) = site.supervisords()
    (site.root / "test" / rpc.SOCKET).unlink()
    site.apply(asset)
    assert sorted(site.pids()) == [0, 1]
    (after,) = site.supervisords()
    assert after != before


def test_a_lost_state_directory_does_not_lead_to_a_second_copy(site: Site, ports: int) -> None:
    asset = web(ports)
    site.apply(asset)
    (site.root / "test").rename(site.root.parent / "lost")
    site.apply(asset)
    assert sorted(site.pids()) == [0, 1]
    assert len(site.supervisords()) == 1


def test_a_supervisord_that_hangs_is_a_transient_error(
    site: Site, ports: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asset = web(ports)
    site.apply(asset)
    monkeypatch.setattr(rpc, "TIMEOUT", 0.1)
    (supervisord,) = site.supervisords()
    procfs.send(supervisord, signal.SIGSTOP)
    try:
        with raises("PRO118", TransientError):
            site.diff(asset)
        outcome = site.push(asset)
        assert outcome.result is Result.FAILED
        assert "does not answer" in outcome.message
    finally:
        procfs.send(supervisord, signal.SIGCONT)


def test_a_program_that_ignores_sigterm_is_killed(site: Site, ports: int) -> None:
    stubborn = {"STUBBORN": "1"}
    site.apply(web(ports, replicas=1, environment=stubborn, stop_timeout_seconds=600))
    site.apply(web(ports, replicas=1, version="2", stop_timeout_seconds=0.2))
    assert get(ports) == "2"


def test_a_port_that_a_stranger_holds_is_named_and_nothing_is_stopped_for_it(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=1))
    before = site.pids()
    with socket.create_server(("127.0.0.1", ports + 2)):
        outcome = site.push(web(ports + 2, replicas=1))
    assert outcome.result is Result.FAILED
    assert f"port {ports + 2} of replica 0 is in use by process {os.getpid()} (" in outcome.message
    assert site.pids() == before


def test_ports_may_move_onto_those_of_other_replicas(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=3, version="1"))
    site.apply(web(ports + 1, replicas=3, version="2"))
    assert [get(ports + offset) for offset in (1, 2, 3)] == ["2", "2", "2"]


@pytest.mark.parametrize(
    ("asset", "complaint"),
    [
        (program("no-such-program"), "the program no-such-program"),
        (program("./no-such-program", directory="/tmp"), "/tmp/./no-such-program"),
        (program("/etc/passwd"), "not executable"),
        (program("true", directory="/no/such"), "the directory /no/such of the process does not exist"),
    ],
    ids=["name", "path", "not-executable", "directory"],
)
def test_what_cannot_run_stalls_before_anything_is_started(site: Site, asset: Asset, complaint: str) -> None:
    outcome = site.push(asset)
    assert outcome.result is Result.STALLED
    assert complaint in outcome.message
    assert site.supervisords() == []


def test_a_program_gets_exactly_what_is_written(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET_OF_LEHR", SECRET)
    odd = "50% of \"it\" is 'odd'; # {{x}}\n\ttwo, lines = ünïcödé %(here)s $HOME \\"
    script = "import json, os, sys; json.dump([sys.argv[1:], dict(os.environ)], open('out.new', 'w'));"
    script += "os.rename('out.new', 'out'); import time; time.sleep(600)"
    work = tmp_path / "with space; and 100%"
    work.mkdir()
    asset = program(sys.executable, "-c", script, odd, environment={"ODD": odd}, directory=str(work))
    site.apply(asset)
    import json

    arguments, environment = json.loads((work / "out").read_text())
    assert arguments == [odd]
    assert environment["ODD"] == odd
    assert environment["PATH"] == os.environ["PATH"]
    assert "A_SECRET_OF_LEHR" not in environment
    assert not [name for name in environment if name.startswith("SUPERVISOR_")]


def test_a_fenced_process_stops_stays_stopped_and_comes_back(site: Site, ports: int) -> None:
    asset = web(ports)
    site.apply(asset)
    site.apply(asset, Goal.FENCED)
    assert site.pids() == {}
    for process in site.supervisords():
        end(process)
    assert site.diff(asset, Goal.FENCED).empty
    other = web(ports + 2, id="other", replicas=1)
    site.apply(other)
    assert site.pids() == {}, "a new supervisord starts nothing that is fenced"
    site.apply(asset)
    assert sorted(site.pids()) == [0, 1]


def test_the_last_program_of_a_group_takes_its_supervisord_with_it(site: Site, ports: int) -> None:
    first, second = web(ports, replicas=1), web(ports + 1, id="other", replicas=1)
    site.apply(first)
    site.apply(second)
    site.apply(first, Goal.ABSENT)
    assert len(site.supervisords()) == 1
    assert not free(ports + 1)
    site.apply(second, Goal.ABSENT)
    assert site.supervisords() == []
    assert list(site.root.iterdir()) == []
    site.apply(first)


def test_a_process_moves_between_groups(site: Site, ports: int) -> None:
    site.apply(web(ports, group="one"))
    asset = web(ports, group="two")
    assert site.paths(asset) == [("replicas/0/group", "two", "one"), ("replicas/1/group", "two", "one")]
    site.apply(asset)
    assert sorted(site.pids()) == [0, 1]
    assert [entry.name for entry in site.root.iterdir()] == ["two"]


def test_a_replica_that_stays_unhealthy_is_restarted(site: Site, ports: int) -> None:
    asset = web(ports, start_timeout_seconds=1, health_timeout_seconds=0.2)
    site.apply(asset)
    before = site.pids()
    get(ports + 1, "/break")
    until(lambda: site.paths(asset) == [("replicas/1/health", "healthy", "unhealthy")])
    assert site.pids() == before, "a diff never writes"
    site.apply(asset)
    after = site.pids()
    assert after[0] == before[0]
    assert after[1] != before[1]


def test_a_young_replica_is_given_its_time_to_start(site: Site, ports: int) -> None:
    asset = web(ports, replicas=1, start_timeout_seconds=300)
    site.apply(asset)
    before = site.pids()
    get(ports, "/break")
    assert site.paths(asset) == [("replicas/0/health", "healthy", "starting")]

    async def push_and_mend(plugin: ProcessPlugin) -> Outcome:
        push = push_of(target_of(asset))
        task = asyncio.create_task(plugin.push(target_of(asset), FixedReader([asset], REGISTRY), push))
        while not push.messages:
            await SystemClock().sleep(0.01)
        await asyncio.get_running_loop().run_in_executor(None, get, ports, "/mend")
        return await task

    assert site.run(push_and_mend) == DONE
    assert site.pids() == before, "it was waited for, not restarted"


def test_an_asset_in_restart_on_is_read_and_rolls_the_replicas(site: Site, ports: int) -> None:
    def settings(content: str) -> Asset:
        return program("true", content, id="settings")

    asset = web(ports, replicas=1, restart_on=["settings"])

    async def pushed(plugin: ProcessPlugin, other: Asset) -> tuple[Diff, Outcome, list[AssetId]]:
        reader = FixedReader([asset, other], REGISTRY)
        found = await plugin.diff(target_of(asset), reader)
        return found, await plugin.push(target_of(asset), reader, push_of(target_of(asset))), reader.reads

    _, outcome, reads = site.run(lambda plugin: pushed(plugin, settings("a")))
    assert outcome == DONE
    assert AssetId("settings") in reads
    found, outcome, _ = site.run(lambda plugin: pushed(plugin, settings("b")))
    assert [change.path for change in found.changes] == ["replicas/0/content"]
    assert outcome == DONE
    owned = msgspec.structs.replace(settings("b"), digest=Digest("of other addons"))
    assert site.run(lambda plugin: pushed(plugin, owned))[0].empty, "its payload has not changed"


def test_letting_go_of_what_was_removed_rolls_nothing(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=1, restart_on=["settings"]))  # no reader has it any more
    assert site.diff(web(ports, replicas=1)).empty


def progress(site: Site) -> Progress:
    found = site.run(lambda plugin: plugin.status(push_of(target_of(web(1))).operation))
    assert isinstance(found, Progress)
    return found


def test_an_operation_has_not_ended_while_a_process_that_it_stops_still_ends(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=1, environment={"STUBBORN": "1"}, stop_timeout_seconds=60))
    assert progress(site) is Progress.ENDED
    rpc.call(site.root / "test", "stopProcess", "test=web-0", False)
    assert progress(site) is Progress.RUNNING
    kill(site.pids()[0])
    until(lambda: progress(site) is Progress.ENDED)


def test_an_operation_has_not_ended_while_a_process_is_not_yet_its_program(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=1))
    group = site.root / "test"
    rpc.call(group, "stopProcess", "test=web-0")
    document = group / "assets" / "test=web" / "0.json"
    content = document.read_bytes()
    document.unlink()
    os.mkfifo(document)  # so that the launcher waits
    rpc.call(group, "startProcess", "test=web-0", False)
    assert progress(site) is Progress.RUNNING
    document.write_bytes(content)
    until(lambda: progress(site) is Progress.ENDED)
    assert sorted(site.pids()) == [0]


def test_a_state_directory_too_deep_for_a_socket_path_works(tmp_path: Path, ports: int) -> None:
    deep = tmp_path / "with space" / ("d" * 120) / "[100%]"
    site = Site(deep)
    asset = web(ports, replicas=1)
    try:
        site.apply(asset)
        assert not free(ports)
    finally:
        site.push(asset, Goal.ABSENT)
    assert site.supervisords() == []


def test_a_broken_definition_in_the_group_names_the_file(site: Site, ports: int) -> None:
    site.apply(web(ports, replicas=1))
    broken = site.root / "test" / "assets" / "broken"
    broken.mkdir()
    (broken / "0.ini").write_text("[program:x]\n")
    outcome = site.push(web(ports, replicas=2))
    assert outcome.result is Result.STALLED
    assert "broken/0.ini" in outcome.message
    assert "delete the file" in outcome.message


@pytest.mark.parametrize("victim", ["program", "supervisord"])
def test_watch_says_when_a_process_ends(site: Site, ports: int, victim: str) -> None:
    asset = web(ports, replicas=1)

    async def killed(plugin: ProcessPlugin) -> AssetKey:
        push = push_of(target_of(asset))
        assert await plugin.push(target_of(asset), FixedReader([asset], REGISTRY), push) == DONE
        hints = plugin.watch()
        hint: asyncio.Future[AssetKey] = asyncio.ensure_future(anext(hints))
        await SystemClock().sleep(0)
        pid = site.pids()[0] if victim == "program" else site.supervisords()[0].pid
        os.kill(pid, signal.SIGKILL)
        found = await hint
        closing: Callable[[], Awaitable[None]] = getattr(hints, "aclose")  # noqa: B009
        await closing()
        return found

    assert site.run(killed) == KEY


def test_errors_say_what_why_and_how_to_fix(site: Site, ports: int, state: Path) -> None:
    state.mkdir()
    (state / "supervisor").write_text("in the way")
    outcome_or_error: object
    try:
        outcome_or_error = site.push(web(ports)).message
    except LehrError as error:
        outcome_or_error = str(error)
    assert str(state.resolve() / "supervisor") in str(outcome_or_error)
