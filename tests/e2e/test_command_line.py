"""The command line against real files and a real `lehr run`, as processes of their own."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.control.state_folder import default_state

WORKSPACE = "partition: shop\n"
GREETING = """\
id: greeting
type: lehr.File
payload: {path: out/greeting.txt, content: "TEXT\\n"}
"""
SECOND = """\
---
id: farewell
type: lehr.File
payload: {path: out/farewell.txt, content: "bye\\n"}
addons: {lehr.DependsOn: {assets: [greeting]}}
"""
CLOSED = """\
---
id: office-hours
type: lehr.Calendar
payload:
  select: {ids: [greeting]}
  timezone: UTC
  windows: [{days: [DAY], from: "12:00", to: "12:01"}]
  override: true
"""

Done = subprocess.CompletedProcess[str]


class Workspace:
    """A plain directory, and the commands run in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "assets").mkdir(parents=True)
        (folder / "lehr.yaml").write_text(WORKSPACE)
        self.declare("hello")

    def declare(self, text: str, more: str = "") -> None:
        (self.folder / "assets" / "files.yaml").write_text(GREETING.replace("TEXT", text) + more)

    def lehr(self, *arguments: str, code: int = 0, **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "lehr", *arguments],
            cwd=self.folder,
            env={**os.environ, "NO_COLOR": "1", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=150,
        )
        assert done.returncode == code, (
            f"{arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
        )
        return done

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.lehr(*arguments, "-o", "json", code=code).stdout)

    @property
    def production(self) -> str:
        return (self.folder / "out" / "greeting.txt").read_text()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "shop")


@pytest.fixture
def running(workspace: Workspace) -> Iterator[Workspace]:
    """A workspace with a `lehr run` on it, which has published and converged."""
    workspace.lehr("run", "--once")
    # Outside the folder: a file that is written while it is read is not a revision.
    with (workspace.folder.parent / "run.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lehr", "run", "--poll", "60s"], cwd=workspace.folder, stderr=log
        )
    try:
        while workspace.json("status")["running"] is None:
            assert process.poll() is None
        yield workspace
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(40) == 0


def test_from_nothing_to_production_and_why(workspace: Workspace) -> None:
    # given a workspace, when it is run once
    told = workspace.lehr("run", "--once").stderr
    # then production is as it says, and says why
    assert "shop@1: production is as intended" in told
    assert workspace.production == "hello\n"
    assert "greeting has converged" in workspace.lehr("why", "greeting").stdout
    [row] = workspace.json("get", "assets")
    assert (row["id"], row["status"]) == ("greeting", "Converged")
    assert workspace.json("get", "operation")[0]["result"] == "done"
    assert [item["name"] for item in workspace.json("get", "incarnations")] == ["shop@1"]
    decisions = workspace.json("get", "decisions", "greeting")
    assert [item["condition"]["status"] for item in decisions] == ["Converged", "Pushing"]
    assert not workspace.json("get", "orphans")
    # and a second run has nothing to do
    workspace.lehr("run", "--once")
    assert len(workspace.json("get", "operations")) == 1


def test_a_run_and_a_plan_can_be_for_some_assets(workspace: Workspace) -> None:
    workspace.declare("hello", SECOND)
    planned = workspace.json("plan", "greeting", "-o", "json")
    assert [item["id"] for item in planned] == ["greeting"]
    told = workspace.lehr("run", "--once", "greeting").stderr
    assert "production is as intended, 1 asset (id=greeting)" in told
    assert workspace.production == "hello\n"
    assert not (workspace.folder / "out/farewell.txt").exists()
    assert "CLI174" in workspace.lehr("run", "--once", "nothing", code=1).stderr
    assert "CLI174" in workspace.lehr("plan", str(workspace.folder), "nothing", code=1).stderr
    for words in [("greeting*",), (".", "greeting")]:
        assert "add --once" in workspace.lehr("run", *words, code=2).stderr


