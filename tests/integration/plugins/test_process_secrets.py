"""Programs get secrets in variables; nothing else that Lehr writes or says has them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.diff import Diff, Goal
from lehr.model.operation import DONE, Outcome
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.process import procfs, rpc
from lehr.plugins.process.payload import PROCESS, TYPES, Port, Process
from lehr.plugins.process.plugin import ProcessPlugin
from lehr.plugins.process.render import asset_name
from lehr.plugins.process.supervisord import Supervisord
from lehr.sdk.secrets import Hidden, SecretValue
from lehr.testing.conformance.asset_plugin import Subject
from lehr.testing.conformance.asset_plugin.conduct import secrets_are_not_shown
from lehr.testing.conformance.asset_plugin.output import output_of_production_is_safe_to_show
from lehr.testing.plugins import FixedReader, FixedSecrets, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import talk
from tests.ports import free_ports

REGISTRY = Registry(TYPES)
CANARY = "canary-4711-canary"
KEY = AssetKey(Partition("test"), AssetId("web"))
NOTES = """
import os, pathlib, sys, time
pathlib.Path("got").write_text(os.environ["TOKEN"])
if os.environ.get("DIES") or os.path.exists("fail"):
    sys.exit(f"cannot log in with {os.environ['TOKEN']}")
time.sleep(1000)
"""

# Prints the files of ./talk, while they are there, and answers with the beginning of what it prints.
TALKS = """
import pathlib, socket, sys, time
printed = False
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=50)
while True:
    connection, _ = server.accept()
    connection.recv(4096)
    parts = [path.read_bytes() for path in sorted(pathlib.Path("talk").glob("*"))]
    for part in () if printed else parts:
        for stream in (sys.stdout.buffer, sys.stderr.buffer):
            stream.write(part)
            stream.flush()
    printed = bool(parts)
    answer = b"".join(parts)[:2000].strip() if parts else b"200 OK"
    connection.sendall(b"HTTP/1.1 " + answer + b"\\r\\nContent-Length: 0\\r\\n\\r\\n")
    connection.close()
"""


class Stage:
    """A plugin over a state directory of its own, with secrets that tests may change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.port = free_ports(1)
        self.secrets = FixedSecrets({"age:x.age#token": f"{CANARY}\n"})

    def plugin(self) -> ProcessPlugin:
        return ProcessPlugin(self.state, Inline(), SystemClock(), base=self.folder, secrets=self.secrets)

    def asset(self, digest: str = "1", **environment: str) -> Asset:
        payload = Process(
            command=[sys.executable, "-I", "-S", "-c", NOTES],
            environment={"TOKEN": Secret("age:x.age#token", digest=digest), **environment},
            start_timeout_seconds=5,
        )
        return make_asset(AssetId("web"), PROCESS, payload, {})

    def talkative(self, digest: str) -> Asset:
        payload = Process(
            command=[sys.executable, "-I", "-S", "-c", TALKS, "{port}"],
            environment={"TOKEN": Secret("age:x.age#token", digest=digest)},
            ports=[Port("http", self.port)],
            health_url="http://127.0.0.1:{port}/healthz",
            start_timeout_seconds=0.5,
            health_timeout_seconds=0.1,
        )
        return make_asset(AssetId("web"), PROCESS, payload, {})

    def diff(self, asset: Asset, goal: Goal = Goal.PRESENT) -> Diff:
        call = self.plugin().diff(target_of(asset, goal), FixedReader([asset], REGISTRY))
        return asyncio.run(call)

    def push(self, asset: Asset, goal: Goal = Goal.PRESENT) -> Outcome:
        target = target_of(asset, goal)
        return asyncio.run(self.plugin().push(target, FixedReader([asset], REGISTRY), push_of(target)))

    def drafts(self) -> list[Any]:
        async def found() -> list[Any]:
            return [item async for item in self.plugin().discover(["web"], Partition("test"))]

        return asyncio.run(found())


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    while left := list(procfs.marked(stage.state.resolve() / "supervisor")):
        # supervisord first, or it would start its programs again
        for process, _ in sorted(left, key=lambda item: procfs.REPLICA in item[1]):
            procfs.send(process, signal.SIGKILL)


