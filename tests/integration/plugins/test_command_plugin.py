"""Rules of the plugin `lehr.Command`, with real processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Blocking, Inline, Threads
from lehr.base.clock import Clock, SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import NO_DIFF, Diff, Goal
from lehr.model.operation import Outcome, Progress, Result
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.command.payload import COMMAND, TYPES, Command
from lehr.plugins.command.plugin import CommandPlugin
from lehr.plugins.processes import Excerpt
from lehr.sdk.secrets import Hidden, SecretValue
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, FixedSecrets, push_of, target_of
from tests.codes import raises
from tests.integration.plugins import talk, troubles

REGISTRY = Registry(TYPES)
PATIENCE = 10.0  # seconds; what takes longer fails the test
GRACE = 0.2  # seconds, for commands that do not end when asked to
SECRET = "hunter2-hunter2"
TIME = 250.0  # seconds that a command has, unless `TimeIsUpWhen` says otherwise


def asset_of(**fields: Any) -> Asset:
    command = Command(**{"check": ("false",), "apply": ("true",), **fields})
    return make_asset(AssetId("database/schema"), COMMAND, command, {})


class TimeIsUpWhen(SystemClock):
    """A command's time is over as soon as it has written a file, however slow the machine is."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def sleep(self, seconds: float) -> None:
        if seconds != TIME:
            await super().sleep(seconds)
            return
        while not (self.path.exists() and self.path.read_text()):
            await super().sleep(0.005)


def make_plugin(
    base: Path, blocking: Blocking | None = None, clock: Clock | None = None, grace: float = GRACE
) -> CommandPlugin:
    return CommandPlugin(base, base / "state", blocking or Inline(), clock or SystemClock(), grace=grace)


def diff(base: Path, goal: Goal = Goal.PRESENT, clock: Clock | None = None, **fields: Any) -> Diff:
    async def main() -> Diff:
        plugin, asset = make_plugin(base, clock=clock), asset_of(**fields)
        try:
            return await plugin.diff(target_of(asset, goal, incarnation=42), FixedReader([asset], REGISTRY))
        finally:
            await plugin.close()

    return asyncio.run(main())


