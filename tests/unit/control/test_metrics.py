"""Metrics count as things happen, and never by asset."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from lehr.base.digest import Digest
from lehr.control.metrics import Gauges, Metrics
from lehr.model.asset import AssetId, AssetKey
from lehr.model.attempt import Attempt, Publication
from lehr.model.decision import Condition, Status
from lehr.model.evidence import Begun, Ended, Evidence, RolloutEnd
from lehr.model.operation import DONE, Purpose
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.writes import Finish, KeepOutputs, Refused, WriteReleases
from lehr.rollouts.figures import RolloutFigures, RolloutState
from lehr.sdk.store import Standing
from tests.unit.control.test_activity_log import SHOP, Hand, admission, decision

GAUGES = Gauges(
    partition='sh"op',
    assets=10,
    unsettled=2,
    queued={"FilePlugin": 3},
    epoch=4,
    enforcing=True,
    ready=True,
    source_looked_at=None,
)
SETTLED = Status.CONVERGED


UNITS = ("waiting", "updated", "validated", "failed")


def values(metrics: Metrics, gauges: Gauges = GAUGES) -> dict[str, float]:
    """Every sample, by its name and labels."""
    lines = [line for line in metrics.text(gauges).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def standing(id: str, reason: str, since: float, status: Status = Status.WAITING) -> Standing:
    return Standing(AssetId(id), Condition(status, reason), since, Digest(id))


def test_every_line_is_in_the_format_of_prometheus() -> None:
    metrics = Metrics(Hand())
    metrics.committed([decision("file/a", Status.WAITING, 'we"ird\\')], [None])
    sample = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\]|\\.)*",?)+\})? [0-9.e+-]+')
    known: set[str] = set()
    gauges = replace(GAUGES, rollouts=(rollout('we"b\\', begun_at=1.0, waiting=1),))
    for line in metrics.text(gauges).splitlines():
        if line.startswith("# TYPE "):
            known.add(line.split()[2])
            assert line.split()[3] in ("counter", "gauge", "histogram")
        elif not line.startswith("#"):
            assert sample.fullmatch(line), line
            name = re.split(r"[ {]", line)[0]
            assert {name, re.sub("_(bucket|sum|count)$", "", name)} & known, line
    assert "file/a" not in metrics.text(GAUGES)


def test_blocked_assets_are_counted_by_reason_and_leave_when_they_settle() -> None:
    metrics = Metrics(Hand())
    metrics.committed(
        [decision("a", Status.WAITING, "Frozen"), decision("b", Status.WAITING, "Frozen")], [None] * 2
    )
    assert values(metrics)['lehr_assets_blocked{status="Waiting",reason="Frozen"}'] == 2
    metrics.committed(
        [decision("a", Status.RETRYING), decision("b", SETTLED, Reason.AS_INTENDED)], [None] * 2
    )
    found = values(metrics)
    assert found['lehr_assets_blocked{status="Retrying",reason="PushFailed"}'] == 1
    assert not any("Frozen" in name for name in found)


def test_the_oldest_unsettled_asset_keeps_its_age_when_its_reason_changes() -> None:
    metrics, clock = Metrics(hand := Hand()), hand
    metrics.begin()
    metrics.recovered([standing("b", "Frozen", 999_940.0), standing("a", "Frozen", 999_900.0)], [])
    assert values(metrics)["lehr_oldest_unsettled_seconds"] == 100.0
    metrics.committed([decision("a", Status.RETRYING)], [None])
    assert values(metrics)["lehr_oldest_unsettled_seconds"] == 100.0
    metrics.committed([decision("a", SETTLED, Reason.AS_INTENDED)], [None])
    clock.seconds += 1
    assert values(metrics)["lehr_oldest_unsettled_seconds"] == 61.0


def test_what_was_decided_while_the_store_was_read_counts_and_not_what_was_read() -> None:
    metrics = Metrics(Hand())
    metrics.begin()
    metrics.committed(
        [decision("a", SETTLED, Reason.AS_INTENDED), decision("b", Status.RETRYING)], [None] * 2
    )
    metrics.recovered([standing(id, "Frozen", 5.0) for id in ("a", "b", "c")], [])
    found = values(metrics)
    assert found['lehr_assets_blocked{status="Waiting",reason="Frozen"}'] == 1
    assert found['lehr_assets_blocked{status="Retrying",reason="PushFailed"}'] == 1


def test_pushes_are_counted_by_purpose_and_timed_by_result() -> None:
    metrics, clock = Metrics(hand := Hand()), hand
    metrics.committed([admission("file/a", Purpose.REPAIR), admission("file/b")], [None, Refused("Full", "")])
    assert values(metrics)["lehr_pushes_open"] == 1
    clock.seconds += 2
    metrics.committed([Finish(SHOP, "file/a-0", DONE, clock.seconds)], [None])
    found = values(metrics)
    assert found["lehr_pushes_open"] == 0
    assert found['lehr_pushes_started_total{purpose="repair"}'] == 1
    assert found['lehr_push_seconds_sum{result="done"}'] == 2.0
    assert found['lehr_push_seconds_bucket{result="done",le="1.0"}'] == 0
    assert found['lehr_push_seconds_bucket{result="done",le="5.0"}'] == 1


def test_turns_and_publications_are_counted() -> None:
    metrics = Metrics(Hand())
    metrics.turned(AssetKey(SHOP, AssetId("a")), "start", 0.002)
    metrics.attempted(
        Attempt(partition=SHOP, at=1.0, publication=Publication.REFUSED, sources=(), sequence=0)
    )
    found = values(metrics)
    assert found["lehr_turn_seconds_count"] == 1
    assert found['lehr_publications_total{result="refused"}'] == 1
    assert found['lehr_turns_queued{plugin="FilePlugin"}'] == 3


def test_the_size_is_bounded_whatever_reasons_checks_make_up() -> None:
    metrics = Metrics(Hand())
    writes = [decision(f"a{number}", Status.WAITING, f"Reason{number}") for number in range(5_000)]
    metrics.committed(writes, [None] * len(writes))
    assert len(metrics.text(GAUGES)) < 64_000


def test_restarts_are_counted_by_type() -> None:
    metrics = Metrics(Hand())
    metrics.begin()
    metrics.recovered([], [])
    outputs = Outputs(SHOP, AssetId("web"), "lehr.Process", {"restarts": 3}, 0.0)
    metrics.committed([KeepOutputs(outputs)], [None])
    assert values(metrics)['lehr_restarts_total{type="lehr.Process"}'] == 3


def rollout(policy: str, state: RolloutState = RolloutState.RUNNING, **units: Any) -> RolloutFigures:
    return RolloutFigures(policy=AssetId(policy), state=state, **units)


def test_rollouts_are_counted_by_policy_and_state() -> None:
    under_way = rollout("web", begun_at=40.0, waiting=5, updated=2, validated=3, failed=1)
    gauges = replace(GAUGES, rollouts=(under_way, rollout("db", RolloutState.BLOCKED)))
    clock = Hand()
    found = values(Metrics(clock), gauges)
    assert found['lehr_rollout_state{policy="web",state="running"}'] == 1
    assert found['lehr_rollout_state{policy="db",state="blocked"}'] == 1
    units = {name: found[f'lehr_rollout_units{{policy="web",state="{name}"}}'] for name in UNITS}
    assert units == {"waiting": 5, "updated": 2, "validated": 3, "failed": 1}
    assert found['lehr_rollout_seconds{policy="web"}'] == clock.now() - 40.0
    assert not any("db" in name for name in found if "units" in name or "seconds" in name)


def test_further_policies_are_added_up() -> None:
    many = tuple(rollout(f"policy-{number:04}", begun_at=float(number), waiting=1) for number in range(2_000))
    found = values(Metrics(Hand()), replace(GAUGES, rollouts=many))
    assert found['lehr_rollout_state{policy="Other",state="running"}'] == 1_900
    assert found['lehr_rollout_units{policy="Other",state="waiting"}'] == 1_900
    assert found['lehr_rollout_seconds{policy="Other"}'] == max(
        Hand().now() - number for number in range(100, 2_000)
    )
    assert len(Metrics(Hand()).text(replace(GAUGES, rollouts=many))) < 64_000


def test_rollouts_that_end_are_counted_by_how() -> None:
    metrics = Metrics(Hand())
    facts = (Begun(2), Ended(RolloutEnd.FAILED), Ended(RolloutEnd.COMPLETED), Ended(RolloutEnd.FAILED))
    evidence = tuple(
        Evidence(partition=SHOP, policy=AssetId("web"), rollout="r", at=1.0, fact=fact) for fact in facts
    )
    write = WriteReleases(SHOP, 0, Digest("g"), 1.0, evidence=evidence)
    metrics.committed([write, write], [None, Refused(Reason.OVERTAKEN, "later")])
    found = values(metrics)
    assert found['lehr_rollouts_ended_total{how="failed"}'] == 2
    assert found['lehr_rollouts_ended_total{how="completed"}'] == 1
    assert found['lehr_rollouts_ended_total{how="rolled-back"}'] == 0
