"""`lehr rollout`: what people see of a rollout, and the commands that they give."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from lehr.base.clock import SystemClock
from lehr.base.digest import Digest
from lehr.cli.main import cli
from lehr.control.messages import AnyRequest, CommandResult, CommandRollout
from lehr.control.socket import SOCKET, listening
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.evidence import Begun, Evidence, Looked, RolloutCommand, UnitLook, Updated, Validated
from lehr.model.incarnation import Candidate
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.writes import Publish, WriteReleases
from lehr.rollouts.policy import ROLLOUT_POLICY
from lehr.store.sqlite import SqliteStore
from lehr.strategist.roster import Contents
from lehr.wiring import registry_of
from tests.codes import raises

SHOP = Partition("shop")
WAVES = AssetId("waves")
FILES = ("a", "b", "c")


def content(version: int) -> tuple[Asset, ...]:
    files = (
        make_asset(AssetId(id), "lehr.File", {"path": f"/srv/{id}", "content": f"{version}\n"}, {})
        for id in FILES
    )
    selection = {"waves": [{"units": 1, "soak_seconds": 60.0}, {}]}
    payload = {"select": {"types": ["lehr.File"]}, "target_selection": selection}
    return (*files, make_asset(WAVES, ROLLOUT_POLICY, payload, {}))


def facts(store: SqliteStore) -> WriteReleases:
    """All have the content of 1, and a that of 2, in a rollout."""
    contents = Contents(store, registry_of(store, SHOP), SHOP)
    newest = store.intent.newest(SHOP)
    assert newest is not None

    def release(id: str, target: int) -> Release:
        key = contents.key_at(AssetId(id), target)
        assert key is not None
        return Release(
            id=f"{target}-{id}",
            partition=SHOP,
            asset=AssetId(id),
            target=target,
            kind=ReleaseKind.FORWARD,
            basis=ReleaseBasis(newest.governance),
            at=float(target),
            content_key=key,
        )

    now = SystemClock().now()  # much later, the unit would be past its deadline
    evidence = tuple(
        Evidence(partition=SHOP, policy=WAVES, rollout="r1", at=now, fact=fact)
        for fact in (
            Begun(2),
            Updated(("a",), {AssetId("a"): 1}),
            Looked({"a": UnitLook(True, 20.0, 25.0)}),
            Validated(("a",)),
        )
    )
    releases = (*(release(id, 1) for id in FILES), release("a", 2))
    return WriteReleases(SHOP, 0, newest.governance, now, releases, (), evidence)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path / "state.sqlite")
    for sequence in (1, 2):
        candidate = Candidate(SHOP, sequence - 1, (), Digest("g"), content(sequence), ())
        store.commit([Publish(candidate, {}, (), float(sequence))])
    [refused] = store.commit([facts(store)])
    assert refused is None
    store.close()
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(item) for item in arguments], catch_exceptions=False)


def document(*arguments: object) -> Any:
    done = run(*arguments, "-o", "json")
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout)


def test_show_has_every_unit_and_what_it_waits_for(state: Path) -> None:
    found = document("rollout", "show", "--state", state)
    assert (found["policy"], found["target"], found["wave"], found["waves"]) == ("waves", 2, 1, 2)
    assert [unit["id"] for unit in found["units"]] == ["a", "b", "c"]
    assert found["commit"] is None
    text = run("rollout", "show", "waves", "--state", state).stdout
    assert "wave 1 of 2: 1 of 3 updated" in text
    assert "no `lehr run` is active" in text


def test_list_has_a_row_for_each_policy(state: Path) -> None:
    [row] = document("rollout", "list", "--state", state)
    assert (row["policy"], row["state"]) == ("waves", "running")
    assert "1 of 3 updated" in run("rollout", "list", "--state", state).stdout
    assert run("rollout", "list", "--state", state, "-o", "name").stdout == "waves\n"


def test_history_is_newest_first_and_without_looks(state: Path) -> None:
    found = document("rollout", "history", "--state", state)
    assert [item["fact"]["fact"] for item in found] == ["validated", "updated", "begun"]
    assert document("rollout", "history", "waves", "--limit", 1, "--state", state) == found[:1]


def test_an_unknown_policy_is_refused_with_those_that_are_known(state: Path) -> None:
    with raises("ROL131", match="waves"):
        run("rollout", "show", "wave", "--state", state)
    with raises("CLI188", match="waves"):
        run("rollout", "history", "wave", "--state", state)


def test_policies_are_completed(state: Path) -> None:
    call = {"COMP_WORDS": f"lehr rollout show --state {state} w", "COMP_CWORD": "5"}
    done = CliRunner().invoke(
        cli, prog_name="lehr", env={**call, "_LEHR_COMPLETE": "bash_complete"}, catch_exceptions=False
    )
    assert "waves" in done.output


@pytest.mark.parametrize("action", RolloutCommand)
def test_a_command_reaches_the_program(state: Path, action: RolloutCommand) -> None:
    sent: list[AnyRequest] = []

    def answer_one() -> None:
        connection, _address = server.accept()
        with connection, connection.makefile("rwb") as channel:
            sent.append(msgspec.json.decode(channel.readline(), type=AnyRequest))
            channel.write(msgspec.json.encode(CommandResult(True, "done")) + b"\n")

    with listening(state / SOCKET) as server:
        server.settimeout(10)
        answering = threading.Thread(target=answer_one)
        answering.start()
        done = run("rollout", action, "waves", "--reason", "as tested", "--state", state)
        answering.join(10)
    assert done.stdout == "done\n"
    assert sent == [CommandRollout(action=action, policy="waves", reason="as tested")]


def test_a_command_needs_a_reason_except_resume(state: Path) -> None:
    assert run("rollout", "promote", "--state", state).exit_code == 2
