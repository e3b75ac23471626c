"""`lehr why --all`: what everything waits for in the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from lehr.cli.main import cli
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.decision import Condition, Decision, Status, Verdict
from lehr.model.diff import Goal
from lehr.model.reason import Reason
from lehr.model.writes import RecordDecision
from lehr.store.sqlite import SqliteStore
from tests.integration.cli.test_rollout import SHOP, publish


def decided(id: str, condition: Condition, *verdicts: Verdict) -> RecordDecision:
    return RecordDecision(
        Decision(
            partition=Partition(SHOP),
            asset=AssetId(id),
            at=3.0,
            content=1,
            governing=1,
            goal=Goal.PRESENT,
            condition=condition,
            event="start",
            verdicts=verdicts,
        )
    )


def behind(id: str, other: str) -> RecordDecision:
    verdict = Verdict(
        "depends-on",
        allow=False,
        reason=Reason.DEPENDENCY_DIFFERS,
        message=f"{other} differs",
        wait_for=(AssetId(other),),
    )
    condition = Condition(Status.WAITING, verdict.reason, verdict.message, f"wait until {other} converges")
    return decided(id, condition, verdict)


def file(id: str) -> Asset:
    return make_asset(AssetId(id), "lehr.File", {"path": f"/srv/{id}", "content": "x"}, {})


@pytest.fixture
def state(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    store = SqliteStore(tmp_path / "state.sqlite")
    web = [f"web/{number:02}" for number in range(11)]
    jobs = [f"job/{number}" for number in range(7)]
    publish(store, tuple(map(file, ("db", "last", "new", *jobs, *web))))
    stalled = Condition(Status.STALLED, Reason.PUSH_STALLED, "disk full", "run `lehr retry db`")
    store.commit([decided("db", stalled), *(behind(id, "db") for id in web), behind("last", "web/10")])
    failed = Condition(Status.RETRYING, Reason.PUSH_FAILED, "no answer", "wait")
    store.commit([decided(id, failed) for id in jobs])
    store.close()
    return tmp_path


def said(state: Path, *options: str) -> str:
    done = CliRunner().invoke(cli, ["why", "--all", "--state", str(state), *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_assets_are_listed_by_their_root_cause(state: Path) -> None:
    lines = said(state, "--limit", "2").splitlines()
    assert "21 assets wait for 9 things:" in lines
    first = next(number for number, line in enumerate(lines) if line.startswith("● db"))
    assert lines[first] == "● db is Stalled (PushStalled): disk full"
    assert lines[first + 1].startswith("  since ")
    assert lines[first + 2 : first + 4] == [
        "  holds up   12 other assets: last and 11 more",
        "  unblock    run `lehr retry db`",
    ]


def test_assets_that_nothing_waits_for_are_listed_by_reason(state: Path) -> None:
    text = said(state, "--limit", "2")
    assert "● Retrying (PushFailed): 7 assets" in text
    assert "and 5 more; see `lehr get assets --status Retrying`" in text
    assert text.count("unblock: wait\n") == 1
    assert "● NoTurnYet: no turn yet" in text


def test_the_document_has_every_cause_once(state: Path) -> None:
    found = json.loads(said(state, "-o", "json"))
    causes = found["causes"]
    assert len(causes) == 9
    assert sum(cause["count"] for cause in causes) == found["unsettled"] == 21
    assert (causes[0]["root"], causes[0]["count"], len(causes[0]["examples"])) == ("db", 13, 5)
    assert causes[0]["since"] == "1970-01-01T00:00:03.000000Z"
