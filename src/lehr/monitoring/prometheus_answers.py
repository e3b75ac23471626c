"""Answers of the HTTP API of Prometheus, as values. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from lehr.base.moments import seconds_of
from lehr.model.monitoring import Cause, MetricError, Sample

_LONGEST = 200


def values_in(body: bytes) -> list[Sample]:
    """The values of an answer of `/api/v1/query`, one for each series.

    Raises:
        MetricError: it has none that can be used.
    """
    data = _data_in(body)
    kind, result = data.get("resultType"), data.get("result")
    if kind == "scalar":
        return [_sample({}, result)]
    if kind != "vector" or not isinstance(result, list):
        raise MetricError(
            Cause.UNREADABLE, f"the answer is a {kind}: use a query that answers with an instant vector"
        )
    return [_of_series(series) for series in result]


def alerts_in(body: bytes, labels: Iterable[tuple[str, str]]) -> list[Sample]:
    """The alerts that fire and have these labels, of an answer of `/api/v1/alerts`.

    Raises:
        MetricError: it cannot be read.
    """
    alerts = _data_in(body).get("alerts")
    if not isinstance(alerts, list):
        raise MetricError(Cause.UNREADABLE, "the answer has no list of alerts")
    return list(_firing(alerts, dict(labels)))


def _firing(alerts: list[Any], wanted: dict[str, str]) -> Iterator[Sample]:
    for alert in alerts:
        labels = alert.get("labels") if isinstance(alert, dict) else None
        if not isinstance(labels, dict) or not isinstance(alert.get("state"), str):
            raise MetricError(Cause.UNREADABLE, "an alert has no labels or no state")
        # An alert in another state than these two must not be taken for one that is quiet.
        if alert["state"] in ("pending", "inactive"):
            continue
        if all(labels.get(name) == value for name, value in wanted.items()):
            yield Sample(True, str(labels.get("alertname", "without a name")), _since(alert.get("activeAt")))


def require_evaluated(body: bytes, labels: Iterable[tuple[str, str]], fresh: float, now: float) -> None:
    """Check that alerts with these labels would fire, from an answer of `/api/v1/rules`.

    An alert whose rule does not exist, or cannot be evaluated, is never in the list of those that fire.

    Args:
        fresh: seconds for which an evaluation counts, after the interval of its group.
        now: wall-clock seconds.

    Raises:
        MetricError: no rule can have such an alert, or one is not evaluated.
    """
    wanted = dict(labels)
    rules = [rule for rule in _alerting_rules(_data_in(body)) if _may_fire(rule, wanted)]
    if not rules:
        raise MetricError(Cause.NO_DATA, f"no alerting rule has the labels {_line(wanted)}")
    for rule in rules:
        if rule.get("health") != "ok":
            raise MetricError(Cause.NO_DATA, f"the rule of alert {rule['name']} is not evaluated")
        at = _since(rule.get("lastEvaluation"))
        if at is not None and at < now - fresh - rule["every"]:
            raise MetricError(Cause.STALE, f"the rule of alert {rule['name']} was not evaluated lately")


def _alerting_rules(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    try:
        for group in data["groups"]:
            for rule in group["rules"]:
                if rule["type"] == "alerting":
                    labels, every = dict(rule.get("labels") or {}), float(group.get("interval") or 0)
                    yield {**rule, "name": str(rule["name"]), "labels": labels, "every": every}
    except (KeyError, TypeError, ValueError):
        raise MetricError(Cause.UNREADABLE, "the answer has no list of alerting rules") from None


def _may_fire(rule: dict[str, Any], wanted: dict[str, str]) -> bool:
    """Whether an alert of this rule may have the labels. It has more of them than its rule."""
    labels = {**rule["labels"], "alertname": rule["name"]}
    return all(labels.get(name, value) == value for name, value in wanted.items())


def _since(text: Any) -> float | None:
    try:
        return seconds_of(text)
    except (TypeError, ValueError):
        return None


def _data_in(body: bytes) -> dict[str, Any]:
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError:
        raise MetricError(Cause.UNREADABLE, "the answer is not JSON") from None
    if not isinstance(answer, dict):
        raise MetricError(Cause.UNREADABLE, "the answer is not that of a Prometheus")
    if answer.get("status") != "success":
        raise MetricError(Cause.REFUSED, f"Prometheus answered: {_line(answer.get('error', 'no success'))}")
    if answer.get("warnings"):
        raise MetricError(Cause.NO_DATA, f"the answer is incomplete: {_line(answer['warnings'])}")
    data = answer.get("data")
    if not isinstance(data, dict):
        raise MetricError(Cause.UNREADABLE, "the answer is not that of a Prometheus")
    return data


def refusal_in(body: bytes) -> str:
    """The error that Prometheus gives for a request that it refuses; empty if that cannot be read."""
    try:
        _data_in(body)
    except MetricError as error:
        return error.message if error.cause is Cause.REFUSED else ""
    return ""


def _of_series(series: Any) -> Sample:
    if not isinstance(series, dict) or not isinstance(series.get("metric"), dict):
        raise MetricError(Cause.UNREADABLE, "a series of the answer has no labels")
    if "value" not in series:
        raise MetricError(
            Cause.NOT_A_NUMBER, "the value is a histogram: use a query such as histogram_quantile"
        )
    return _sample(series["metric"], series["value"])


def _sample(labels: dict[str, Any], pair: Any) -> Sample:
    try:
        at, text = pair
        return Sample(float(text), _name(labels), float(at), _labels(labels))
    except (TypeError, ValueError):
        raise MetricError(Cause.UNREADABLE, "a value of the answer is not a time and a number") from None


def _name(labels: dict[str, Any]) -> str:
    name = str(labels.get("__name__", ""))
    pairs = _labels(labels)
    return _line(f"{name}{{{pairs}}}" if pairs else name)


def _labels(labels: dict[str, Any]) -> str:
    return ", ".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__")


def _line(text: Any) -> str:
    joined = "; ".join(map(str, text)) if isinstance(text, list) else str(text)
    return " ".join(joined.split())[:_LONGEST]
