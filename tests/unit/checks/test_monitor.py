"""The monitor check: what its configuration means, and what it says."""

import asyncio
from typing import Any

import msgspec
import pytest

from lehr.checks import TYPES
from lehr.checks.monitor import Monitor, MonitorCheck
from lehr.model.addons import ADDONS
from lehr.model.asset import AssetId, make_asset
from lehr.model.decision import Verdict
from lehr.model.monitoring import Cause, MetricError, MetricHistory, Question, Sample, after, reading_of
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.model.types import Registry
from lehr.testing.checks import FixedCheckReader, check_request
from lehr.testing.virtual import EPOCH

REGISTRY = Registry(TYPES, ADDONS)
ERRORS = {"select": {"ids": ["web/*"]}, "source": "prometheus", "query": "errors", "at_most": 0.05}
PAGES = {"select": {"ids": ["web/*"]}, "source": "prometheus", "alerts": {"severity": "page"}}


def monitor(**fields: Any) -> Monitor:
    return msgspec.convert(ERRORS | fields, Monitor)


def history(question: Question, *found: Any) -> MetricHistory:
    result = None
    for answer in found:
        result = after(result, reading_of(question, answer, EPOCH))
    assert result is not None
    return result


def ask(payload: dict[str, Any], *found: Any, purpose: Purpose = Purpose.FORWARD) -> Verdict:
    value = msgspec.convert(payload, Monitor)
    question = value.question()
    histories = {question: history(question, *found)} if found else {}
    asset = make_asset(AssetId("monitors/a"), "lehr.Monitor", value, {})
    reader = FixedCheckReader(REGISTRY, governing=[asset], histories=histories)
    request = check_request(make_asset(AssetId("web/a"), "lehr.File", None, {}))
    request = msgspec.structs.replace(request, purpose=purpose)
    [verdict] = asyncio.run(MonitorCheck().check(request, reader))
    return verdict


FIRING = [Sample(True, "HighErrors", EPOCH - 120)]
DOWN = MetricError(Cause.REFUSED, "it answered with status 503")


def test_a_good_answer_allows_and_is_recorded() -> None:
    verdict = ask(ERRORS, [Sample(0.01)])
    assert verdict.allow
    [reading] = verdict.readings
    assert (reading.value, reading.at, reading.bounds) == (0.01, EPOCH, "at most 0.05")


def test_an_alert_holds_and_says_since_when() -> None:
    verdict = ask(PAGES, FIRING)
    assert (verdict.allow, verdict.reason) == (False, Reason.MONITOR_HOLDS)
    assert verdict.message == "alert HighErrors fires since 2026-01-04T23:58:00Z"
    assert verdict.readings[0].cause is Cause.FIRING


def test_a_value_out_of_bounds_holds() -> None:
    verdict = ask(ERRORS, [Sample(0.5)])
    assert (verdict.allow, verdict.reason) == (False, Reason.MONITOR_HOLDS)
    assert verdict.message == "the value is above 0.05 since 2026-01-05T00:00:00Z"
    assert verdict.readings[0].value == 0.5


@pytest.mark.parametrize("found", [DOWN, [], [Sample(float("nan"))], [Sample("0")]])
def test_missing_data_waits(found: Any) -> None:
    verdict = ask(ERRORS, found)
    assert (verdict.allow, verdict.reason) == (False, Reason.MONITOR_UNKNOWN)


def test_it_waits_for_the_first_answer_and_comes_again_soon() -> None:
    verdict = ask(ERRORS)
    assert (verdict.allow, verdict.reason, verdict.readings) == (False, Reason.MONITOR_UNKNOWN, ())
    assert verdict.until is not None


def test_it_holds_until_the_answer_is_steady() -> None:
    verdict = ask(ERRORS, [Sample(0.5)], [Sample(0.01)])
    assert (verdict.allow, verdict.reason) == (False, Reason.MONITOR_HOLDS)
    assert ask(ERRORS, [Sample(0.5)], *[[Sample(0.01)]] * 3).allow


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize(("payload", "found"), [(PAGES, [FIRING]), (ERRORS, [DOWN]), (ERRORS, [])])
def test_it_delays_everything_but_rollbacks(payload: Any, found: Any, purpose: Purpose) -> None:
    assert ask(payload, *found, purpose=purpose).allow is (purpose is Purpose.ROLLBACK)


@pytest.mark.parametrize(
    "fields",
    [
        {"source": ""},
        {"every": "1s"},
        {"every": "2h"},
        {"every": "soon"},
        {"every": "2m"},
        {"fresh": 30},
        {"steady": 0},
        {"alerts": {"alertname": "A"}},
        {"alerts": {}},
        {"at_least": 0.1},
        {"value": "answer."},
        {"at": "other.time"},
        {"quarry": "errors"},
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        monitor(**fields)


def test_equal_questions_of_two_monitors_are_one() -> None:
    assert monitor().question() == monitor(select={"all": True}, every=30).question()
    assert monitor().question() != monitor(at_most=0.1).question()
