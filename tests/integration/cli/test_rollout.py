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
from lehr.control.messages import AnyRequest, CommandResult, CommandRollout, ReleaseToIntent
from lehr.control.socket import SOCKET, listening
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import Goal
from lehr.model.evidence import (
    Begun,
    Commanded,
    Ended,
    Evidence,
    Expected,
    Fact,
    ForecastMade,
    Looked,
    Moments,
    RolloutCommand,
    RolloutEnd,
    UnitLook,
    Updated,
    Validated,
)
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.incarnation import Candidate
from lehr.model.reason import Reason
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.writes import Publish, RecordDecision, WriteReleases
from lehr.store.sqlite import SqliteStore
from lehr.strategist.contents import Contents
from lehr.wiring import registry_of
from tests.codes import raises

SHOP = Partition("shop")
WAVES = AssetId("waves")
FILES = ("a", "b", "c")


def content(version: int, order: str = "") -> tuple[Asset, ...]:
    files = (
        make_asset(AssetId(id), "lehr.File", {"path": f"/srv/{id}", "content": f"{version}\n"}, {})
        for id in FILES
    )
    selection = {"waves": [{"units": 1, "soak_seconds": 60.0}, {}], "order": order}
    payload = {"select": {"types": ["lehr.File"]}, "target_selection": selection}
    return (*files, make_asset(WAVES, ROLLOUT_POLICY, payload, {}))