def push(
    base: Path,
    goal: Goal = Goal.PRESENT,
    clock: Clock | None = None,
    grace: float = GRACE,
    **fields: Any,
) -> Outcome:
    async def main() -> Outcome:
        plugin, asset = make_plugin(base, clock=clock, grace=grace), asset_of(**fields)
        target = target_of(asset, goal, incarnation=42)
        try:
            return await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target, "op1"))
        finally:
            await plugin.close()

    return asyncio.run(main())


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """False for processes that are gone or only wait to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().strip())
    return int(path.read_text())


def leftovers(base: Path) -> list[str]:
    operations = base / "state" / "operations"
    return os.listdir(operations) if operations.exists() else []


@pytest.mark.parametrize("blocking", [Inline, lambda: Threads("command", 2)], ids=["inline", "threads"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, blocking: Callable[[], Blocking], tmp_path: Path) -> None:
    production = tmp_path / "production"
    (tmp_path / "bin").mkdir()

    def asset(value: int) -> Asset:
        return asset_of(
            check=f'test "$(cat ../production 2>&1)" = {value} || {{ cat ../production 2>&1; exit 1; }}',
            apply=("sh", "-c", f"echo {value} > ../production.new && mv ../production.new ../production"),
            remove=("rm", "-f", "../production"),
            environment={"TOKEN": SECRET},
            directory="bin",
        )

    def disturb() -> None:
        production.write_text("7")

    def observe() -> object:
        return {path.name: path.read_bytes() for path in tmp_path.glob("production*")}

    def make() -> CommandPlugin:
        return make_plugin(tmp_path, blocking())

    subject = Subject(
        make,
        REGISTRY,
        asset(1),
        asset(2),
        disturb,
        observe,
        secret=SECRET,
        troubles=(lambda: troubles.file_at(tmp_path / "state"), lambda: troubles.gone(tmp_path / "bin")),
    )
    asyncio.run(rule(subject))


def test_exit_code_0_is_as_intended_and_1_says_what_differs(tmp_path: Path) -> None:
    assert diff(tmp_path, check=("true",)) == NO_DIFF
    (change,) = diff(tmp_path, check="echo 2 migrations; echo pending >&1; exit 1").changes
    assert (change.path, change.intended) == ("check", "exit code 0")
    assert change.observed == "exit code 1: 2 migrations | pending"


def test_for_absence_the_codes_change_places(tmp_path: Path) -> None:
    assert diff(tmp_path, Goal.ABSENT, check=("false",), remove=("true",)) == NO_DIFF
    (change,) = diff(tmp_path, Goal.ABSENT, check=("true",), remove=("true",)).changes
    assert (change.intended, change.observed) == ("exit code 1", "exit code 0")


def test_without_remove_there_is_no_turndown(tmp_path: Path) -> None:
    for act in (diff, push):
        with raises("CMD103", StalledError):
            act(tmp_path, Goal.ABSENT)


@pytest.mark.parametrize(("check", "says"), [("exit 2", "exit code 2"), ("kill -9 $$", "signal 9 .Killed")])
def test_any_other_end_of_a_check_is_a_failure(check: str, says: str, tmp_path: Path) -> None:
    with raises("CMD101", TransientError, match=f"{says}.*oops"):
        diff(tmp_path, check=f"echo oops >&2; {check}")


def test_a_failed_apply_says_its_last_lines(tmp_path: Path) -> None:
    outcome = push(tmp_path, apply="seq 1 100000; echo first >&2; echo why >&2; exit 3")
    assert outcome == Outcome(Result.FAILED, "exit code 3: first | why")
    outcome = push(tmp_path, apply="seq 1 100000; exit 3")
    assert outcome.message.startswith("exit code 3: ... ")
    assert outcome.message.endswith("99999 | 100000")
    assert len(outcome.message) < 5000


def test_endless_output_neither_fills_memory_nor_blocks_the_command(tmp_path: Path) -> None:
    apply = ("head", "-c", "1000000000", "/dev/zero")
    outcome = push(tmp_path, apply=apply)
    assert outcome.result is Result.DONE


def test_binary_output_is_made_printable(tmp_path: Path) -> None:
    outcome = push(tmp_path, apply=r"printf 'a\377\000\033[31mred\r\nb\342\200\250c' >&2; exit 1")
    assert outcome.message.isprintable()
    assert "red | b | c" in outcome.message


def test_the_environment_is_small_and_names_the_push(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_LEHR", "1")
    (tmp_path / "sub").mkdir()
    fields: dict[str, Any] = {"environment": {"GREETING": "hello\nworld"}, "directory": "sub"}
    push(tmp_path, apply="env -0 > ../env; pwd > ../pwd", **fields)
    lines = (tmp_path / "env").read_text().split("\0")
    variables = dict(line.split("=", 1) for line in lines if line)
    assert variables.pop("GREETING") == "hello\nworld"
    assert variables.pop("LEHR_OPERATION") == "op1"
    assert variables.pop("LEHR_ASSET") == "database/schema"
    assert variables.pop("LEHR_INCARNATION") == "42"
    assert set(variables) - {"PWD", "SHLVL", "_", "OLDPWD"} == {"PATH", "HOME", "LANG"}
    assert (tmp_path / "pwd").read_text().strip() == str(tmp_path / "sub")


def test_a_list_is_run_without_a_shell(tmp_path: Path) -> None:
    push(tmp_path, apply=("touch", "a; touch b", "$HOME"))
    assert {"a; touch b", "$HOME"} <= set(os.listdir(tmp_path))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"apply": ("no-such-program",)}, "no-such-program.*No such file.*install"),
        ({"apply": ("./plain",)}, "plain.*Permission denied.*chmod"),
        ({"apply": ("./garbage",)}, "garbage.*format error.*#!/bin/sh"),
        ({"apply": ("/",)}, "Permission denied"),
        ({"directory": "no-such-directory"}, "no-such-directory.*No such file"),
        ({"directory": "plain"}, "plain.*Not a directory"),
        ({"apply": ("true", "x" * 140_000)}, "too long.*shorten"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_started_stalls_with_a_fix(fields: dict[str, Any], says: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    (tmp_path / "garbage").write_bytes(b"\0\1\2garbage")
    (tmp_path / "garbage").chmod(0o755)
    with raises("CMD105", StalledError, match=says):
        push(tmp_path, **fields)
    assert leftovers(tmp_path) == []


def test_a_push_that_cannot_be_noted_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with raises("CMD104", TransientError):
        push(tmp_path, apply=("touch", "started"))
    assert not (tmp_path / "started").exists()


def test_a_check_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    clock = TimeIsUpWhen(tmp_path / "pid")
    with raises("CMD101", TransientError, match="did not end in time"):
        diff(tmp_path, clock=clock, check="echo $$ > pid; exec sleep 600", check_timeout_seconds=TIME)
    assert not alive(pid_in(tmp_path / "pid"))


def test_a_push_that_takes_too_long_is_asked_to_end(tmp_path: Path) -> None:
    apply = "trap 'echo tidied >&2; exit 9' TERM; echo $$ > pid; while :; do sleep 0.01; done"
    clock = TimeIsUpWhen(tmp_path / "pid")
    outcome = push(tmp_path, clock=clock, grace=PATIENCE, apply=apply, timeout_seconds=TIME)
    assert outcome.result is Result.FAILED
    assert outcome.message.startswith("did not end in time: ")
    assert outcome.message.endswith("tidied")
    assert not alive(pid_in(tmp_path / "pid"))
    assert leftovers(tmp_path) == []


def test_one_that_ignores_the_request_is_killed_with_its_children(tmp_path: Path) -> None:
    apply = "trap '' TERM; sleep 600 & echo $! > child; echo $$ > pid; while :; do sleep 600; done"
    clock = TimeIsUpWhen(tmp_path / "pid")
    outcome = push(tmp_path, clock=clock, apply=apply, timeout_seconds=TIME)
    assert outcome == Outcome(Result.FAILED, "did not end in time")
    assert not alive(pid_in(tmp_path / "pid"))
    assert not alive(pid_in(tmp_path / "child"))


def test_children_that_outlive_their_parent_are_killed_too(tmp_path: Path) -> None:
    """The parent ends when asked to, its child does not."""
    apply = "(trap '' TERM; echo ready > ready; exec sleep 600) & echo $! > child; wait"
    clock = TimeIsUpWhen(tmp_path / "ready")
    outcome = push(tmp_path, clock=clock, apply=apply, timeout_seconds=TIME)
    assert outcome.result is Result.FAILED
    assert not alive(pid_in(tmp_path / "child"))


def test_one_that_left_its_group_counts_as_a_daemon(tmp_path: Path) -> None:
    """It does not keep the operation open, and is let be."""
    apply = "setsid sh -c 'echo $$ > child; exec sleep 600' & wait"
    clock = TimeIsUpWhen(tmp_path / "child")
    outcome = push(tmp_path, clock=clock, apply=apply, timeout_seconds=TIME)
    try:
        assert outcome.result is Result.FAILED
        assert alive(pid_in(tmp_path / "child"))
    finally:
        os.kill(pid_in(tmp_path / "child"), signal.SIGKILL)


def test_a_daemon_that_keeps_the_pipes_open_is_not_waited_for(tmp_path: Path) -> None:
    apply = "sleep 600 & echo $! > child; echo started; exit 5"
    outcome = push(tmp_path, apply=apply)
    child = pid_in(tmp_path / "child")
    try:
        assert outcome == Outcome(Result.FAILED, "exit code 5: started")
        assert alive(child)
        assert leftovers(tmp_path) == []
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_cancelled_push_is_ended_and_status_tells_when(tmp_path: Path) -> None:
    async def main() -> None:
        plugin = make_plugin(tmp_path, Threads("command", 2))
        asset = asset_of(apply="trap '' TERM; echo $$ > pid; while :; do sleep 600; done")
        target = target_of(asset)
        under_way = push_of(target, "op1")
        task = asyncio.create_task(plugin.push(target, FixedReader([asset], REGISTRY), under_way))
        pid = await asyncio.to_thread(pid_in, tmp_path / "pid")
        assert await plugin.status(under_way.operation) is Progress.RUNNING
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await plugin.status(under_way.operation) is Progress.RUNNING
        async with asyncio.timeout(PATIENCE):
            while await plugin.status(under_way.operation) is not Progress.ENDED:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not alive(pid)
        await plugin.close()

    asyncio.run(main())


def test_a_superseded_push_runs_to_its_end(tmp_path: Path) -> None:
    async def main() -> Outcome:
        plugin, asset = make_plugin(tmp_path), asset_of(apply=("touch", "done"))
        target = target_of(asset)
        reader = FixedReader([asset], REGISTRY)
        return await plugin.push(target, reader, push_of(target, superseded=True))

    assert asyncio.run(main()).result is Result.DONE
    assert (tmp_path / "done").exists()


def test_closing_the_plugin_kills_what_runs(tmp_path: Path) -> None:
    async def main() -> None:
        plugin = make_plugin(tmp_path, Threads("command", 2))
        asset = asset_of(apply="echo $$ > pid; exec sleep 600")
        target = target_of(asset)
        push = asyncio.create_task(plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)))
        await asyncio.to_thread(pid_in, tmp_path / "pid")
        await plugin.close()
        with pytest.raises(asyncio.CancelledError):
            await push

    asyncio.run(main())
    until(lambda: not alive(pid_in(tmp_path / "pid")))


class Late(Threads):
    """Whoever has called in a thread hears late that it has come back."""

    async def run(self, call: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = await super().run(call, *args, **kwargs)
        await asyncio.sleep(0.3)
        return result


def test_closing_the_plugin_kills_what_is_just_being_started(tmp_path: Path) -> None:
    async def main() -> None:
        plugin = make_plugin(tmp_path, Late("command", 2))
        asset = asset_of(apply="echo $$ > pid; exec sleep 600")
        target = target_of(asset)
        push = asyncio.create_task(plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)))
        await asyncio.to_thread(pid_in, tmp_path / "pid")
        await plugin.close()
        with pytest.raises(asyncio.CancelledError):
            await push

    asyncio.run(main())
    until(lambda: not alive(pid_in(tmp_path / "pid")))


CONTROL_PLANE = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_command_plugin import asset_of, make_plugin, push_of, target_of, FixedReader, REGISTRY

async def main():
    asset = asset_of(apply={apply!r})
    target = target_of(asset)
    await make_plugin(Path({base!r})).push(target, FixedReader([asset], REGISTRY), push_of(target, "op1"))

asyncio.run(main())
"""


