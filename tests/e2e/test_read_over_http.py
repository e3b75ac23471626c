"""Whatever can be read of a state here is read from a server elsewhere, and is the same, byte for byte."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
import pytest
from click.testing import CliRunner, Result

from lehr.base.clock import SystemClock
from lehr.cli.command import commands_of
from lehr.cli.main import cli
from lehr.control.state_folder import default_state
from lehr.store.sqlite import SqliteStore
from lehr.wiring import STATE_FILE
from tests.said import address

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/hello"
LEHR = (sys.executable, "-m", "lehr")
GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


MORE = """\
---
id: x
type: lehr.File
payload: {path: x, content: y}
addons: {lehr.Labels: {labels: {team: web}}}
---
id: waves
type: lehr.RolloutPolicy
payload: {select: {ids: [hello/motd]}}
"""


class State(NamedTuple):
    """The shipped example in three incarnations, and a server over it.

    Attributes:
        then: a time between the first two.
        now: when it is asked, so that ages are the same.
    """

    folder: Path
    url: str
    then: str
    now: float


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    folder = tmp_path_factory.mktemp("example") / "hello"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("production"))
    limits = folder / "assets/limits.yaml"
    in_three_days = (dt.datetime.now(dt.UTC) + dt.timedelta(days=3)).strftime("%a").lower()
    limits.write_text(limits.read_text().replace("mon, tue, wed, thu, fri, sat, sun", in_three_days))
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    publish(folder, "begin")
    file = str(folder.parent / "hello@1")
    subprocess.run(
        [*LEHR, "store", "export", "1", file], cwd=folder, check=True, timeout=150, capture_output=True
    )
    subprocess.run([*LEHR, "store", "import", file], cwd=folder, check=True, timeout=150, capture_output=True)
    (folder / "sites/hello.yaml").write_text("{name: hello, greeting: Again, replicas: 3, port: 8420}\n")
    publish(folder, "greet again")
    files = folder / "assets/files.yaml"
    files.write_text(files.read_text() + MORE)
    publish(folder, "one file more")
    store = SqliteStore(default_state(folder) / STATE_FILE, read_only=True)
    [partition] = store.intent.partitions()
    headers = [store.intent.incarnation(partition, number) for number in (1, 2)]
    store.close()
    first, second = (header.created_at for header in headers if header is not None)
    then = dt.datetime.fromtimestamp((first + second) / 2, tz=dt.UTC).isoformat()
    command = [*LEHR, "serve", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield State(folder, address(process), then, SystemClock().now())
        finally:
            process.terminate()
            process.wait(timeout=20)


def publish(folder: Path, subject: str) -> None:
    """Commit, publish, and bring to production what may go there now: all but the processes."""
    subprocess.run([*GIT, "-C", str(folder), "add", "-A"], check=True)
    subprocess.run([*GIT, "-C", str(folder), "commit", "-qm", subject], check=True)
    done = subprocess.run([*LEHR, "run", "--once"], cwd=folder, timeout=150, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr.decode()


FORMS = {"": ("table", "wide", "json", "yaml", "name")}
"""Of `-o`; those of the commands below that have others."""

COMMANDS = {
    "get assets": FORMS[""],
    "get assets hello/*": FORMS[""],
    "get assets type=lehr.File": ("table",),
    "get assets label:team=web": ("table", "json"),
    "get assets --status waiting": ("table", "json"),
    "get assets --limit 2": ("table", "json"),
    "get assets --incarnation 1": FORMS[""],
    "get assets --incarnation THEN": ("json",),
    "get assets --incarnation previous hello/*": ("json",),
    "get assets --incarnation imported:hello@1": FORMS[""],
    "get assets --fields payload.path,addons,digest,origin": FORMS[""],
    "get assets --fields payload --limit 3": FORMS[""],
    "get assets --filter payload.path.startsWith('prod')": FORMS[""],
    "get assets --filter id.startsWith('hello/')&&type=='lehr.File' --fields payload": ("table", "json"),
    "get assets --filter id=='x'||type=='lehr.Process' --incarnation 3": ("name",),
    "get assets --filter type=='lehr.File' --explain-query": ("table", "json", "yaml"),
    "get assets --filter payload.path.matches('h.*o') --explain-query": ("table",),
    "get referrers hello/page": FORMS[""],
    "get referrers token --tree": FORMS[""],
    "get referrers hello/page --field restart_on --incarnation 1": FORMS[""],
    "get referrers token --tree --incarnation THEN": ("json",),
    "get orphans": FORMS[""],
    "get incarnations": FORMS[""],
    "get incarnations --all": ("name",),
    "get operations": FORMS[""],
    "get operations hello/page --limit 1": FORMS[""],
    "get operations --all": ("json",),
    "get decisions": FORMS[""],
    "get decisions hello/web": FORMS[""],
    "get decisions --all": ("name",),
    "describe hello/web": ("text", "json", "yaml"),
    "describe hello/page": ("text", "json"),
    "blame hello/web": ("text", "json"),
    "blame hello/web payload.replicas": ("text", "json"),
    "blame hello/motd payload.path": ("text", "json"),
    "blame hello/page content --incarnation 1": ("text", "json"),
    "blame hello/page content --incarnation THEN": ("text",),
    "why hello/web": ("text", "json", "yaml"),
    "why hello/page": ("text", "json", "yaml"),
    "why hello/page --at THEN": ("text", "json"),
    "why --all": ("text", "json", "yaml"),
    "replay hello/web": ("text", "json", "yaml"),
    "status": ("json", "yaml"),
    "rollout list": FORMS[""],
    "rollout show": ("text", "json", "yaml"),
    "rollout show waves": ("text",),
    "rollout history": ("table", "json"),
    "events": ("text", "json"),
    "events hello/page --since 1d": ("json",),
    "audit": ("table", "wide", "json", "yaml"),
    "audit --limit 1": ("json",),
    "types": FORMS[""],
    "types --incarnation 1": ("json",),
    "explain lehr.Process": ("text", "json", "yaml"),
    "explain lehr.Process.ports --incarnation THEN": ("text",),
    "graph --incarnation latest": ("text", "dot", "mermaid", "json"),
    "graph --incarnation THEN --assets all": ("text", "dot", "mermaid", "json"),
    "graph --incarnation 2 --assets hello/*": ("text", "json"),
    "diff 1 latest": ("table", "json", "markdown", "name"),
    "diff THEN previous": ("table", "json"),
    "diff imported:hello@1 latest": ("table", "json", "name"),
    "diff latest --workdir WORKSPACE": ("table", "json"),
    "diff previous latest --exit-code": ("name",),
}

CASES = [f"{command} -o {form}" for command, forms in COMMANDS.items() for form in forms] + [
    "wait x --for incarnation=1 --timeout 5s",
    # And what is not there:
    "why hello/webb",
    "why hello/web --at 1999-12-31",
    "why hello/web --at 9999-12-31",
    "replay nothing",
    "replay 0",
    "replay 99999",
    "describe nothing",
    "blame nothing",
    "blame hello/web payload.nothing",
    "blame hello/web --incarnation 9",
    "get referrers nothing",
    "get referrers x --incarnation 9",
    "get assets --incarnation 0",
    "get assets --incarnation 99999999999999999999999",
    "get assets --incarnation 1999-12-31",
    "get assets --incarnation soon",
    "get assets --incarnation imported:hello@9",
    "get assets --filter x.y",
    "get assets --cursor x",
    "get assets --fields x",
    "get assets ,",
    "get operations nothing",
    "get assets --partition other",
    "explain nothing",
    "rollout show nothing",
    "rollout history nothing",
    "diff 1 9",
    "graph --incarnation 1 --assets nothing",
]

TAKES_A_SERVER = {
    name: any("--server" in item.opts for item in command.params)
    for name, command in commands_of(cli)
    if not isinstance(command, click.Group)
}


def asked(state: State, case: str, *where: str, at: tuple[str, ...] = ()) -> Result:
    words = case.replace("THEN", state.then).replace("WORKSPACE", str(state.folder)).split()
    return CliRunner().invoke(cli, [*where, *words, *at])


@pytest.mark.parametrize("case", CASES)
def test_what_is_read_over_http_is_what_is_read_here(
    case: str, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _clock: state.now)
    here = asked(state, case, at=("--state", str(state.folder)))
    there = asked(state, case, "--server", state.url)
    assert there.stdout == here.stdout
    assert there.stderr == here.stderr
    assert (there.exit_code, str(there.exception)) == (here.exit_code, str(here.exception))
    if here.exception is not None and not isinstance(here.exception, SystemExit):
        assert vars(there.exception) == vars(here.exception)
    else:
        assert here.output or case.startswith(("get orphans", "wait"))


def test_every_command_that_reads_is_compared() -> None:
    assert {name.split()[0] for name, takes in TAKES_A_SERVER.items() if takes} - {
        "controller",
        "open",
        "top",
    } == {case.split()[0] for case in CASES}


def test_the_work_of_a_server_is_that_of_its_state_at_the_time_of_the_server(state: State) -> None:
    at = ("--state", str(state.folder))
    found = [
        json.loads(asked(state, "top -o json", *where).stdout) for where in (at, ("--server", state.url))
    ]
    for document in found:
        assert document.pop("pushes_per_second") >= document.pop("failures_per_second")
    assert found[0] == found[1]


def test_pages_go_on_elsewhere_where_they_ended_here(state: State) -> None:
    at = ("--state", str(state.folder))
    first = asked(state, "get assets --fields payload --limit 3 -o name", at=at)
    cursor = first.stderr.split()[-1]
    rest = asked(state, f"get assets --fields payload -o name --cursor {cursor}", "--server", state.url)
    whole = asked(state, "get assets --fields payload -o name", at=at)
    assert first.stdout + rest.stdout == whole.stdout


@pytest.mark.parametrize("by_option", [False, True])
def test_ids_are_completed_from_a_server(by_option: bool, state: State, tmp_path: Path) -> None:
    words = ["lehr", *(["--server", state.url] if by_option else []), "why", "hello/"]
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    given = {} if by_option else {"LEHR_SERVER": state.url}
    done = subprocess.run(
        LEHR,
        cwd=tmp_path,
        env={**os.environ, **asked, **given, "_LEHR_COMPLETE": "bash_complete"},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.stdout.split() == ["plain,hello/motd", "plain,hello/page", "plain,hello/web"]


def test_the_status_of_a_server_says_where_it_is(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _clock: state.now)
    here = asked(state, "status", at=("--state", str(state.folder))).stdout.splitlines()
    there = asked(state, "status", "--server", state.url).stdout.splitlines()
    differ = [line for line, other in zip(there, here, strict=True) if line != other]
    assert differ == [f"state       {state.url}"]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("command", [name for name, takes in TAKES_A_SERVER.items() if not takes])
def test_what_needs_a_workspace_or_changes_something_says_where_to_do_it(command: str, before: bool) -> None:
    if command == "set" and not before:
        pytest.skip("its value may begin with a dash")
    server, words = ["--server", "http://127.0.0.1:1"], command.split()
    done = CliRunner().invoke(cli, [*server, *words] if before else [*words, *server])
    assert done.exit_code == 2
    assert f"`cli {command}` does not take --server" in " ".join(done.stderr.split())


def test_the_graph_of_a_workspace_is_not_asked_of_a_server(state: State) -> None:
    done = asked(state, "graph", "--server", state.url)
    assert done.exit_code == 2
    assert "name --incarnation" in " ".join(done.stderr.split())


@pytest.mark.parametrize("over_http", [False, True])
def test_a_watch_of_a_selector_and_a_filter_begins_with_the_same(over_http: bool, state: State) -> None:
    where = ["--server", state.url] if over_http else []
    command = [*LEHR, *where, "get", "assets", "hello/*", "--filter", "type == 'lehr.File'"]
    command += ["--watch", "-o", "name"]
    with subprocess.Popen(command, cwd=state.folder, stdout=subprocess.PIPE, text=True) as watching:
        try:
            assert watching.stdout is not None
            assert [watching.stdout.readline() for _ in range(2)] == ["hello/motd\n", "hello/page\n"]
        finally:
            watching.kill()
