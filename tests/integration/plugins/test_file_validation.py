"""Rules of `validate`, the command that new content of a `lehr.File` has to pass."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
from pathlib import Path

import pytest

from lehr.base.blocking import Inline, Threads
from lehr.base.clock import Clock, SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetId, make_asset
from lehr.model.diff import Goal
from lehr.model.operation import Result
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.file.payload import FILE, TYPES, File
from lehr.plugins.file.plugin import FilePlugin
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, FixedSecrets, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import troubles

REGISTRY = Registry(TYPES)
REFUSES_BAD = ("sh", "-c", 'if grep bad "$1"; then echo "in $1" >&2; exit 1; fi', "sh", "{file}")


def push(base: Path, file: File, goal: Goal = Goal.PRESENT, clock: Clock | None = None) -> None:
    secrets = FixedSecrets({"env:A": "bad hunter2"})
    plugin = FilePlugin(base, Inline(), fsync=False, secrets=secrets, clock=clock)
    asset = make_asset(AssetId("motd"), FILE, file, {})
    target = target_of(asset, goal)
    reader = FixedReader([asset], REGISTRY)
    assert asyncio.run(plugin.push(target, reader, push_of(target))).result is Result.DONE
    assert asyncio.run(plugin.diff(target, reader)).empty


def validated(content: str, command: tuple[str, ...] = REFUSES_BAD, seconds: float = 30.0) -> File:
    return File(path="a", content=content, validate=command, validate_timeout_seconds=seconds)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_validated_file_keeps_the_contract(rule: Rule, tmp_path: Path) -> None:
    path = tmp_path / "etc" / "app.conf"

    def asset(content: str, mode: str) -> File:
        return File(path="etc/app.conf", content=content, mode=mode, validate=REFUSES_BAD)

    subject = Subject(
        make=lambda: FilePlugin(tmp_path, Threads("file", 2), fsync=False, validating=Threads("checks", 2)),
        registry=REGISTRY,
        asset=make_asset(AssetId("a"), FILE, asset("password=hunter2-hunter2\n", "0600"), {}),
        changed=make_asset(AssetId("a"), FILE, asset("password=hunter2-hunter2\nport=1\n", "0640"), {}),
        disturb=lambda: path.unlink(),
        observe=lambda: {str(found): found.is_file() and found.read_bytes() for found in tmp_path.rglob("*")},
        secret="hunter2-hunter2",
        troubles=(lambda: troubles.directory_at(path), lambda: troubles.file_at(path.parent)),
    )
    asyncio.run(rule(subject))


def test_refused_content_replaces_nothing_and_the_output_is_quoted(tmp_path: Path) -> None:
    push(tmp_path, validated("good\n"))
    before = (tmp_path / "a").stat()
    with raises("FIL112", StalledError, match=rf"exit code 1\): line two is bad \| in {tmp_path}/a \("):
        push(tmp_path, validated("line one\nline two is bad\n"))
    after = (tmp_path / "a").stat()
    assert (tmp_path / "a").read_text() == "good\n"
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_did_not_exist_is_not_created_with_refused_content(tmp_path: Path) -> None:
    with raises("FIL112", StalledError):
        push(tmp_path, validated("bad"))
    assert os.listdir(tmp_path) == []


def test_the_command_sees_the_content_and_mode_in_the_folder_of_the_file(tmp_path: Path) -> None:
    script = '[ "$(stat -c %a "$1")" = 751 ] && [ "$(cat "$1")" = x ] && [ "$(dirname "$1")" = "$2" ]'
    command = ("sh", "-c", script, "sh", "{file}", str(tmp_path / "real"))
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    push(tmp_path, File(path="link/a", content="x", mode="0751", validate=command))


def test_the_command_gets_few_variables_and_no_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_THE_OPERATOR", "x")
    code = (
        "import os, sys; assert not sys.stdin.read();"
        "sys.exit(' '.join(set(os.environ) - {'PATH', 'HOME', 'LANG', 'LC_CTYPE'}) or 0)"
    )
    push(tmp_path, validated("x", (sys.executable, "-c", code, "{file}")))


class UntilExists(SystemClock):
    """A clock on which no time passes from its first reading until there is a file, and then an hour."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun = False

    def monotonic(self) -> float:
        begun, self._begun = self._begun, True
        return 3600.0 if begun and self._path.exists() else 0.0