def killed_control_plane(base: Path, apply: str) -> None:
    """A process that pushes, and is killed with SIGKILL as soon as `apply` has written `pid`."""
    code = CONTROL_PLANE.format(tests=str(Path(__file__).parent), apply=apply, base=str(base))
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        pid_in(base / "pid")
        mark = base / "state" / "operations" / "op1.lock"
        until(lambda: mark.read_text())
    finally:
        process.kill()
        process.wait()


def status(base: Path) -> Progress:
    """What a new control plane finds out."""
    return asyncio.run(make_plugin(base).status(push_of(target_of(asset_of()), "op1").operation))


def test_after_a_crash_a_push_is_running_until_its_last_process_ended(tmp_path: Path) -> None:
    """Also when the process that Lehr had started itself is gone."""
    killed_control_plane(tmp_path, "sleep 600 & echo $! > child; echo $$ > pid; wait")
    parent, child = pid_in(tmp_path / "pid"), pid_in(tmp_path / "child")
    try:
        assert status(tmp_path) is Progress.RUNNING
        os.kill(parent, signal.SIGKILL)
        until(lambda: not alive(parent))
        assert status(tmp_path) is Progress.RUNNING
        os.kill(child, signal.SIGKILL)
        until(lambda: status(tmp_path) is Progress.ENDED)
        assert leftovers(tmp_path) == []
    finally:
        for pid in (parent, child):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_after_a_crash_a_daemon_does_not_keep_the_operation_open(tmp_path: Path) -> None:
    daemon = "setsid sh -c 'echo $$ > child; exec sleep 600' & until test -s child; do sleep 0.01; done"
    apply = f"{daemon}; echo $$ > pid; exec sleep 600"
    killed_control_plane(tmp_path, apply)
    parent, child = pid_in(tmp_path / "pid"), pid_in(tmp_path / "child")
    try:
        assert status(tmp_path) is Progress.RUNNING
        os.kill(parent, signal.SIGKILL)
        until(lambda: status(tmp_path) is Progress.ENDED)
        assert alive(child)
    finally:
        for pid in (parent, child):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


