"""`lehr serve` as people run it: a process over the store that `lehr run` has filled."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lehr.base.errors import LehrError
from lehr.cli.main import cli
from lehr.control.http_servers import token_for
from tests.said import address, said

ASSETS = "- {id: web/motd, type: lehr.File, payload: {path: etc/motd, content: hello}}\n"
LEHR = (sys.executable, "-m", "lehr")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("hello")
    (folder / "assets").mkdir()
    (folder / "lehr.yaml").write_text("partition: hello\n")
    (folder / "assets/all.yaml").write_text(ASSETS)
    subprocess.run([*LEHR, "run", "--once"], cwd=folder, check=True, capture_output=True, timeout=150)
    return folder


@contextlib.contextmanager
def serving(
    folder: Path, command: str = "serve", *options: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command_line = [*LEHR, command, "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command_line, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield address(process), process
        finally:
            process.terminate()
            process.wait(timeout=20)


def code_of(result: Result) -> str | None:
    assert isinstance(result.exception, LehrError)
    return result.exception.code


def opened(url: str) -> Any:
    headers = {"Authorization": f"Bearer {token_for(url)}"}
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20)


def asked(url: str) -> Any:
    with opened(url) as answer:
        return json.load(answer)


def test_what_is_in_force_is_answered_and_a_signal_ends_it(folder: Path) -> None:
    with serving(folder) as (url, process):
        page = asked(f"{url}/v1/partitions/hello/assets?fields=payload.path")
        assert page["incarnation"] == "hello@1"
        assert page["assets"] == [{"id": "web/motd", "type": "lehr.File", "payload": {"path": "etc/motd"}}]
        [row] = asked(f"{url}/v1/partitions/hello/standing")
        assert (row["id"], row["status"]) == ("web/motd", "Converged")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


COMMANDS = [
    ("get", "assets"),
    ("get", "assets", "--filter", "payload.path == 'etc/motd'", "--fields", "payload,digest"),
    ("get", "assets", "--incarnation", "hello@1", "-o", "json"),
    ("get", "incarnations", "-o", "json"),
    ("get", "decisions", "web/motd", "-o", "json"),
    ("get", "operations", "-o", "json"),
    ("get", "orphans"),
    ("get", "referrers", "web/motd"),
    ("describe", "web/motd", "-o", "json"),
    ("why", "web/motd", "-o", "json"),
    ("why", "--all", "-o", "json"),
    ("status", "-o", "json"),
    ("diff", "previous", "latest", "-o", "json"),
    ("graph", "--incarnation", "latest", "--assets", "all"),
    ("types", "-o", "name"),
    ("explain", "lehr.File", "-o", "json"),
    ("wait", "--for", "incarnation=1", "--timeout", "5s"),
]


def ageless(text: str) -> str:
    """What a command prints, without how long ago things were: a second may pass between two calls."""
    return re.sub(r"\b(now|\d+s)\s+", "AGE ", text)


@pytest.mark.timeout(120)
def test_every_command_that_reads_says_the_same_over_http(folder: Path, tmp_path: Path) -> None:
    text = ASSETS.replace("hello}", "hello again}")
    (folder / "assets/all.yaml").write_text(text)
    subprocess.run([*LEHR, "run", "--once"], cwd=folder, check=True, capture_output=True, timeout=150)
    with serving(folder) as (url, _process):
        for command in COMMANDS:
            here = CliRunner().invoke(cli, [*command, "--state", str(folder)])
            there = CliRunner().invoke(cli, ["--server", url, *command])
            assert there.exit_code == here.exit_code == 0, (command, there.output, here.output)
            assert ageless(there.stdout) == ageless(here.stdout), command
        by_environment = CliRunner().invoke(cli, ["status"], env={"LEHR_SERVER": url})
        assert f"state       {url}" in by_environment.stdout
        assert "running     no" in by_environment.stdout


def test_what_is_not_there_is_told_as_it_is_here(folder: Path) -> None:
    with serving(folder) as (url, _process):
        for command in (("why", "web/motdd"), ("get", "assets", "--incarnation", "99")):
            here = CliRunner().invoke(cli, [*command, "--state", str(folder)])
            there = CliRunner().invoke(cli, ["--server", url, *command])
            assert (there.exit_code, str(there.exception)) == (here.exit_code, str(here.exception))


def test_a_server_that_does_not_answer_is_told() -> None:
    done = CliRunner().invoke(cli, ["--server", "http://127.0.0.1:1", "status"])
    assert code_of(done) == "HTP107"
    assert "LEHR_SERVER" in str(done.exception)
    assert code_of(CliRunner().invoke(cli, ["--server", "127.0.0.1:1", "status"])) == "HTP106"
    named = CliRunner().invoke(cli, ["--server", "http://me:hunter2@127.0.0.1:1", "status"])
    assert code_of(named) == "HTP105"
    assert "hunter2" not in str(named.exception)


def test_a_server_of_something_else_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as other:
        assert other.stdout is not None
        port = re.search(r"port (\d+)", other.stdout.readline())
        assert port is not None
        done = CliRunner().invoke(cli, ["--server", f"http://127.0.0.1:{port[1]}", "status"])
        other.terminate()
    assert code_of(done) == "HTP109"
    assert "404" in str(done.exception)


def test_commands_that_change_something_are_not_for_servers() -> None:
    done = CliRunner().invoke(cli, ["--server", "http://127.0.0.1:1", "sync"])
    assert done.exit_code == 2
    assert "--server" in done.stderr


def test_an_address_that_is_taken_is_told(folder: Path) -> None:
    with serving(folder) as (url, _process):
        command = [*LEHR, "serve", "--listen", url.removeprefix("http://")]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 1
        assert "error[HTP125]" in done.stderr


def test_an_address_that_is_none_is_told(folder: Path) -> None:
    command = [*LEHR, "serve", "--listen", "somewhere"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert "error[HTP124]" in done.stderr


def test_lehr_run_begins_nothing_with_an_address_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "lehr.yaml").write_text("partition: hello\n")
    (tmp_path / "assets/all.yaml").write_text(ASSETS)
    command = [*LEHR, "run", "--listen", "somewhere"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error[HTP124]: 'somewhere' "), done.stderr
    assert not (tmp_path / "etc").exists()


@pytest.mark.parametrize("option", [("--hook-secret", "secret"), ("--server-name", "lehr.example.org")])
def test_options_of_http_alone_are_wrong(option: tuple[str, str], folder: Path) -> None:
    done = CliRunner().invoke(cli, ["run", str(folder), *option])
    assert done.exit_code == 2
    assert f"{option[0]} requires --listen" in done.stderr


def test_lehr_run_answers_too_and_takes_hooks(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("open sesame\n")
    with serving(folder, "run", "--hook-secret", str(secret), "--poll", "1h") as (url, _process):
        health = asked(f"{url}/healthz")
        assert (health["status"], [check["name"] for check in health["checks"]]) == ("ok", ["loops"])
        (folder / "assets/more.yaml").write_text(ASSETS.replace("motd", "more"))
        hook = urllib.request.Request(f"{url}/hooks/git", b"{}", {"X-Gitlab-Token": "open sesame"})
        with urllib.request.urlopen(hook, timeout=20) as answer:
            assert answer.status == 202
        with opened(f"{url}/v1/partitions/hello/watch?after=1") as watching:
            for line in watching:
                if b"web/more" in line:
                    break
        here = CliRunner().invoke(cli, ["--server", url, "status"])
        assert "running     yes" in here.stdout


@pytest.mark.parametrize("command", ["serve", "run"])
def test_only_a_name_that_is_known_is_answered_on_loopback(command: str, folder: Path) -> None:
    with serving(folder, command, "--server-name", "lehr.example.org") as (url, _process):
        for host, status in (("lehr.example.org", 200), ("localhost:80", 200), ("evil.example", 421)):
            connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
            connection.request("GET", "/healthz", headers={"Host": host})
            assert connection.getresponse().status == status
            connection.close()


def test_a_port_that_is_taken_does_not_stop_lehr_run(folder: Path) -> None:
    with serving(folder) as (url, _process):
        command = [*LEHR, "run", "--listen", url.removeprefix("http://")]
        with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
            said(process, " warning .*cannot listen on")
            assert process.poll() is None
            process.terminate()
            process.wait(timeout=20)
            assert process.returncode == 0


def test_the_controller_of_the_page_on_watching_follows(folder: Path, tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/how-to/watch.md").read_text()
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "controller.py").write_text(code)
    with serving(folder) as (url, _process):
        command = [sys.executable, str(tmp_path / "controller.py"), url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as controller:
            try:
                assert controller.stdout is not None
                told = set()
                while "web/motd ought to be etc/motd" not in told:
                    told.add(controller.stdout.readline().strip())
                (folder / "assets/later.yaml").write_text(ASSETS.replace("motd", "later"))
                subprocess.run(
                    [*LEHR, "run", "--once"], cwd=folder, check=True, capture_output=True, timeout=150
                )
                while "web/later ought to be etc/later" not in told:
                    told.add(controller.stdout.readline().strip())
            finally:
                controller.kill()


@pytest.mark.parametrize("over_http", [False, True])
def test_changes_are_written_as_they_come(over_http: bool, folder: Path) -> None:
    file = folder / f"assets/watched-{over_http}.yaml"
    with serving(folder) as (url, _process):
        where = ["--server", url] if over_http else []
        command = [*LEHR, *where, "get", "assets", "--watch", "-o", "json", "--filter", "id != 'other'"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as watching:
            try:
                assert watching.stdout is not None
                shown = json.loads(watching.stdout.readline())
                assert shown["type"] == "lehr.File"
                file.write_text(ASSETS.replace("motd", file.stem))
                subprocess.run(
                    [*LEHR, "run", "--once"], cwd=folder, check=True, capture_output=True, timeout=150
                )
                while shown["id"] != f"web/{file.stem}":
                    shown = json.loads(watching.stdout.readline())
            finally:
                watching.kill()