def test_problems_are_shown_with_their_place_and_nothing_is_touched(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    (workspace.folder / "assets" / "files.yaml").write_text(GREETING.replace("lehr.File", "lehr.Fiel"))
    assert "--> assets/files.yaml:2:1" in workspace.lehr("validate", code=1).stdout
    [problem] = workspace.json("validate", code=1)
    assert problem["at"] == {"file": "assets/files.yaml", "line": 2, "column": 1}
    assert "refused" in workspace.lehr("run", "--once", code=1).stderr
    told = workspace.lehr("why", "--all").stdout
    assert "shop@1 stays in force" in told
    assert problem["what"] in told
    assert " 2 | type: lehr.Fiel\n" in told
    assert workspace.production == "hello\n"


def test_a_problem_that_validation_finds_points_to_its_field(workspace: Workspace) -> None:
    workspace.declare("hello", SECOND.replace("[greeting]", "[greting]"))
    told = workspace.lehr("validate", code=1).stdout.splitlines()
    line = next(number for number, text in enumerate(told) if text.startswith(" 8 | addons: "))
    assert told[line][told[line + 1].index("^") :].startswith("greting")


def test_an_asset_that_disappears_is_found_against_the_state_alone(workspace: Workspace) -> None:
    workspace.declare("hello", SECOND)
    workspace.lehr("run", "--once")
    workspace.declare("hello")
    assert "farewell" in workspace.lehr("validate", code=1).stdout
    workspace.lehr("validate", "--state", str(workspace.folder / "none"), code=1)


def test_a_workspace_that_cannot_be_published_is_not_run(workspace: Workspace) -> None:
    (workspace.folder / "lehr.yaml").write_text("partition: [\n")
    done = workspace.lehr("run", "--once", code=1)
    assert "lehr.yaml:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (workspace.folder / "out").exists()


def test_differences_are_shown_field_by_field(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    assert "no differences" in workspace.lehr("diff", "--exit-code").stdout
    workspace.declare("hi", SECOND)
    found = workspace.json("diff", "--exit-code", code=3)
    assert (found["before"], found["after"]) == ("shop@1", "working tree")
    assert [(item["id"], item["kind"]) for item in found["assets"]] == [
        ("farewell", "added"),
        ("greeting", "changed"),
    ]
    [field] = found["assets"][1]["fields"]
    assert (field["path"], field["before"], field["after"]) == ("/payload/content", "hello\n", "hi\n")
    shown = workspace.lehr("diff", "-o", "markdown").stdout
    assert "-hello" in shown
    assert "| added | `farewell` | `lehr.File` |" in shown
    workspace.lehr("run", "--once")
    assert workspace.lehr("diff", "previous", "latest", "-o", "name").stdout.split() == [
        "farewell",
        "greeting",
    ]


def test_a_plan_says_what_would_be_pushed_and_pushes_nothing(workspace: Workspace) -> None:
    workspace.declare("hello", SECOND)
    first, second = workspace.json("plan", "--exit-code", code=3)
    assert (second["id"], second["result"]) == ("greeting", "will be pushed")
    assert (first["id"], first["result"]) == ("farewell", "waits")
    assert (first["reason"], first["wait_for"]) == ("DependencyDiffers", ["greeting"])
    assert not (workspace.folder / "out").exists()
    workspace.lehr("run", "--once")
    assert workspace.lehr("plan", "--exit-code").stdout == "2 as intended\n"


def test_a_freeze_holds_at_once_and_says_so(running: Workspace) -> None:
    # given a freeze, when intent changes
    running.lehr("freeze", "all", "--reason", "busy day", "--for", "2h")
    running.declare("changed")
    synced = running.lehr("sync").stdout
    assert synced.startswith("published: ")
    assert synced.endswith(" is in force as shop@2; 1 asset changed\n")
    running.lehr("wait", "greeting", "--for", "status=waiting", "--timeout", "30s")
    # then nothing is pushed, and everybody can see why
    assert running.production == "hello\n"
    told = running.lehr("why", "greeting").stdout
    assert "busy day" in told
    assert "lehr unfreeze all" in told
    assert "busy day" in running.lehr("why", "--all").stdout
    status = running.json("status")
    assert status["counts"] == {"Waiting": 1}
    assert status["running"]["partition"] == "shop"
    assert "greeting: Waiting" in running.lehr("wait", "--timeout", "0s", code=1).stderr
    # and when it is lifted, it is pushed
    running.lehr("unfreeze", "all")
    running.lehr("wait", "--timeout", "30s")
    assert running.production == "changed\n"


def test_a_rollback_needs_no_git_and_stands_until_it_is_lifted(running: Workspace) -> None:
    running.declare("bad")
    running.lehr("sync")
    running.lehr("wait", "--timeout", "30s")
    assert running.production == "bad\n"
    running.lehr("rollback", "greeting", "--reason", "bad")
    running.lehr("wait", "--timeout", "30s", "--allow-pinned")
    assert running.production == "hello\n"
    assert "pinned by" in running.lehr("why", "greeting").stdout
    # and nobody takes that for the newest commit
    assert "greeting: pinned to shop@1" in running.lehr("wait", "--timeout", "30s", code=1).stderr
    assert "1 asset held back by pins: greeting at shop@1" in running.lehr("status").stdout
    running.lehr("unpin", "greeting")
    running.lehr("wait", "--timeout", "30s")
    assert running.production == "bad\n"


def test_a_wait_is_for_the_newest_commit_and_ends_where_nothing_can_come_of_it(running: Workspace) -> None:
    # given a revision that `lehr run` has not seen yet, and that cannot be published
    (running.folder / "assets" / "broken.yaml").write_text("- {id: greeting\n")
    told = running.lehr("wait", "--timeout", "300s", code=1).stderr
    assert "the newest commit" in told
    assert "was refused" in told
    for goal in ("status=Converged", "incarnation=2"):
        running.lehr("wait", "--for", goal, "--timeout", "300s", code=1)
    running.lehr("wait", "--for", "incarnation=1", "--timeout", "300s")
    status = running.lehr("status").stdout
    assert "was refused" in status
    assert "shop@1 stays in force" in status
    assert "Converged shop@1" not in running.lehr("why", "--all").stdout
    # when that is put right
    (running.folder / "assets" / "broken.yaml").unlink()
    running.declare("right")
    running.lehr("wait", "--timeout", "30s")
    assert running.production == "right\n"
    run = running.json("status")["run"]
    assert run["source_looked_at"]
    assert run["history"] == {"seconds": 90 * 86_400.0, "incarnations": 1000, "pruned_at": None}


def test_a_wait_ends_at_once_where_no_run_is_active(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    told = workspace.lehr("wait", "--timeout", "300s", code=1).stderr
    assert "no `lehr run` is active" in told
    assert "last seen" in told
    assert "no: last seen" in workspace.lehr("status").stdout
    assert workspace.json("status")["run"]["active"] is False


def test_an_override_that_is_revoked_lets_nothing_more_through(running: Workspace) -> None:
    # given a calendar that is closed for days to come, and an override of it
    day = (dt.datetime.now(dt.UTC) + dt.timedelta(days=3)).strftime("%a").lower()
    closed = CLOSED.replace("DAY", day)
    running.declare("hello", closed)
    running.lehr("sync")
    running.lehr("override", "greeting", "--check", "office-hours", "--reason", "incident", "--for", "1h")
    running.declare("mended", closed)
    running.lehr("sync")
    running.lehr("wait", "--timeout", "30s")
    assert running.production == "mended\n"
    # when it is revoked
    running.lehr("revoke", "override", "greeting", "--reason", "mended")
    running.declare("later", closed)
    running.lehr("sync")
    # then the calendar has its say again
    running.lehr("wait", "greeting", "--for", "status=Waiting", "--timeout", "30s")
    assert "lehr override --check office-hours" in running.lehr("why", "greeting").stdout
    assert running.production == "mended\n"
    assert "error[CTL117]" in running.lehr("revoke", "override", "all", code=1).stderr


def test_a_pause_leaves_production_alone(running: Workspace) -> None:
    running.lehr("pause", "greeting", "--reason", "by hand")
    running.lehr("wait", "greeting", "--for", "status=Held", "--timeout", "30s")
    running.lehr("resume", "greeting")
    running.lehr("retry", "greeting")
    running.lehr("wait", "--timeout", "30s")
    assert "by hand" not in running.lehr("why", "--all").stdout


def test_commands_that_make_no_sense_say_why(running: Workspace) -> None:
    assert "error[CTL105]" in running.lehr("freeze", "nope", "--reason", "x", code=1).stderr
    assert "error[CTL117]" in running.lehr("unfreeze", "all", code=1).stderr
    assert "shop@9" in running.lehr("pin", "all", "--at", "9", "--reason", "x", code=1).stderr
    assert "error[CLI105]" in running.lehr("approve", "greeting", "--reason", "x", "--yes", code=1).stderr
    assert "error[CTL118]" in running.lehr("run", "--once", code=1).stderr


def test_commands_that_change_something_say_when_nobody_carries_them_out(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    told = workspace.lehr("freeze", "all", "--reason", "x", code=1).stderr
    assert "error[CTL101]" in told
    assert "`lehr run`" in told
    assert "no `lehr run` is active" in workspace.lehr("why", "greeting").stdout


def test_the_state_is_found_from_a_folder_below(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    state, above = default_state(workspace.folder), workspace.folder.parent
    workspace.folder = workspace.folder / "assets"
    assert workspace.lehr("get", "assets", "-o", "name").stdout == "greeting\n"
    workspace.folder = above
    assert "error[CLI158]" in workspace.lehr("get", "assets", code=1).stderr
    assert workspace.lehr("get", "assets", "-o", "name", LEHR_STATE=str(state)).stdout == "greeting\n"


def test_a_call_that_is_wrong_ends_with_2_and_names_what_was_meant(workspace: Workspace) -> None:
    assert "Did you mean why?" in workspace.lehr("wy", code=2).stderr
    workspace.lehr("why", code=2)
    workspace.lehr("wait", "--for", "nonsense", code=2)
    workspace.lehr("freeze", "all", "--reason", "x", "--for", "soon", code=2)
    workspace.lehr("run", "--timeout", "5s", code=2)


def test_nobody_is_shown_a_traceback_who_does_not_ask_for_one(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    state = default_state(workspace.folder)
    (state / "state.sqlite").write_bytes(b"not a database" * 1000)
    for suffix in ("-wal", "-shm"):
        (state / f"state.sqlite{suffix}").unlink(missing_ok=True)
    told = workspace.lehr("why", "--all", code=1).stderr
    assert "backup" in told
    assert "Traceback" not in told
    assert "Traceback" in workspace.lehr("why", "--all", code=1, LEHR_TRACEBACK="1").stderr
    assert "FAIL  state file" in workspace.lehr("doctor", code=1).stdout


def test_a_reader_that_goes_away_hears_nothing_more(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    command = f"{sys.executable} -m lehr get decisions -o yaml; echo $? >&2"
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=workspace.folder,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=150,
        )
    finally:
        os.close(write)
    assert done.stderr == "141\n"


def _shell(workspace: Workspace, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", command], cwd=workspace.folder, capture_output=True, text=True, timeout=150, check=False
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_not_a_bug(workspace: Workspace, unbuffered: str) -> None:
    command = f"PYTHONUNBUFFERED={unbuffered} {sys.executable} -m lehr version > /dev/full"
    done = _shell(workspace, command)
    assert done.returncode == 1
    assert done.stderr.startswith("error[CLI185]"), done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_command_works_although_its_streams_are_closed(workspace: Workspace) -> None:
    assert _shell(workspace, f"{sys.executable} -m lehr run --once <&- >&-").returncode == 0
    done = _shell(workspace, f"{sys.executable} -m lehr status <&- >&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_machine_is_looked_over(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    names = {finding["name"]: finding["level"] for finding in workspace.json("doctor")}
    assert names["state file"] == names["python"] == "OK"


def test_asset_ids_are_completed_from_the_state(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    for shell in ("bash", "zsh", "fish"):
        assert "_LEHR_COMPLETE" in workspace.lehr("completion", shell).stdout
    words = {"_LEHR_COMPLETE": "bash_complete", "COMP_WORDS": "lehr why gre", "COMP_CWORD": "2"}
    assert workspace.lehr(code=0, **words).stdout == "plain,greeting\n"


@pytest.mark.parametrize("shape", ["table", "wide", "yaml", "name"])
def test_lists_come_in_every_shape(workspace: Workspace, shape: str) -> None:
    workspace.lehr("run", "--once")
    for kind in ("assets", "incarnations", "operations", "decisions"):
        done = workspace.lehr("get", kind, "-o", shape)
        assert done.stdout
        assert not done.stderr
    assert "no orphans" in workspace.lehr("get", "orphans", "-o", "table").stderr


def test_reading_imports_nothing_that_takes_long_to_import(workspace: Workspace) -> None:
    workspace.lehr("run", "--once")
    slow = (
        "structlog",
        "pygit2",
        "supervisor",
        "rich",
        "jsonschema_rs",
        "yaml",
        "lehr.plugins",
        "lehr.checks",
    )
    program = (
        "import sys; from lehr.cli.main import cli; "
        "cli.main(sys.argv[2:], standalone_mode=False); "
        "print([name for name in sys.argv[1].split() if name in sys.modules], file=sys.stderr)"
    )
    for arguments in (["--help"], ["why", "greeting"], ["why", "--all"], ["get", "assets"]):
        done = subprocess.run(
            [sys.executable, "-c", program, " ".join(slow), *arguments],
            cwd=workspace.folder,
            capture_output=True,
            text=True,
            timeout=150,
        )
        assert done.stderr == "[]\n", arguments