def test_a_command_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    started = tmp_path / "child"
    script = (
        f"echo waiting for the name server; sleep 1000 & echo $! > {started}.new; "
        f"mv {started}.new {started}; wait"
    )
    with raises("FIL113", TransientError, match="within 0.5s: waiting for the name server"):
        push(tmp_path, validated("x", ("sh", "-c", script, "{file}"), 0.5), clock=UntilExists(started))
    with contextlib.suppress(ProcessLookupError):  # its new parent may have reaped it
        handle = os.pidfd_open(int(started.read_text()))
        assert select.select([handle], [], [], 30)[0]
        os.close(handle)
    assert os.listdir(tmp_path) == ["child"]


def test_of_endless_output_the_end_is_kept(tmp_path: Path) -> None:
    script = "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 3"
    with raises("FIL112", StalledError, match=r"exit code 3\): x{1900}x+ \| the end") as caught:
        push(tmp_path, validated("x", ("sh", "-c", script, "{file}")))
    assert len(str(caught.value)) < 2500


def test_a_program_that_keeps_the_pipe_open_is_not_waited_for(tmp_path: Path) -> None:
    push(tmp_path, validated("x", ("sh", "-c", "sleep 1000 &", "{file}")))


def test_a_command_that_was_killed_has_not_accepted(tmp_path: Path) -> None:
    with raises("FIL112", StalledError, match=f"signal {signal.SIGTERM.value} "):
        push(tmp_path, validated("x", ("sh", "-c", "kill $$", "{file}")))


def test_a_program_that_does_not_exist_stalls(tmp_path: Path) -> None:
    with raises("FIL114", StalledError, match="no-such-program"):
        push(tmp_path, validated("x", ("no-such-program", "{file}")))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "script", ['echo more >> "$1"', 'chmod 777 "$1"', 'rm "$1"; echo other > "$1"'], ids=lambda text: text[:5]
)
def test_content_that_its_command_changes_takes_no_place(script: str, tmp_path: Path) -> None:
    with raises("FIL115", StalledError):
        push(tmp_path, validated("x", ("sh", "-c", script, "sh", "{file}")))
    assert os.listdir(tmp_path) == []


def test_output_about_secret_content_is_withheld(tmp_path: Path) -> None:
    file = File(path="a", content_secret=Secret("env:A"), mode="0600", validate=REFUSES_BAD)
    with raises("FIL112", StalledError, match="the content is a secret") as caught:
        push(tmp_path, file)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("goal", [Goal.FENCED, Goal.ABSENT])
def test_a_file_is_taken_away_without_asking_the_command(goal: Goal, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("bad")
    push(tmp_path, validated("bad"), goal)
    assert not (tmp_path / "a").exists()


def test_a_command_that_hangs_delays_no_other_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    waits = File(path="a", content="x", validate=("sh", "-c", "read line < gate", "{file}"))
    assets = [
        make_asset(AssetId("a"), FILE, waits, {}),
        make_asset(AssetId("b"), FILE, File(path="b", content="x"), {}),
    ]
    slow, quick = [target_of(asset) for asset in assets]
    reader = FixedReader(assets, REGISTRY)

    async def scene() -> None:
        plugin = FilePlugin(tmp_path, Threads("file", 1), fsync=False, validating=Threads("checks", 1))
        waiting = asyncio.ensure_future(plugin.push(slow, reader, push_of(slow)))
        await asyncio.sleep(0)
        await plugin.push(quick, reader, push_of(quick))
        assert (tmp_path / "b").exists()
        assert not (tmp_path / "a").exists()
        (tmp_path / "gate").write_text("go\n")
        assert (await waiting).result is Result.DONE
        await plugin.close()

    asyncio.run(scene())
