"""Rules of the plugin `lehr.TerraformWorkspace` on bad days, with the command if there is one, and a fake."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.errors import LehrError, StalledError, TransientError, WaitingError
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.diff import Diff, Effects, Goal, Target
from lehr.model.operation import Operation, Outcome, Progress, Result
from lehr.model.secret import Secret
from lehr.plugins.terraform_workspace.folders import folder_of
from lehr.plugins.terraform_workspace.payload import OutputOf
from lehr.sdk.plugin import Reader
from lehr.testing.plugins import FixedPush, FixedReader, push_of, target_of
from tests.codes import raises
from tests.terraform_workspaces import (
    MODULE,
    PASSWORD,
    REGISTRY,
    Workspace,
    paths,
    real_terraform,
    workspace_file,
)

PATIENCE = 30.0  # seconds; what takes longer fails the test


class Run:
    """One process of Lehr, as far as this plugin is concerned."""

    def __init__(self, workspace: Workspace, **options: Any) -> None:
        self.plugin = workspace.plugin(**options)
        self.handle = ""
        self.pushes = 0
        self.messages: list[str] = []

    async def diff(self, asset: Asset, goal: Goal = Goal.PRESENT, read: Reader | None = None) -> Diff:
        found = await self.plugin.diff(self.target(asset, goal), read or FixedReader([asset], REGISTRY))
        self.learn(found.handle)
        return found

    def target(self, asset: Asset, goal: Goal = Goal.PRESENT) -> Target:
        target = target_of(asset, goal)
        return Target(target.partition, target.id, target.type, 1, goal, self.handle)

    def begin(self, asset: Asset, diff: Diff, goal: Goal = Goal.PRESENT) -> FixedPush:
        self.pushes += 1
        return push_of(self.target(asset, goal), f"operation-{self.pushes}", diff=diff)

    async def push(self, asset: Asset, goal: Goal = Goal.PRESENT, push: FixedPush | None = None) -> Outcome:
        push = push or self.begin(asset, await self.diff(asset, goal), goal)
        outcome = await self.plugin.push(self.target(asset, goal), FixedReader([asset], REGISTRY), push)
        self.messages += push.messages
        self.learn(outcome.handle)
        return outcome

    def learn(self, handle: Any) -> None:
        self.handle = handle if isinstance(handle, str) else self.handle

    async def ended(self, operation: Operation) -> None:
        deadline = time.monotonic() + PATIENCE
        while await self.plugin.status(operation) is not Progress.ENDED:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)


def run(workspace: Workspace, main: Callable[[Run], Any], **options: Any) -> Any:
    async def whole() -> Any:
        process = Run(workspace, **options)
        try:
            return await main(process)
        finally:
            await process.plugin.close()

    return asyncio.run(whole())


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(params=["fake", pytest.param("terraform", marks=real_terraform)])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    return Workspace(tmp_path, None if request.param == "fake" else "terraform")


@pytest.fixture
def faked(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def with_lamp(**lamp: Any) -> dict[str, Any]:
    resources = {"terraform_data": {**MODULE["resource"]["terraform_data"], "lamp": {"input": lamp}}}
    return {**MODULE, "resource": resources}


def files_below(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What a diff shows


def test_a_diff_is_the_plan(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        found = await lehr.diff(workspace.asset())
        changes = {change.path: (change.intended, change.observed) for change in found.changes}
        assert changes["terraform_data.lamp"] == ("present", None)
        assert changes["terraform_data.lamp/input/size"] == ("1", None)
        assert changes["terraform_data.lamp/input/password"] == ("[secret]", None)
        assert "terraform_data.lamp/id" not in changes
        assert changes["outputs/lamp"] == ("(known after apply)", None)
        assert changes["outputs/password"] == ("[secret]", None)
        assert found.effects == Effects(capacity=None)
        assert found.outputs == {}
        assert (await lehr.push(workspace.asset())).result is Result.DONE
        assert (await lehr.diff(workspace.asset())).empty
        found = await lehr.diff(workspace.asset("2", outputs=("size", "lamp")))
        changes = {change.path: (change.intended, change.observed) for change in found.changes}
        assert changes["terraform_data.lamp/input/size"] == ("2", "1")
        assert changes["outputs/size"] == ("2", "1")
        assert "terraform_data.lamp" not in changes
        assert not found.effects.destructive
        assert isinstance(found.outputs, dict)
        assert found.outputs["values"]["size"] == "1"  # what production has, not what the plan would make
        assert set(found.outputs["values"]) == {"size", "lamp"}

    run(workspace, main)
    assert PASSWORD in workspace.state.read_text()


def test_what_the_module_no_longer_has_is_destructive(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        workspace.write(
            {
                **MODULE,
                "resource": {"terraform_data": {"lamp": with_lamp()["resource"]["terraform_data"]["lamp"]}},
            }
        )
        found = await lehr.diff(workspace.asset())
        assert found.changes[0].path == "terraform_data.chair"
        assert found.changes[0].intended is None
        assert found.effects.destructive

    run(workspace, main)


@real_terraform
def test_what_is_replaced_is_destructive_and_disruptive(tmp_path: Path) -> None:
    lamp = {"input": {"p": "${var.password}"}, "triggers_replace": ["${var.size}"]}
    module = {**MODULE, "resource": {"terraform_data": {"lamp": lamp}}}
    workspace = Workspace(tmp_path, "terraform", module)

    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        found = await lehr.diff(workspace.asset("2"))
        assert found.changes[0].intended == "deleted and created again, because it cannot be changed"
        assert (found.effects.destructive, found.effects.disruptive) == (True, True)
        changes = {change.path: (change.intended, change.observed) for change in found.changes}
        assert changes["terraform_data.lamp/triggers_replace/0"] == ("2", "1")
        assert (await lehr.push(workspace.asset("2"))).result is Result.DONE

    run(workspace, main)


def test_only_the_diff_that_was_admitted_is_applied(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        admitted = await lehr.diff(workspace.asset("2"))
        workspace.disturb()
        before = workspace.observed()
        with raises("TWS126", TransientError):
            await lehr.push(workspace.asset("2"), push=lehr.begin(workspace.asset("2"), admitted))
        assert workspace.observed() == before
        assert (await lehr.push(workspace.asset("2"))).result is Result.DONE

    run(workspace, main)


def test_a_push_reports_its_progress(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        assert lehr.messages[0] == "planning"
        assert {"create terraform_data.chair", "create terraform_data.lamp"} <= set(lehr.messages)
        assert any("(2 done)" in text for text in lehr.messages)

    run(workspace, main)


def test_turned_down_it_is_destroyed(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset = workspace.asset(outputs=("size",))
        await lehr.push(asset)
        assert (await lehr.push(asset, Goal.ABSENT)).result is Result.DONE
        assert workspace.observed()["resources"] == []
        assert (await lehr.diff(asset, Goal.ABSENT)).empty
        assert (await lehr.diff(asset)).outputs == {}

    run(workspace, main)


# Variables, outputs and secrets


def test_values_of_any_form_reach_the_module(workspace: Workspace) -> None:
    odd = '${var.size} %{if true} "quoted" \\n \n ä'

    async def main(lehr: Run) -> None:
        assert (await lehr.push(workspace.asset(odd))).result is Result.DONE
        assert (await lehr.diff(workspace.asset(odd))).empty

    run(workspace, main)
    assert workspace.observed()["outputs"]["size"]["value"] == odd


@real_terraform
def test_large_numbers_are_shown_and_published(tmp_path: Path) -> None:
    module = {**MODULE, "output": {"huge": {"value": 10**30}, "many": {"value": [10**30, 1.5]}}}
    workspace = Workspace(tmp_path, "terraform", module)

    async def main(lehr: Run) -> None:
        asset = workspace.asset(outputs=("huge", "many"))
        assert (await lehr.push(asset)).result is Result.DONE
        found = await lehr.diff(asset)
        assert found.empty
        assert found.outputs == {"values": {"huge": f"1{'0' * 30}", "many": [f"1{'0' * 30}", 1.5]}}
        assert msgspec.json.encode(found)

    run(workspace, main)


def test_a_variable_can_be_the_output_of_another_asset(workspace: Workspace) -> None:
    inputs = {"size": OutputOf("net/main", "values/cidr")}
    asset = workspace.asset(variables={}, inputs=inputs)
    other = make_asset(AssetId("net/main"), asset.type, {"root": "/net"}, {})
    reader = FixedReader(
        [asset, other], REGISTRY, outputs={AssetId("net/main"): {"values": {"cidr": "10/8"}}}
    )

    async def main(lehr: Run) -> None:
        found = {change.path: change.intended for change in (await lehr.diff(asset, read=reader)).changes}
        assert found["terraform_data.lamp/input/size"] == "10/8"
        reader.outputs = {}
        with pytest.raises(WaitingError):
            await lehr.diff(asset, read=reader)

    run(workspace, main)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"variables": {"size": "1", "colour": "red"}}, "TWS115"),
        ({"variables": {}}, "TWS106"),
        ({"outputs": ("weight",)}, "TWS118"),
        ({"outputs": ("password",)}, "TWS117"),
        (
            {
                "variables": {},
                "secrets": {"size": Secret("env:PASSWORD"), "password": Secret("env:PASSWORD")},
            },
            "TWS116",
        ),
        ({"secrets": {"password": Secret("env:NO_SUCH")}}, ""),
        ({"root": "/no/such/folder"}, "TWS119"),
        ({"root": "/"}, "TWS125"),
        ({"program": "no-such-program"}, "TWS101"),
        ({"program": "./no-such-program"}, "TWS101"),
        ({"program": "/bin/true"}, "TWS103"),
        ({"sha256": "0" * 64}, "TWS102"),
    ],
    ids=str,
)
def test_what_only_a_person_can_fix_stalls(workspace: Workspace, fields: dict[str, Any], code: str) -> None:
    asset = workspace.asset(**fields)

    async def main(lehr: Run) -> LehrError:
        for act in (lehr.diff(asset), lehr.push(asset, push=lehr.begin(asset, Diff()))):
            with pytest.raises(StalledError) as caught:
                await act
        return caught.value

    found = run(workspace, main)
    assert found.code == code
    assert PASSWORD not in str(found)
    assert workspace.observed() == {}


def test_secrets_lie_nowhere_but_in_the_state(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        workspace.disturb()
        await lehr.push(workspace.asset("2"))

    run(workspace, main)
    found = [path for path, content in files_below(workspace.folder).items() if PASSWORD.encode() in content]
    assert {path.name for path in found} <= {"terraform.tfstate", "terraform.tfstate.backup"}
    assert all(path.parent == workspace.root for path in found)
    assert (workspace.lehr.stat().st_mode | folder(workspace).stat().st_mode) & 0o077 == 0


def folder(workspace: Workspace) -> Path:
    return folder_of(workspace.lehr, target_of(workspace.asset()).key)


def test_the_command_gets_secrets_in_its_environment_only(
    faked: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not for terraform")
    monkeypatch.setenv("TF_CLI_ARGS", "-lock=false")
    monkeypatch.setenv("TF_CLI_CONFIG_FILE", "/etc/terraform.rc")
    log = faked.folder / "log"
    faked.misbehave(log=str(log))
    environment = {
        "FAKE_TERRAFORM": str(faked.control),
        "AWS_PROFILE": "shop",
        "TOKEN": Secret("env:PASSWORD"),
    }
    run(faked, lambda lehr: lehr.push(faked.asset(environment=environment, parallelism=3)))
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert [call[0] for call in calls][:4] == ["version", "init", "state_pull", "plan"]
    for _, arguments, variables in calls:
        assert PASSWORD not in " ".join(arguments)
        assert "AWS_SECRET_ACCESS_KEY" not in variables
        assert "TF_CLI_ARGS" not in variables
        assert variables["AWS_PROFILE"] == "shop"
        assert variables["TF_CLI_CONFIG_FILE"] == "/etc/terraform.rc"
    assert all(call[2]["TF_VAR_password"] == call[2]["TOKEN"] == PASSWORD for call in calls[1:])
    assert "-lockfile=readonly" in calls[1][1]
    assert {"-input=false", "-parallelism=3", "-lock-timeout=5s"} <= set(calls[3][1])
    assert [call[0] for call in calls].count("init") == 1
    assert [call[0] for call in calls].count("version") == 1


# The module


def test_a_module_is_made_of_files_of_the_workspace(workspace: Workspace) -> None:
    content = json.dumps({**MODULE, "terraform": {"backend": {"local": {}}}}).encode()
    contents = {"infra/shop/main.tf.json": content, "infra/readme": b"lamps"}
    state = workspace.folder / "kept" / "state"
    files = tuple(workspace_file(path, content) for path, content in contents.items())
    fields: dict[str, Any] = {"root": "infra/shop", "files": files, "backend": {"path": str(state)}}
    options = {"contents": lambda path, _digest: contents.get(path)}

    async def main(lehr: Run) -> None:
        assert (await lehr.push(workspace.asset(**fields))).result is Result.DONE
        made = folder(workspace) / "module"
        assert (made / "infra/readme").read_bytes() == b"lamps"
        contents["infra/shop/more.tf.json"] = b"{}"
        more = (*files[:1], workspace_file("infra/shop/more.tf.json", b"{}"))
        assert (await lehr.diff(workspace.asset(**{**fields, "files": more}))).empty
        assert not (made / "infra/readme").exists()
        del contents["infra/shop/more.tf.json"]
        with raises("TWS111", StalledError):
            await lehr.diff(workspace.asset(**{**fields, "files": files[1:] + more[1:] + files[:1]}))

    run(workspace, main, **options)
    assert state.exists()


@pytest.mark.parametrize("backend", [None, {}, {"path": "relative/state"}], ids=str)
def test_a_state_must_not_lie_in_a_module_that_lehr_makes(workspace: Workspace, backend: Any) -> None:
    module = {**MODULE, **({} if backend is None else {"terraform": {"backend": {"local": backend}}})}
    content = json.dumps(module).encode()
    asset = workspace.asset(root=".", files=(workspace_file("main.tf.json", content),))
    with raises("TWS114", StalledError):
        run(workspace, lambda lehr: lehr.diff(asset), contents=lambda *_: content)


def test_init_is_run_again_when_it_has_to_be(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset = workspace.asset()
        await lehr.push(asset)
        data = folder(workspace) / "data"
        shutil.rmtree(data)
        assert (await lehr.diff(asset)).empty
        backend = {"terraform": {"backend": {"local": {"path": str(workspace.state)}}}}
        workspace.write({**MODULE, **backend})
        assert (await lehr.diff(asset)).empty
        shutil.rmtree(data)
        assert (await lehr.diff(asset)).empty

    run(workspace, main)


def test_each_workspace_has_a_state_of_its_own(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        other = Run(workspace)
        assert (await other.push(workspace.asset("2", workspace="eu"))).result is Result.DONE
        assert (await lehr.diff(workspace.asset())).empty
        with raises("TWS109", StalledError, match="lineage"):
            await lehr.diff(workspace.asset("2", workspace="eu"))
        await other.plugin.close()

    run(workspace, main)
    assert (workspace.root / "terraform.tfstate.d/eu/terraform.tfstate").exists()


@real_terraform
@pytest.mark.parametrize("spelling", ["{root}/terraform.tfstate", "./terraform.tfstate"])
def test_init_does_not_empty_a_state_that_its_backend_names_in_another_way(
    tmp_path: Path, spelling: str
) -> None:
    """As Terraform does: it takes the file for another state, which it has migrated."""
    workspace = Workspace(tmp_path, "terraform")

    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        backend = {"local": {"path": spelling.format(root=workspace.root)}}
        workspace.write({**MODULE, "terraform": {"backend": backend}})
        before, mode = workspace.state.read_bytes(), workspace.state.stat().st_mode
        for _ in range(2):
            assert (await lehr.diff(workspace.asset())).empty
            assert (workspace.state.read_bytes(), workspace.state.stat().st_mode) == (before, mode)
            shutil.rmtree(folder(workspace) / "data")
        # Lehr was killed while `init` ran.
        shutil.copyfile(workspace.state, folder(workspace) / "state-before-init")
        workspace.state.write_bytes(b"")
        assert (await lehr.diff(workspace.asset())).empty
        assert not (folder(workspace) / "state-before-init").exists()

    run(workspace, main)


# The state


def test_a_state_that_is_lost_is_not_an_empty_production(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset = workspace.asset()
        await lehr.push(asset)
        await lehr.diff(asset)
        admitted = await lehr.diff(workspace.asset("2"))
        workspace.state.rename(workspace.folder / "aside")
        for goal in (Goal.PRESENT, Goal.ABSENT):
            with raises("TWS110", StalledError, match="lineage: none"):
                await lehr.diff(asset, goal)
        with raises("TWS110", StalledError):
            await lehr.push(asset, push=lehr.begin(asset, admitted))
        accepting = workspace.asset(lineage="none")
        assert (await lehr.push(accepting)).result is Result.DONE
        assert (await lehr.diff(accepting)).empty
        assert (await lehr.diff(asset)).empty

    run(workspace, main)


def test_another_state_is_used_only_if_intent_names_it(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset = workspace.asset()
        await lehr.push(asset)
        await lehr.diff(asset)
        state = workspace.observed()
        workspace.state.write_text(json.dumps({**state, "lineage": "4711", "serial": 7}))
        with raises("TWS109", StalledError, match="lineage: 4711"):
            await lehr.diff(asset)
        assert (await lehr.diff(workspace.asset(lineage="4711"))).empty
        assert (await lehr.diff(asset)).empty  # it is known from now on
        assert lehr.handle == "4711"

    run(workspace, main)


def test_a_broken_state_is_reported(workspace: Workspace) -> None:
    async def main(lehr: Run) -> None:
        await lehr.push(workspace.asset())
        workspace.state.write_text("garbage")
        with pytest.raises(LehrError, match="Unsupported state file format"):
            await lehr.diff(workspace.asset())

    run(workspace, main)


def test_a_lock_is_respected_and_its_holder_named(workspace: Workspace) -> None:
    """While a person runs `apply` by hand."""
    if workspace.program == "terraform":
        slow = [{"local-exec": {"command": "sleep 600"}}]
        resources = {**MODULE["resource"]["terraform_data"], "slow": {"provisioner": slow}}
        workspace.write({**MODULE, "resource": {"terraform_data": resources}})
        environment = {**os.environ, "TF_VAR_size": "1", "TF_VAR_password": PASSWORD}
        environment["TF_DATA_DIR"] = str(workspace.folder / "by-hand")
        environment.pop("TF_CLI_CONFIG_FILE", None)
        who, info = r"root@|@", workspace.root / ".terraform.tfstate.lock.info"
    else:
        workspace.misbehave(slow=600)
        environment = {
            "FAKE_TERRAFORM": str(workspace.control),
            "TF_VAR_size": "1",
            "TF_VAR_password": PASSWORD,
        }
        environment["TF_DATA_DIR"] = str(workspace.folder / "by-hand")
        who, info = "alice@laptop", workspace.root / ".terraform.tfstate.lock.info"

    def by_hand(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [workspace.program, *arguments],
            cwd=workspace.root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    assert by_hand("init").wait() == 0
    by_hand("plan", "-input=false", f"-out={workspace.folder}/plan").wait()
    process = by_hand("apply", "-input=false", f"{workspace.folder}/plan")
    try:
        until(info.exists)

        async def main(lehr: Run) -> None:
            with raises(
                "TWS108", TransientError, match=f"locked by .*({who}).*apply has held the lock since 20"
            ):
                await lehr.diff(workspace.asset(lock_timeout_seconds=0))

        run(workspace, main)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_state_that_was_not_saved_stops_everything(faked: Workspace) -> None:
    async def main(lehr: Run) -> None:
        diff = await lehr.diff(faked.asset())
        faked.misbehave(unsaved=True)
        outcome = await lehr.push(faked.asset(), push=lehr.begin(faked.asset(), diff))
        assert outcome.result is Result.STALLED
        faked.misbehave()
        with raises("TWS122", StalledError, match="state push errored.tfstate"):
            await lehr.diff(faked.asset())

    run(faked, main)


# The command


def test_an_error_in_the_module_has_file_and_line(workspace: Workspace) -> None:
    (workspace.root / "main.tf.json").write_text('{\n "variable": {}\n,,}')
    with raises("TWS106", StalledError, match=r"init failed: .*main\.tf\.json line \d"):
        run(workspace, lambda lehr: lehr.diff(workspace.asset()))


@real_terraform
def test_a_missing_provider_is_reported(tmp_path: Path) -> None:
    needs = {"required_providers": {"lamps": {"source": "127.0.0.1:9/shop/lamps"}}}
    workspace = Workspace(tmp_path, "terraform", {**MODULE, "terraform": needs})
    with raises("TWS107", TransientError, match="init failed: .*provider"):
        run(workspace, lambda lehr: lehr.diff(workspace.asset()))


@real_terraform
def test_a_backend_that_is_down_is_retried(tmp_path: Path) -> None:
    backend = {"backend": {"http": {"address": "http://127.0.0.1:9/state", "retry_max": 0}}}
    workspace = Workspace(tmp_path, "terraform", {**MODULE, "terraform": backend})
    with raises("TWS107", TransientError, match="connection refused"):
        run(workspace, lambda lehr: lehr.diff(workspace.asset()))


@pytest.mark.parametrize(
    "how",
    [
        {"print": ["show", "garbage"]},
        {"print": ["show", "[]"]},
        {"print": ["show", "{}"]},
        {"print": ["show", '{"resource_changes": [1]}']},
        {"print": ["show", '{"configuration": {}, "resource_changes": [{"change": {}, "address": "a"}]}']},
        {"print": ["show", "[" * 100_000]},
        {"print": ["state_pull", "garbage"]},
        {"print": ["state_pull", '{"lineage": 1}']},
    ],
    ids=lambda how: str(how)[:60],
)
def test_nonsense_is_not_believed(faked: Workspace, how: dict[str, Any]) -> None:
    faked.misbehave(**how)
    with raises("TWS105", TransientError):
        run(faked, lambda lehr: lehr.diff(faked.asset()))


@pytest.mark.parametrize(("version", "code"), [("1.4.9", "TWS124"), ("one", "TWS103"), (None, "TWS103")])
def test_the_version_must_be_known(faked: Workspace, version: Any, code: str) -> None:
    faked.misbehave(version=version)
    with raises(code, StalledError):
        run(faked, lambda lehr: lehr.diff(faked.asset()))


def test_a_command_with_the_right_digest_is_run_and_another_is_not(faked: Workspace) -> None:
    program = Path(faked.program)

    def changed() -> None:
        program.write_text(f"{program.read_text()}\n# another one")

    asset = faked.asset(sha256=hashlib.sha256(program.read_bytes()).hexdigest())

    async def main(lehr: Run) -> None:
        assert not (await lehr.diff(asset)).empty
        changed()
        with raises("TWS102", StalledError):
            await lehr.diff(asset)

    run(faked, main)


@pytest.mark.parametrize("how", ["hang", "deaf"])
@pytest.mark.parametrize("command", ["init", "plan", "show", "state_pull"])
def test_a_command_that_hangs_is_ended(faked: Workspace, command: str, how: str) -> None:
    faked.misbehave(**{how: command})
    name = command.partition("_")[0]

    async def main(lehr: Run) -> None:
        with raises("TWS104", TransientError, match=f"terraform {name}.* did not end"):
            await lehr.diff(faked.asset(plan_timeout_seconds=1.0))
        faked.misbehave()
        assert not (await lehr.diff(faked.asset())).empty

    run(faked, main, graces=(0.2, 0.2))


def test_a_refused_change_fails_with_its_reason(faked: Workspace) -> None:
    async def main(lehr: Run) -> None:
        diff = await lehr.diff(faked.asset())
        faked.misbehave(refuse=f"quota exceeded for {PASSWORD}")
        outcome = await lehr.push(faked.asset(), push=lehr.begin(faked.asset(), diff))
        assert outcome == Outcome(
            Result.FAILED,
            "terraform apply failed after 0 of 1 changes: creating Lamp (terraform_data.chair, main.tf.json "
            "line 1): quota exceeded for [secret]",
        )

    run(faked, main)


# Pushes that are broken off


def test_an_apply_that_takes_too_long_is_interrupted_first(faked: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset = faked.asset(apply_timeout_seconds=1.0)
        diff = await lehr.diff(asset)
        faked.misbehave(slow=600)
        outcome = await lehr.push(asset, push=lehr.begin(asset, diff))
        assert outcome.result is Result.FAILED  # it has ended well after SIGINT, and released the lock
        assert "did not end within 1s: execution halted" in outcome.message
        faked.misbehave()
        assert (await lehr.push(faked.asset())).result is Result.DONE

    run(faked, main)


def test_an_apply_that_is_deaf_is_killed_in_the_end(faked: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset = faked.asset(apply_timeout_seconds=1.0)
        diff = await lehr.diff(asset)
        faked.misbehave(deaf="apply")
        push = lehr.begin(asset, diff)
        outcome = await lehr.push(asset, push=push)
        assert outcome.result is Result.UNKNOWN
        await lehr.ended(push.operation)

    run(faked, main, graces=(0.2, 0.2))


def test_an_apply_that_was_killed_is_looked_at(faked: Workspace) -> None:
    async def main(lehr: Run) -> None:
        diff = await lehr.diff(faked.asset())
        faked.misbehave(die="apply")
        push = lehr.begin(faked.asset(), diff)
        outcome = await lehr.push(faked.asset(), push=push)
        assert outcome.result is Result.UNKNOWN
        assert "killed by signal 9" in outcome.message
        await lehr.ended(push.operation)
        faked.misbehave()
        found = await lehr.diff(faked.asset())  # the first resource is in the state
        assert "terraform_data.chair" not in paths(found)
        assert "terraform_data.lamp" in paths(found)
        assert (await lehr.push(faked.asset())).result is Result.DONE

    run(faked, main)


def test_a_push_that_is_cancelled_runs_to_its_end(faked: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset = faked.asset()
        diff = await lehr.diff(asset)
        faked.misbehave(slow=1)
        push = lehr.begin(asset, diff)
        pushing = asyncio.ensure_future(lehr.push(asset, push=push))
        while len(push.messages) < 2:  # noqa: ASYNC110 - a fixed push has no event
            await asyncio.sleep(0.02)
        pushing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await pushing
        assert await lehr.plugin.status(push.operation) is Progress.RUNNING
        await lehr.ended(push.operation)
        assert (await lehr.diff(asset)).empty
        assert not (folder(faked) / "run").exists()  # nor the plan in it

    run(faked, main)


def test_an_apply_outlives_lehr_and_is_found_again(workspace: Workspace) -> None:
    """Lehr is killed in the middle of an `apply`. The next process waits for its end, and looks."""
    if workspace.program == "terraform":
        slow = [{"local-exec": {"command": f"touch {workspace.folder}/started; sleep 3"}}]
        lamp = {**MODULE["resource"]["terraform_data"]["lamp"], "provisioner": slow}
        workspace.write({**MODULE, "resource": {"terraform_data": {"lamp": lamp}}})
    else:
        workspace.misbehave(slow=3)
    here = Path(__file__).resolve().parents[4]
    script = (
        f"import sys; from pathlib import Path; from {__name__} import push_once\n"
        "push_once(Path(sys.argv[1]), sys.argv[2])\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here / 'src'}"}
    lehr = subprocess.Popen(
        [sys.executable, "-c", script, str(workspace.folder), workspace.program], cwd=here, env=environment
    )
    until((workspace.root / ".terraform.tfstate.lock.info").exists)
    asset = workspace.asset()
    operation = push_of(target_of(asset), "operation-1").operation
    mark = folder(workspace) / "operations" / "operation-1.lock"
    until(lambda: mark.exists() and mark.read_text())
    lehr.kill()
    lehr.wait()

    async def main(next_lehr: Run) -> None:
        assert await next_lehr.plugin.status(operation) is Progress.RUNNING
        with raises("TWS121", TransientError):
            await next_lehr.diff(asset)
        await next_lehr.ended(operation)
        if workspace.program != "terraform":
            workspace.misbehave()
        assert (await next_lehr.diff(asset)).empty
        assert not (folder(workspace) / "run").exists()

    run(workspace, main)


def push_once(base: Path, program: str) -> None:
    """One push, by a process that is killed."""
    workspace = Workspace.__new__(Workspace)
    workspace.folder, workspace.root, workspace.program = base, base / "module", program
    workspace.control, workspace.lehr = base / "control.json", base / "lehr"
    run(workspace, lambda lehr: lehr.push(workspace.asset()))


def test_two_commands_of_lehr_do_not_work_on_one_asset_at_once(faked: Workspace) -> None:
    async def main(lehr: Run) -> None:
        asset, other = faked.asset(), Run(faked)
        found = await asyncio.gather(*(process.diff(asset) for process in (lehr, other, lehr, other)))
        assert len({diff.digest() for diff in found}) == 1
        await other.plugin.close()

    run(faked, main)


@contextlib.contextmanager
def unwritable(path: Path) -> Iterator[None]:
    path.write_text("in the way")
    yield
    path.unlink()


def test_a_state_folder_that_cannot_be_written_is_reported(faked: Workspace) -> None:
    with unwritable(faked.lehr), raises("TWS120", TransientError):
        run(faked, lambda lehr: lehr.diff(faked.asset()))


# Adoption


@real_terraform
def test_modules_that_exist_are_drafted(tmp_path: Path) -> None:
    made = {**MODULE, "variable": {"size": {"default": "1"}, "password": {"default": "x", "sensitive": True}}}
    applied, needy, broken = (Workspace(tmp_path / name, "terraform", made) for name in ("a", "b", "c"))
    needy.write(MODULE)
    (broken.root / "main.tf.json").write_text("{")
    asset = applied.asset(variables={}, secrets={}, environment={})

    async def main(lehr: Run) -> None:
        await lehr.push(asset)
        before = applied.observed()
        query = [str(workspace.root) for workspace in (applied, needy, broken)]
        drafts = [found async for found in lehr.plugin.discover(query, Partition("test"))]
        assert [draft.id for draft in drafts] == [
            "terraform/module",
            "terraform/module-2",
            "terraform/module-3",
        ]
        assert drafts[0].payload == {"root": str(applied.root)}
        assert drafts[0].notes == ("it has outputs that can be published: lamp, size",)
        assert drafts[0].obstacle == ""
        assert "No value for required variable" in drafts[1].obstacle
        assert "main.tf.json line 1" in drafts[2].obstacle
        [other] = [
            found
            async for found in lehr.plugin.discover([str(applied.root), "workspace=eu"], Partition("test"))
        ]
        assert other.payload["workspace"] == "eu"
        assert "its plan has changes" in other.obstacle
        assert applied.observed() == before
        relative = [found async for found in lehr.plugin.discover(["."], Partition("test"))]
        assert [draft.payload for draft in relative] == [drafts[0].payload]

    run(applied, main)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        (["workspace=eu"], "TWS131"),
        (["a", "color=red"], "TWS131"),
        (["no/such"], "TWS132"),
        (["bin"], "TWS133"),
    ],
)
def test_a_query_that_is_not_understood_stalls(faked: Workspace, query: list[str], code: str) -> None:
    async def main(lehr: Run) -> None:
        with raises(code, StalledError):
            [found async for found in lehr.plugin.discover(query, Partition("test"))]

    run(faked, main)
