"""Metrics count as things happen, and never by asset."""

from __future__ import annotations

import re

from lehr.base.digest import Digest
from lehr.control.metrics import Gauges, Metrics
from lehr.model.asset import AssetId, AssetKey
from lehr.model.attempt import Attempt, Publication
from lehr.model.decision import Condition, Status
from lehr.model.operation import DONE, Purpose
from lehr.model.outputs import Outputs
from lehr.model.reason import Reason
from lehr.model.writes import Finish, KeepOutputs, Refused
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


def values(metrics: Metrics) -> dict[str, float]:
    """Every sample, by its name and labels."""
    lines = [line for line in metrics.text(GAUGES).splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def standing(id: str, reason: str, since: float, status: Status = Status.WAITING) -> Standing:
    return Standing(AssetId(id), Condition(status, reason), since, Digest(id))


def test_every_line_is_in_the_format_of_prometheus() -> None:
    metrics = Metrics(Hand())
    metrics.committed([decision("file/a", Status.WAITING, 'we"ird\\')], [None])
    sample = re.compile(r'[a-z_]+(\{([a-z]+="([^"\\]|\\.)*",?)+\})? [0-9.e+-]+')
    known: set[str] = set()
    for line in metrics.text(GAUGES).splitlines():
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