def test_a_program_gets_the_secret_and_only_the_file_that_starts_it_has_it(stage: Stage) -> None:
    asset = stage.asset()
    shown = repr(stage.diff(asset))
    assert stage.push(asset) == DONE
    assert (stage.folder / "got").read_text() == CANARY
    assert stage.diff(asset).empty
    holding = [path for path in stage.state.rglob("*") if path.is_file() and CANARY in path.read_text()]
    assert [path.name for path in holding] == ["0.json"]
    assert stat.S_IMODE(holding[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(stage.state.joinpath("supervisor").stat().st_mode) == 0o700
    assert CANARY not in shown


def test_a_new_ciphertext_rolls_the_replicas_and_a_diff_asks_for_no_secret(stage: Stage) -> None:
    stage.push(stage.asset("1"))
    rotated = stage.asset("2")
    kept = stage.secrets.values.pop("age:x.age#token")
    assert [change.path for change in stage.diff(rotated).changes] == ["replicas/0/content"]
    with pytest.raises(StalledError, match="age:x"):
        stage.push(rotated)
    stage.secrets.values["age:x.age#token"] = kept + "-new"
    assert stage.push(rotated) == DONE
    assert (stage.folder / "got").read_text() == f"{CANARY}\n-new"


def test_what_a_program_says_of_its_secret_when_it_ends_is_hidden(stage: Stage) -> None:
    with raises("PRO112", TransientError) as error:
        stage.push(stage.asset(DIES="1"))
    assert "cannot log in with [secret]" in str(error.value)
    assert CANARY not in str(error.value)


@pytest.mark.parametrize("before", [0, 1, 5, 100_000])
@pytest.mark.parametrize("after", [0, 3, 16_380])
@pytest.mark.parametrize("cut", range(len(CANARY) + 1))
def test_a_secret_that_a_program_was_printing_is_hidden(
    before: int, cut: int, after: int, tmp_path: Path
) -> None:
    """Wherever the log was when the push began to look at it, and wherever its end begins."""
    supervisord = Supervisord(tmp_path, "test", {})
    log = tmp_path / "test" / "assets" / asset_name(KEY) / "0.stderr.log"
    log.parent.mkdir(parents=True)
    log.write_text("\n" * before + CANARY[:cut])
    mark = supervisord.mark_logs(KEY, 0)
    with log.open("a") as file:
        file.write(CANARY[cut:] + "\n" * after + "end")
    hidden = Hidden([SecretValue(CANARY.encode())])
    _, said = supervisord.complaint(KEY, 0, mark, hidden)
    assert said.removeprefix("stderr: ") in {"end", "[secret] | end", "[secret]end"}


def test_a_secret_is_not_asked_for_to_stop_a_program_and_goes_with_it(stage: Stage) -> None:
    stage.push(stage.asset())
    stage.secrets.values.clear()
    assert stage.push(stage.asset(), Goal.ABSENT) == DONE
    assert not [path for path in stage.state.rglob("*") if path.is_file() and CANARY in path.read_text()]


def test_secrets_are_not_shown(stage: Stage) -> None:
    asset = stage.asset("1")

    def stop() -> None:
        rpc.call(stage.state.resolve() / "supervisor" / "test", "stopProcess", "test=web-0")

    @contextlib.contextmanager
    def failing() -> Iterator[None]:
        (stage.folder / "fail").touch()
        yield
        (stage.folder / "fail").unlink()

    subject = Subject(
        make=stage.plugin,
        registry=REGISTRY,
        asset=asset,
        changed=stage.asset("2"),
        disturb=stop,
        observe=lambda: None,
        secret=CANARY,
        troubles=(failing,),
        interruptions=1,
    )
    asyncio.run(secrets_are_not_shown(subject))


def test_what_a_sick_program_prints_and_answers_is_safe_to_show(stage: Stage) -> None:
    asset, changed = (stage.talkative(digest) for digest in ("1", "2"))
    subject = Subject(
        make=stage.plugin,
        registry=REGISTRY,
        asset=asset,
        changed=changed,
        disturb=lambda: None,
        observe=lambda: None,
        secret=CANARY,
        talk=talk.into(stage.folder / "talk"),
    )
    asyncio.run(output_of_production_is_safe_to_show(subject))


def test_a_draft_of_what_runs_has_the_reference_and_not_the_secret(stage: Stage) -> None:
    stage.push(stage.asset())
    [draft] = stage.drafts()
    assert draft.payload["environment"]["TOKEN"]["secret"] == "age:x.age#token"
    assert draft.obstacle == ""
    assert CANARY not in repr(draft)
