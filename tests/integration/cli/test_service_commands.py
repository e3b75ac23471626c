"""`lehr service`: which unit is written where, and what systemctl is called with."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.cli.service.systemd import Unit
from lehr.control.service_unit import MARK
from tests.installed import installed

ODD = r"""50% $HOME "quoted" \slash 'single' é"""


class Systemd:
    """Answers calls of systemctl, and records them."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.fails = ""
        self.properties = ""

    def run(self, _unit: Unit, *arguments: str) -> subprocess.CompletedProcess[str]:
        self.calls.append(arguments)
        code = int(arguments[0] == self.fails)
        return subprocess.CompletedProcess([], code, self.properties, "the job failed" if code else "")


@pytest.fixture
def systemd(monkeypatch: pytest.MonkeyPatch) -> Systemd:
    found = Systemd()
    monkeypatch.setattr(Unit, "require_systemd", lambda _unit: None)
    monkeypatch.setattr(Unit, "_run", lambda unit, *arguments: found.run(unit, *arguments))
    return found


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that the current directory is not in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LEHR_STATE", str(tmp_path / "state"))
    for name in ("LEHR_STORE", "LEHR_SIGNED_BY", "LEHR_HOOK_SECRET", "LEHR_AGE_IDENTITY"):
        monkeypatch.delenv(name, raising=False)
    found = tmp_path / "shop"
    found.mkdir()
    (found / "lehr.yaml").write_text("partition: shop\n")
    return found


def file(tmp_path: Path) -> Path:
    return tmp_path / "config/systemd/user/lehr-shop.service"


def service(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["service", *arguments])


def refused(*arguments: str) -> str:
    """The code of the error."""
    done = service(*arguments)
    assert isinstance(done.exception, LehrError), done.output
    return done.exception.code


def test_a_unit_is_written_enabled_and_started(workspace: Path, tmp_path: Path, systemd: Systemd) -> None:
    done = service("install", "--user", str(workspace), "--", "--poll", "5s")
    assert done.exit_code == 0, done.output
    lines = file(tmp_path).read_text().splitlines()
    assert lines[0] == MARK
    assert f"WorkingDirectory={workspace}" in lines
    [start] = [line for line in lines if line.startswith("ExecStart=")]
    assert start.endswith(f" -P -m lehr run {workspace} --state {tmp_path / 'state'} --poll 5s")
    name = "lehr-shop.service"
    assert systemd.calls == [("daemon-reload",), ("enable", name), ("restart", name)]


def test_the_service_is_restarted_only_if_its_unit_has_changed(
    workspace: Path, tmp_path: Path, systemd: Systemd
) -> None:
    service("install", "--user", str(workspace))
    systemd.calls.clear()
    assert service("install", "--user", str(workspace)).exit_code == 0
    assert systemd.calls == [("enable", "--now", "lehr-shop.service")]
    assert service("install", "--user", str(workspace), "--", "--poll", "5s").exit_code == 0
    assert systemd.calls[-1] == ("restart", "lehr-shop.service")