# --- secrets ------------------------------------------------------------------------------

SECRETS = FixedSecrets({"env:PASSWORD": f"{SECRET}\n", "env:NUL": "a\0b"})


def outcome_with_secret(base: Path, apply: str, reference: str = "env:PASSWORD") -> Outcome:
    async def main() -> Outcome:
        plugin = CommandPlugin(base, base / "state", Inline(), SystemClock(), secrets=SECRETS)
        asset = asset_of(apply=apply, environment={"PASSWORD": Secret(reference)})
        target = target_of(asset)
        try:
            return await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target))
        finally:
            await plugin.close()

    return asyncio.run(main())


def test_a_command_gets_its_secrets_in_variables(tmp_path: Path) -> None:
    outcome_with_secret(tmp_path, 'printf %s "$PASSWORD" > got')
    assert (tmp_path / "got").read_text() == SECRET


@pytest.mark.parametrize(
    "before",
    [0, 1, 1980, 1986, 1990, 1995, 1999, 2000],
)
@pytest.mark.parametrize("after", [0, 1980, 1986, 1990, 1995, 2000])
def test_a_secret_that_is_printed_is_hidden_wherever_output_is_cut(before: int, after: int) -> None:
    excerpt = Excerpt(Hidden([SecretValue(SECRET.encode())]))
    whole = b"x" * before + SECRET.encode() + b"y" * after
    for start in range(0, len(whole), 7):
        excerpt.add(whole[start : start + 7])
    for shown in (excerpt.first(), excerpt.last()):
        assert not any(SECRET[index : index + 4] in shown for index in range(len(SECRET) - 3))


