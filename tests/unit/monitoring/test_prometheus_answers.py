"""Answers of Prometheus: each that cannot be used has its cause."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.model.monitoring import Cause, MetricError, Sample
from lehr.monitoring.prometheus_answers import alerts_in, refusal_in, values_in


def answer(data: Any, **more: Any) -> bytes:
    return json.dumps({"status": "success", "data": data, **more}).encode()


def vector(*series: Any) -> bytes:
    return answer({"resultType": "vector", "result": list(series)})


def series(value: Any, **labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": value}


def test_each_series_of_a_vector_is_a_value() -> None:
    found = values_in(vector(series([5, "0.5"], __name__="up", job="a", at="b"), series([6.5, "1e3"])))
    assert found == [Sample(0.5, 'up{at="b", job="a"}', 5.0), Sample(1000.0, "", 6.5)]


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