def test_options_may_follow_without_a_directory(
    workspace: Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    done = service("install", "--user", "--dry-run", "--", "--listen", "127.0.0.1:0")
    assert done.exit_code == 0, done.output
    assert f"lehr run {workspace} --state" in done.stdout
    assert "--listen 127.0.0.1:0\n" in done.stdout


def test_a_dry_run_prints_the_unit_and_changes_nothing(
    workspace: Path, tmp_path: Path, systemd: Systemd
) -> None:
    done = service("install", "--user", "--dry-run", str(workspace))
    assert done.stdout.startswith(MARK)
    assert "systemctl --user enable lehr-shop.service" in done.stderr
    assert not file(tmp_path).exists()
    assert systemd.calls == []
    service("install", "--user", str(workspace))
    assert file(tmp_path).read_text() == done.stdout
    systemd.calls.clear()
    assert "rm " in service("uninstall", "--user", "--dry-run", str(workspace)).stdout
    assert file(tmp_path).exists()
    assert systemd.calls == []


@pytest.mark.parametrize(
    "options",
    [
        ["--once"],
        ["--listne", "x"],
        ["more"],
        ["--signed-by", "keys"],
        ["--poll", "soon"],
        ["--path", "a\nb"],
    ],
)
def test_options_that_the_service_could_not_start_with_are_refused(
    workspace: Path, tmp_path: Path, systemd: Systemd, options: list[str]
) -> None:
    assert service("install", "--user", str(workspace), "--", *options).exit_code == 2
    assert not file(tmp_path).exists()
    assert systemd.calls == []


@pytest.mark.parametrize(
    "options",
    [["--store", "postgresql://lehr:hunter2@db/lehr"], ["--store=postgresql://lehr:hunter2@db/lehr"]],
)
def test_a_password_does_not_get_into_the_unit(
    workspace: Path, tmp_path: Path, systemd: Systemd, options: list[str]
) -> None:
    assert refused("install", "--user", str(workspace), "--", *options) == "CLI182"
    assert not file(tmp_path).exists()


def test_a_secret_variable_must_be_in_the_environment_file(
    workspace: Path, tmp_path: Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEHR_AGE_IDENTITY", "AGE-SECRET-KEY-1")
    assert refused("install", "--user", str(workspace)) == "CLI183"
    variables = tmp_path / "config/lehr/shop.env"
    variables.parent.mkdir(parents=True)
    variables.write_text("LEHR_AGE_IDENTITY=AGE-SECRET-KEY-1\n")
    assert service("install", "--user", str(workspace)).exit_code == 0
    assert f"EnvironmentFile=-{variables}\n" in file(tmp_path).read_text()
    assert "SECRET-KEY" not in file(tmp_path).read_text()


def test_files_named_by_variables_are_named_in_the_unit(
    workspace: Path, tmp_path: Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEHR_SIGNED_BY", "keys")
    assert service("install", "--user", str(workspace)).exit_code == 0
    assert f'Environment="LEHR_SIGNED_BY={tmp_path / "keys"}"' in file(tmp_path).read_text()


def test_a_unit_of_somebody_else_is_left_alone(workspace: Path, tmp_path: Path, systemd: Systemd) -> None:
    file(tmp_path).parent.mkdir(parents=True)
    file(tmp_path).write_text("[Service]\n")
    for command in ("install", "uninstall"):
        assert refused(command, "--user", str(workspace)) == "CLI176"
    assert file(tmp_path).read_text() == "[Service]\n"
    assert systemd.calls == []


def test_a_service_that_does_not_start_is_an_error(workspace: Path, systemd: Systemd) -> None:
    systemd.fails = "restart"
    assert refused("install", "--user", str(workspace)) == "CLI178"


def test_uninstall_stops_and_removes_it_and_can_be_repeated(
    workspace: Path, tmp_path: Path, systemd: Systemd
) -> None:
    service("install", "--user", str(workspace))
    systemd.calls.clear()
    assert service("uninstall", "--user", str(workspace)).exit_code == 0
    assert not file(tmp_path).exists()
    assert systemd.calls == [("disable", "--now", "lehr-shop.service"), ("daemon-reload",)]
    assert service("uninstall", "--user", str(workspace)).exit_code == 0


def test_status_has_the_state_of_the_unit_as_its_exit_code(
    workspace: Path, tmp_path: Path, systemd: Systemd
) -> None:
    done = service("status", "--user", str(workspace))
    assert done.exit_code == 3
    assert "is not installed" in done.stdout
    service("install", "--user", str(workspace))
    systemd.properties = "ActiveState=active\nStatusText=enforcing shop; a=b\nMainPID=12\n"
    done = service("status", str(workspace), "-o", "json")  # finds it without --user
    assert done.exit_code == 0
    shown = json.loads(done.stdout)
    assert (shown["unit"], shown["file"]) == ("lehr-shop.service", str(file(tmp_path)))
    assert shown["status"] == "enforcing shop; a=b"
    systemd.properties = "ActiveState=failed\n"
    assert service("status", "--user", str(workspace)).exit_code == 3


def test_without_systemd_nothing_is_written(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refused("install", "--user", str(workspace)) == "CLI179"
    assert not file(tmp_path).exists()


@pytest.mark.parametrize("kind", ["--system", "--user"])
def test_systemd_accepts_the_unit(
    workspace: Path, tmp_path: Path, systemd: Systemd, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    analyze = installed("systemd-analyze")
    folder = workspace.rename(tmp_path / ODD)
    monkeypatch.setenv("LEHR_SIGNED_BY", f"{ODD}.keys")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # for --user, also outside a session
    options = ("--name", "shop", str(folder), "--", "--branch", ODD)
    done = service("install", kind, "--dry-run", *options)
    assert done.exit_code == 0, done.output
    file(tmp_path).parent.mkdir(parents=True)
    file(tmp_path).write_text(done.stdout)
    command = [analyze, *(["--user"] if kind == "--user" else []), "verify", "--man=no", str(file(tmp_path))]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    # Other units of the machine may be reported. A line that is wrong names this unit, as below.
    assert "lehr-shop.service" not in verified.stderr
    broken = file(tmp_path).read_text().replace("KillMode=process", "KillMode=proces")
    file(tmp_path).write_text(broken)
    verified = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    assert "lehr-shop.service" in verified.stderr
