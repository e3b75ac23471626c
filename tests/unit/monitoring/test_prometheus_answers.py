"""Answers of Prometheus: each that cannot be used has its cause."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.model.monitoring import Cause, MetricError, Sample
from lehr.monitoring.prometheus_answers import alerts_in, refusal_in, require_evaluated, values_in


def answer(data: Any, **more: Any) -> bytes:
    return json.dumps({"status": "success", "data": data, **more}).encode()


def vector(*series: Any) -> bytes:
    return answer({"resultType": "vector", "result": list(series)})


def series(value: Any, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": value}


def test_each_series_of_a_vector_is_a_value() -> None:
    found = values_in(vector(series([5, "0.5"], __name__="up", job="a", at="b"), series([6.5, "1e3"])))
    labels = 'at="b", job="a"'
    assert found == [Sample(0.5, f"up{{{labels}}}", 5.0, labels), Sample(1000.0, "", 6.5)]


def test_the_counters_of_a_replica_are_of_the_same_replica() -> None:
    counters = vector(series([5, "1"], __name__="up", job="a"), series([5, "2"], __name__="down", job="a"))
    assert len({sample.replica for sample in values_in(counters)}) == 1


def test_a_scalar_is_a_value() -> None:
    assert values_in(answer({"resultType": "scalar", "result": [5, "2"]})) == [Sample(2.0, "", 5.0)]


def test_a_vector_without_series_has_no_values() -> None:
    assert values_in(vector()) == []


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (b"", Cause.UNREADABLE),
        (b"<html>", Cause.UNREADABLE),
        (b"[]", Cause.UNREADABLE),
        (b"{}", Cause.REFUSED),
        (b'{"status": "success"}', Cause.UNREADABLE),
        (b'{"status": "error", "error": "too many samples"}', Cause.REFUSED),
        (answer({"resultType": "matrix", "result": []}), Cause.UNREADABLE),
        (answer({"resultType": "string", "result": [1, "0"]}), Cause.UNREADABLE),
        (answer({"resultType": "vector", "result": {}}), Cause.UNREADABLE),
        (vector(5), Cause.UNREADABLE),
        (vector({"metric": {}}), Cause.NOT_A_NUMBER),
        (vector({"metric": {}, "histogram": [5, {}]}), Cause.NOT_A_NUMBER),
        (vector(series([5])), Cause.UNREADABLE),
        (vector(series([5, "much"])), Cause.UNREADABLE),
        (vector(series(None)), Cause.UNREADABLE),
        (answer({"resultType": "vector", "result": []}, warnings=["no store\nanswered"]), Cause.NO_DATA),
    ],
)
def test_an_answer_that_cannot_be_used_has_a_cause(body: bytes, cause: Cause) -> None:
    with pytest.raises(MetricError) as raised:
        values_in(body)
    assert raised.value.cause is cause
    assert raised.value.message
    assert "\n" not in raised.value.message


def alerts(*found: Any) -> bytes:
    return answer({"alerts": list(found)})


def alert(state: str = "firing", active: Any = "2026-11-25T12:03:00Z", **labels: str) -> dict[str, Any]:
    return {"labels": labels, "state": state, "activeAt": active, "value": "1"}


def test_alerts_that_fire_and_have_the_labels_are_found() -> None:
    body = alerts(
        alert(alertname="HighErrors", severity="page"),
        alert(alertname="Slow", severity="ticket"),
        alert("pending", alertname="Pending", severity="page"),
        alert("inactive", alertname="Quiet", severity="page"),
    )
    assert alerts_in(body, [("severity", "page")]) == [Sample(True, "HighErrors", 1795608180.0)]


def test_an_alert_in_an_unknown_state_counts_as_one_that_fires() -> None:
    assert alerts_in(alerts(alert("burning", alertname="A")), [("alertname", "A")])


def test_an_alert_without_a_readable_time_still_fires() -> None:
    assert alerts_in(alerts(alert(active=None, alertname="A")), [("alertname", "A")]) == [Sample(True, "A")]


@pytest.mark.parametrize(
    "body", [answer({}), answer({"alerts": {}}), alerts(5), alerts({}), alerts({"labels": {}})]
)
def test_a_list_of_alerts_that_cannot_be_read_is_not_an_empty_one(body: bytes) -> None:
    with pytest.raises(MetricError) as raised:
        alerts_in(body, [("alertname", "A")])
    assert raised.value.cause is Cause.UNREADABLE


NOW = 1795608180.0


def rules(*found: Any) -> bytes:
    return answer({"groups": [{"name": "a", "interval": 150, "rules": list(found)}]})


def rule(
    name: str = "A", health: str = "ok", at: Any = "2026-11-25T12:03:00Z", **labels: str
) -> dict[str, Any]:
    return {"type": "alerting", "name": name, "health": health, "lastEvaluation": at, "labels": labels}


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        (rules(rule("A"), rule("B", "err")), {"alertname": "A"}),
        (rules(rule(severity="page"), rule(severity="ticket", health="err")), {"severity": "page"}),
        (rules(rule("A")), {"instance": "that its series have"}),
        (rules({"type": "recording", "name": "r", "health": "err"}, rule("A")), {"alertname": "A"}),
        (rules(rule("A", at=None)), {"alertname": "A"}),
        (rules(rule("A", at="2026-11-25T12:00:00Z")), {"alertname": "A"}),
    ],
)
def test_quiet_alerts_are_good_if_their_rules_are_evaluated(body: bytes, labels: dict[str, str]) -> None:
    require_evaluated(body, labels.items(), 120.0, NOW + 60)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (rules(), Cause.NO_DATA),
        (rules(rule("B")), Cause.NO_DATA),
        (rules(rule("A", "err")), Cause.NO_DATA),
        (rules(rule("A", "unknown")), Cause.NO_DATA),
        (rules(rule("A"), rule("A", "err")), Cause.NO_DATA),
        (rules(rule("A", at="2026-11-25T11:03:00Z")), Cause.STALE),
        (rules(rule("A", at="0001-01-01T00:00:00Z")), Cause.STALE),
        (rules(5), Cause.UNREADABLE),
        (answer({}), Cause.UNREADABLE),
        (b"", Cause.UNREADABLE),
    ],
)
def test_an_alert_without_a_rule_that_is_evaluated_is_not_quiet(body: bytes, cause: Cause) -> None:
    with pytest.raises(MetricError) as raised:
        require_evaluated(body, [("alertname", "A")], 120.0, NOW + 60)
    assert raised.value.cause is cause


def test_what_prometheus_says_about_a_bad_query_is_shown() -> None:
    assert refusal_in(b'{"status":"error","error":"parse error"}') == "Prometheus answered: parse error"
    assert refusal_in(b"not found") == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["status", "data", "resultType", "result", "metric", "value", "alerts", "labels"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_document_breaks_it(document: Any) -> None:
    for read in (values_in, lambda body: alerts_in(body, [("a", "b")])):
        for body in (json.dumps(document).encode(), answer(document)):
            with contextlib.suppress(MetricError):
                read(body)