def facts(store: SqliteStore) -> WriteReleases:
    """All have the content of 1, and a that of 2, in a rollout."""
    contents = Contents(store, registry_of(store, SHOP), SHOP)
    newest = store.intent.newest(SHOP)
    assert newest is not None

    def release(id: str, target: int) -> Release:
        content = contents.at(AssetId(id), target)
        assert content is not None
        return Release(
            id=f"{target}-{id}",
            partition=SHOP,
            asset=AssetId(id),
            target=target,
            kind=ReleaseKind.FORWARD,
            basis=ReleaseBasis(newest.governance),
            at=float(target),
            content_key=content.key,
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


def publish(store: SqliteStore, assets: tuple[Asset, ...], removed: tuple[AssetId, ...] = ()) -> None:
    newest = store.intent.newest(SHOP)
    sequence = 0 if newest is None else newest.sequence
    candidate = Candidate(SHOP, sequence, (), Digest(f"g{sequence}"), assets, removed)
    store.commit([Publish(candidate, {}, (), float(sequence + 1))])


@pytest.fixture
def state(tmp_path: Path) -> Path:
    store = SqliteStore(tmp_path / "state.sqlite")
    for sequence in (1, 2):
        publish(store, content(sequence))
    waiting = Decision(
        partition=SHOP,
        asset=AssetId("b"),
        at=2.0,
        content=1,
        governing=2,
        goal=Goal.PRESENT,
        condition=Condition(Status.CONVERGED, Reason.AWAITING_RELEASE, "as in incarnation 1"),
        event="start",
    )
    [refused, _decision] = store.commit([facts(store), RecordDecision(waiting)])
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
    with raises("ROL137", match="waves"):
        run("rollout", "history", "wave", "--state", state)


def test_policies_are_completed(state: Path) -> None:
    call = {"COMP_WORDS": f"lehr rollout show --state {state} w", "COMP_CWORD": "5"}
    done = CliRunner().invoke(
        cli, prog_name="lehr", env={**call, "_LEHR_COMPLETE": "bash_complete"}, catch_exceptions=False
    )
    assert "waves" in done.output


@pytest.mark.parametrize("action", [*RolloutCommand, "release"])
def test_a_command_reaches_the_program(state: Path, action: str) -> None:
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
    expected = (
        ReleaseToIntent(selector="waves", reason="as tested")
        if action == "release"
        else CommandRollout(action=RolloutCommand(action), policy="waves", reason="as tested")
    )
    assert sent == [expected]


def test_a_command_needs_a_reason_except_resume(state: Path) -> None:
    assert run("rollout", "promote", "--state", state).exit_code == 2


def fact(state: Path, fact: Fact) -> None:
    """Add a fact to the evidence."""
    store = SqliteStore(state / "state.sqlite")
    newest = store.intent.newest(SHOP)
    assert newest is not None
    version, _released = store.records.released(SHOP)
    item = Evidence(partition=SHOP, policy=WAVES, rollout="r1", at=SystemClock().now(), fact=fact)
    [refused] = store.commit([WriteReleases(SHOP, version, newest.governance, 1.0, evidence=(item,))])
    assert refused is None
    store.close()


def test_why_names_the_rollout_the_wave_and_the_next_command(state: Path) -> None:
    text = run("why", "b", "--state", state).stdout
    assert "rollout of waves to shop@2, wave 1 of 2" in text
    assert "lehr rollout show waves" in text
    found = document("why", "b", "--state", state)["release"]
    assert (found["rollout"]["state"], found["rollout"]["wave"]) == ("running", 1)
    assert (found["unit"]["id"], found["unit"]["state"]) == ("b", "waiting")
    assert found["release"]["target"] == 1


def test_why_of_another_status_has_no_release(state: Path) -> None:
    assert document("why", "a", "--state", state)["release"] is None


def test_why_names_the_person_who_paused_it(state: Path) -> None:
    fact(state, Commanded(RolloutCommand.PAUSE, "ana", "lunch"))
    text = run("why", "b", "--state", state).stdout
    assert "paused by ana: lunch" in text
    assert "lehr rollout resume waves" in text


def test_why_of_quarantined_content_names_the_failure_and_the_retry(state: Path) -> None:
    store = SqliteStore(state / "state.sqlite")
    contents = Contents(store, registry_of(store, SHOP), SHOP)
    found = {AssetId(id): contents.at(AssetId(id), 2) for id in FILES}
    store.close()
    fact(
        state,
        Ended(
            RolloutEnd.FAILED,
            "a: it is broken",
            {id: content.key for id, content in found.items() if content is not None},
        ),
    )
    text = run("why", "b", "--state", state).stdout
    assert "it is broken" in text
    assert "lehr rollout retry waves" in text
    assert "it is broken" in run("rollout", "show", "--state", state).stdout


def test_why_without_a_policy_names_the_command_that_lets_it_follow_intent(state: Path) -> None:
    store = SqliteStore(state / "state.sqlite")
    publish(store, content(3)[:-1], (WAVES,))
    store.close()
    assert "lehr rollout release b --reason" in run("why", "b", "--state", state).stdout
    assert document("why", "b", "--state", state)["release"]["rollout"] is None
    with raises("ROL130"):
        run("rollout", "show", "--state", state)
    assert run("rollout", "list", "--state", state).stderr == "no rollout policies\n"


def test_status_shows_rollouts_that_are_under_way(state: Path) -> None:
    assert "lehr rollout show waves" in run("status", "--state", state).stdout
    [found] = document("status", "--state", state)["rollouts"]
    assert (found["policy"], found["state"], found["wave"]) == ("waves", "running", 1)
    fact(state, Ended(RolloutEnd.COMPLETED))
    assert "lehr rollout show" not in run("status", "--state", state).stdout


def test_an_order_without_an_answer_is_a_hold_and_no_error(state: Path) -> None:
    store = SqliteStore(state / "state.sqlite")
    publish(store, content(2, order="labels.nothing")[-1:])
    store.close()
    [found] = document("status", "--state", state)["rollouts"]
    assert found["state"] == "holding"
    assert "labels.nothing" in found["waits_for"]
    assert "target_selection" in run("rollout", "show", "--state", state).stdout


def test_a_forecast_without_samples_is_unknown_and_says_why(state: Path) -> None:
    text = run("rollout", "forecast", "--state", state).stdout
    assert text.startswith("the rollout of waves to shop@2, which began at ")
    assert "unknown: no push was recorded of lehr.File; no validation was recorded" in text
    found = document("rollout", "forecast", "--state", state)
    assert (found["policy"], found["rollout"], found["target"]) == ("waves", "r1", 2)
    assert found["forecast"]["ends"] == {"early": None, "late": None}
    assert [unit["id"] for unit in found["forecast"]["units"]] == ["a", "b", "c"]


def test_a_forecast_of_what_is_paused_names_the_person(state: Path) -> None:
    fact(state, Commanded(RolloutCommand.PAUSE, "ana", "lunch"))
    _one, rest = document("rollout", "forecast", "--state", state)["forecast"]["waves"]
    assert rest["starts"] == {"early": None, "late": None}
    assert rest["unknown"] == "a person: paused by ana: lunch"


def test_a_forecast_at_rest_is_of_what_would_begin_or_of_every_unit(state: Path) -> None:
    fact(state, Ended(RolloutEnd.COMPLETED))
    found = document("rollout", "forecast", "waves", "--state", state)
    assert (found["rollout"], found["begun_at"], found["every_unit"]) == ("", None, False)
    assert [unit["id"] for unit in found["forecast"]["units"]] == ["b", "c"]
    text = run("rollout", "forecast", "--every-unit", "--state", state).stdout
    assert text.startswith("if every unit of waves had new content:")
    assert [line.split()[0] for line in text.splitlines() if "updated: " in line] == ["a", "b", "c"]
    store = SqliteStore(state / "state.sqlite")
    publish(store, content(1)[1:3])
    store.close()
    with raises("ROL135", match="every-unit"):
        run("rollout", "forecast", "--state", state)


def test_what_cannot_be_forecast_is_an_error(state: Path) -> None:
    with raises("ROL131"):
        run("rollout", "forecast", "wave", "--state", state)
    store = SqliteStore(state / "state.sqlite")
    publish(store, content(2, order="labels.nothing")[-1:])
    with raises("ROL136", match="labels.nothing"):
        run("rollout", "forecast", "--state", state)
    payload = {"select": {"types": ["lehr.File"]}, "selected_by": {"service": "by-region"}}
    publish(store, (make_asset(WAVES, ROLLOUT_POLICY, payload, {}),))
    store.close()
    with raises("ROL134", match="by-region"):
        run("rollout", "forecast", "--state", state)


def test_a_freeze_in_intent_is_part_of_a_forecast(state: Path) -> None:
    store = SqliteStore(state / "state.sqlite")
    freeze = {"select": {"types": ["lehr.File"]}, "reason": "fair"}
    publish(store, (make_asset(AssetId("fair"), "lehr.Freeze", freeze, {}),))
    store.close()
    _one, rest = document("rollout", "forecast", "--state", state)["forecast"]["waves"]
    assert rest["unknown"].startswith(
        "closed for longer than 14 days: fair; no push was recorded of lehr.File"
    )


def test_show_has_what_happened_next_to_what_was_expected(state: Path) -> None:
    assert document("rollout", "show", "--state", state)["forecast"] is None
    now = SystemClock().now()
    soon, later = Moments(now + 60, now + 90), Moments(now + 70)
    waves = (Expected(1, 1, soon, soon), Expected(2, 2, later, later))
    units = {
        "a": Expected(1, 1, soon, soon),
        "b": Expected(2, 1, later, later),
        "c": Expected(2, 1, later, later),
    }
    fact(state, ForecastMade(later, waves, units, "no validation was recorded"))
    found = document("rollout", "show", "--state", state)["forecast"]
    assert [(row["wave"], row["unit"]) for row in found["rows"]] == [
        (1, ""),
        (1, "a"),
        (2, ""),
        (2, "b"),
        (2, "c"),
    ]
    assert found["rows"][1]["validated"] is not None
    assert found["rows"][3]["validated"] is None
    text = run("rollout", "show", "--state", state).stdout
    assert "wave 2 (2 units)" in text
    assert "unknown: no validation was recorded" in text
    assert "is expected to end at" in run("rollout", "history", "--state", state).stdout
    fact(state, Ended(RolloutEnd.COMPLETED))
    [past] = document("rollout", "show", "--state", state)["past"]
    assert past["expected_end"]["late"] is None
    assert " early" in run("rollout", "show", "--state", state).stdout