def test_a_secret_in_the_output_of_a_push_is_hidden(tmp_path: Path) -> None:
    found = outcome_with_secret(tmp_path, 'echo "login failed for $PASSWORD" >&2; exit 1')
    assert found == Outcome(Result.FAILED, "exit code 1: login failed for [secret]")


def test_a_secret_that_no_variable_can_hold_is_for_a_person(tmp_path: Path) -> None:
    with raises("SDK104", StalledError):
        outcome_with_secret(tmp_path, "true", "env:NUL")
    assert not list((tmp_path / "state").rglob("*.lock"))


def _write(path: Path, text: str) -> None:
    path.write_text(text)


# Each part is read by itself. Of two checks in a row, the first finds a difference, the second fails.
TALKING = """
talk() {
    for part in talk/*; do cat "$part"; cat "$part" >&2; sleep 0.02; done
}
if [ -d talk ] && [ "$LEHR_OPERATION" ]; then talk; exit 3; fi
if [ -d talk ] && [ -e failing ]; then talk; rm failing; exit 2; fi
if [ -d talk ]; then talk; touch failing; exit 1; fi
"""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract_with_secrets(rule: Rule, tmp_path: Path) -> None:
    made = tmp_path / "made"

    def with_secret(word: str) -> Asset:
        return asset_of(
            check=f'{TALKING} echo "I know $PASSWORD"; echo "{word} $PASSWORD" | cmp -s - made || exit 1',
            apply=f'{TALKING} echo "{word} $PASSWORD" > made.new && mv made.new made; echo "$PASSWORD" >&2',
            remove="rm -f made",
            environment={"PASSWORD": Secret("env:PASSWORD")},
        )

    subject = Subject(
        make=lambda: CommandPlugin(
            tmp_path, tmp_path / "state", Inline(), SystemClock(), grace=GRACE, secrets=SECRETS
        ),
        registry=REGISTRY,
        asset=with_secret("one"),
        changed=with_secret("two"),
        disturb=lambda: _write(made, "disturbed"),
        observe=lambda: made.read_bytes() if made.exists() else None,
        secret=SECRET,
        talk=talk.into(tmp_path / "talk"),
        interruptions=3,
    )
    asyncio.run(rule(subject))
