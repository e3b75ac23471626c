"""Metrics, own steps and canary analyses of updated units: what is asked when, and what the answers do."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.digest import digest
from lehr.canary import Judge
from lehr.model.asset import AssetId
from lehr.model.evidence import (
    Begun,
    Counted,
    Ended,
    Fact,
    Failed,
    Looked,
    MetricLook,
    RolloutEnd,
    Updated,
    Validated,
)
from lehr.model.monitoring import Cause, MetricError, Sample
from lehr.model.selector import Selector
from lehr.rollouts.course import Course, after
from lehr.rollouts.measuring import Ask, Findings
from lehr.rollouts.members import Member
from lehr.rollouts.metrics import About, CanaryAnalysis, Counter, PolicyMetric
from lehr.rollouts.plan import Step, plan
from lehr.rollouts.policy import RolloutPolicy, Validation
from lehr.rollouts.verdicts import Verdicts, alpha_of
from lehr.rollouts.waves import TargetSelection, Wave

OLD, NEW = digest("old"), digest("new")
ERRORS = PolicyMetric(source="prometheus", query='errors{unit="${unit}"}', at_most=0.01)

Answer = Sequence[Sample] | MetricError


def policy(waves: Sequence[Wave] = (Wave(units=1), Wave()), **validation: Any) -> RolloutPolicy:
    return RolloutPolicy(
        Selector(all=True),
        target_selection=TargetSelection(tuple(waves)),
        validation=Validation(**{"bad_looks": 1} | validation),
    )


class Rolling:
    """A rollout over units of one asset each, whose pushes end at once."""

    def __init__(self, rules: RolloutPolicy, *units: str) -> None:
        self.rules = rules
        self.course = Course()
        self.facts: list[Fact] = []
        self.released: set[str] = set()
        self.pushing: set[str] = set()
        self.now = 1000.0
        self.looked: float | None = None
        self.verdicts = Verdicts()
        self._units = units
        self.resting: list[Member] = []
        self._keep(plan(rules, self.course, self._members(), 2, self.now, since_look=None, new_id="r1"))

    def _members(self) -> list[Member]:
        return [
            Member(
                id=AssetId(unit),
                unit=unit,
                newest=NEW,
                target=NEW,
                before=OLD,
                released=NEW if unit in self.released else OLD,
                applied=NEW if unit in self.released - self.pushing else OLD,
                good=True,
                labels={"cluster": f"c-{unit}"},
            )
            for unit in self._units
        ] + self.resting

    def step(self, findings: Findings | None = None) -> Step:
        """One step, which is kept."""
        found = plan(
            self.rules,
            self.course,
            self._members(),
            2,
            self.now,
            since_look=None if self.looked is None else self.now - self.looked,
            new_id="r2",
            findings=findings,
            verdicts=self.verdicts,
        )
        return self._keep(found)

    def _keep(self, found: Step) -> Step:
        for fact in found.facts:
            self.course = after(self.course, found.rollout or "r1", fact, self.now)
            self.facts.append(fact)
            if isinstance(fact, Looked):
                self.looked = self.now
        self.released |= {grant.asset for grant in found.grants}
        return found

    def look(self, answer: Callable[[Ask], Answer], seconds: float = 10.0) -> Step:
        """Wait, and make a look."""
        self.now += seconds
        found = self.step()
        return self.step({ask: answer(ask) for ask in found.seen.asks}) if found.seen.asks else found

    def of(self, kind: type) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


def value(number: object) -> Callable[[Ask], Answer]:
    return lambda ask: [Sample(number)]


# --- metrics -----------------------------------------------------------------


def test_a_unit_is_good_once_its_metrics_are() -> None:
    rolling = Rolling(policy(metrics={"errors": ERRORS}), "a", "b")
    rolling.step()
    assert rolling.released == {"a"}
    found = rolling.look(value(0.002))
    assert found.facts[-2:] == (Validated(("a",)), Updated(("b",), {AssetId("b"): 0}, wave=2))
    assert rolling.of(Looked)[-1].units["a"].metrics == {"errors": MetricLook(True, 0.002)}


def test_a_look_asks_first_and_is_made_with_the_answers() -> None:
    rolling = Rolling(policy(metrics={"errors": ERRORS}), "a", "b")
    rolling.step()
    rolling.now += 10.0
    asking = rolling.step()
    assert [ask.question.query for ask in asking.seen.asks] == ['errors{unit="a"}']
    assert not rolling.of(Validated)
    assert asking.again_in is None, "the answers wake it, not time"


def test_a_bad_metric_fails_the_content_and_says_why() -> None:
    rolling = Rolling(policy(metrics={"errors": ERRORS}, bad_looks=2), "a", "b")
    rolling.step()
    rolling.look(value(0.3))
    assert not rolling.of(Failed)
    rolling.look(value(0.3))
    assert rolling.of(Failed) == [Failed("a", "errors: the value is above 0.01")]
    assert rolling.of(Ended)[0].how is RolloutEnd.FAILED


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (MetricError(Cause.UNREACHABLE, "no connection"), "errors: prometheus: no connection"),
        ([], "errors: prometheus: the answer has no value"),
        ([Sample(float("nan"))], "errors: prometheus: the value is not a finite number"),
        ([Sample("12 ms")], "errors: prometheus: the value is text, not a number"),
        ([Sample(0.001, at=100.0)], "errors: prometheus: the value is older than 120s"),
        ([Sample(0.001, at=9e9)], "the value is more than 120s in the future"),
    ],
)
def test_a_missing_value_is_neither_good_nor_bad_and_holds_at_the_deadline(answer: Answer, why: str) -> None:
    rolling = Rolling(policy(metrics={"errors": ERRORS}, deadline=60.0), "a", "b")
    rolling.step()
    found = [rolling.look(lambda ask: answer) for _ in range(12)][-1]
    assert not rolling.of(Failed)
    assert rolling.released == {"a"}
    assert "a is not good after 60 s" in found.hold
    assert why in found.hold
    rolling.look(value(0.0))
    assert rolling.released == {"a", "b"}, "it goes on by itself once there is an answer"


def test_missing_values_fail_at_the_deadline_if_the_policy_says_so() -> None:
    rolling = Rolling(policy(metrics={"errors": ERRORS}, deadline=60.0, at_deadline="fail"), "a", "b")
    rolling.step()
    for _ in range(12):
        rolling.look(lambda ask: MetricError(Cause.TIMEOUT, "no answer within 10s"))
    assert rolling.of(Failed)[0].why == (
        "it was not good within 60 s: errors: prometheus: no answer within 10s"
    )


def test_no_value_from_before_the_push_counts() -> None:
    """A `[5m]` metric was bad before the push: no sample from before counts (scenario 16)."""
    windowed = PolicyMetric(source="prometheus", query="rate[5m]", at_most=0.01, window=300.0, delay=15.0)
    rolling = Rolling(policy(metrics={"errors": windowed}), "a", "b")
    rolling.step()
    pushed = rolling.now
    asked = []

    def answer(ask: Ask) -> Answer:
        asked.append(rolling.now - pushed)
        return [Sample(0.9 if rolling.now - pushed < 315.0 else 0.001)]

    for _ in range(40):
        rolling.look(answer)
    assert min(asked) >= 315.0
    assert not rolling.of(Failed)
    assert rolling.of(Validated)


def test_a_push_that_takes_time_is_followed_by_the_wait_for_the_window() -> None:
    """Looks at which nothing is known are not all written down, but the end of a push is."""
    windowed = PolicyMetric(source="prometheus", query="rate[5s]", at_most=0.01, window=5.0)
    rolling = Rolling(policy(metrics={"errors": windowed}), "a", "b")
    rolling.pushing.add("a")
    rolling.step()
    rolling.look(value(0.0))
    rolling.pushing.clear()
    rolling.look(value(0.0))
    assert rolling.of(Looked)[-1].units["a"].settled == 0.0
    rolling.look(value(0.0))
    assert rolling.of(Validated)


def test_one_shared_question_counts_only_for_units_that_were_due() -> None:
    shared = PolicyMetric(source="prometheus", query="all", at_most=0.01, window=60.0)
    rolling = Rolling(policy((Wave(),), metrics={"errors": shared}), "a", "b")
    rolling.pushing.add("b")
    rolling.step()
    rolling.look(value(0.0))
    rolling.pushing.clear()
    for _ in range(6):
        found = rolling.look(value(0.0))
    assert {unit for fact in rolling.of(Validated) for unit in fact.units} == {"a"}
    assert "it is measured 60 s after the push" in rolling.of(Looked)[-1].units["b"].why
    assert {ask.unit for ask in found.seen.asks} <= {"a"}


def test_an_own_step_is_asked_until_it_has_decided() -> None:
    gate = PolicyMetric(
        source="load-tests", query="/${rollout}/${unit}?target=${target}", value="/ok", once=True
    )
    rolling = Rolling(policy(metrics={"load-test": gate}), "a", "b")
    rolling.step()
    rolling.look(value(None))
    assert rolling.of(Looked)[-1].units["a"].why == "load-test: load-tests has not decided yet"
    rolling.now += 10.0
    asks = rolling.step().seen.asks
    assert asks[0].question.query == "/r1/a?target=2"
    rolling.step({asks[0]: [Sample(True)]})
    assert rolling.of(Validated)
    rolling.now += 10.0
    assert not [ask for ask in rolling.step().seen.asks if ask.unit == "a"], "it has decided"


def test_an_own_step_that_refuses_fails_the_content() -> None:
    gate = PolicyMetric(source="load-tests", query="/${unit}", once=True)
    rolling = Rolling(policy(metrics={"load-test": gate}), "a", "b")
    rolling.step()
    rolling.look(value(False))
    assert rolling.of(Failed) == [Failed("a", "load-test: the value is false")]


def test_a_unit_without_the_label_that_a_query_needs_waits_and_says_so() -> None:
    metric = PolicyMetric(source="p", query="${labels.zone}", at_most=1)
    rolling = Rolling(policy(metrics={"errors": metric}), "a", "b")
    rolling.step()
    rolling.look(value(0))
    assert rolling.of(Looked)[-1].units["a"].why == "errors: the assets of a share no label zone"


def test_placeholders() -> None:
    about = About("eu/web", {"cluster": "c1", "note": 'x"} or vector(0)'}, "r1", 7)
    assert (
        about.filled("${unit} ${labels.cluster} ${rollout} ${target} $x {a=b}") == "eu/web c1 r1 7 $x {a=b}"
    )
    with pytest.raises(ValueError, match="characters that no query may have"):
        about.filled("${labels.note}")


@pytest.mark.parametrize("query", ["${untt}", "${labels.}", "${unit", "${}"])
def test_a_misspelled_placeholder_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match=re.escape("is not a placeholder: use ${unit}")):
        PolicyMetric(source="p", query=query)
    with pytest.raises(ValueError, match="is not a placeholder"):
        CanaryAnalysis(source="p", counters={"requests": "x", "errors": query})


# --- canary analysis -----------------------------------------------------------


QUICK = Judge(minimum_seconds=60.0, minimum_requests=500.0, warmup_seconds=0.0)
ANALYSIS = CanaryAnalysis(
    source="prometheus",
    counters={"requests": 'requests{unit="${unit}"}', "errors": Counter('errors{unit="${unit}"}')},
    judge=QUICK,
)


class Traffic:
    """Cumulative counters of two replicas in each unit: a hundred requests a second each."""

    def __init__(self, rolling: Rolling, bad: float = 0.01, good: float = 0.01) -> None:
        self._rolling = rolling
        self._bad, self._good = bad, good

    def __call__(self, ask: Ask) -> Answer:
        requests = 100.0 * self._rolling.now
        rate = self._bad if ask.unit in self._rolling.released else self._good
        count = requests if ask.name == "requests" else round(requests * rate)
        return [Sample(count, "0"), Sample(count, "1")]


def compared(*units: str, **validation: Any) -> Rolling:
    rolling = Rolling(policy(canary=ANALYSIS, **validation), *units)
    rolling.step()
    return rolling


def test_a_unit_is_validated_once_its_canary_analysis_passes() -> None:
    rolling = compared("a", "b", "c")
    for looks in range(100):
        found = rolling.look(Traffic(rolling))
        if rolling.of(Validated):
            break
        assert rolling.released == {"a"}, f"after {looks} looks: {found.hold}"
    assert rolling.of(Validated)
    assert rolling.now - 1000.0 >= 60.0, "not before the minimum exposure"
    assert rolling.released == {"a", "b", "c"}


def test_units_are_controls_although_some_of_their_assets_do_not_change() -> None:
    rolling = compared("a", "b")
    # As the roster has it: what production has is looked up for members that change, or of updated units.
    resting = Member(id=AssetId("b/envoy"), unit="b", newest=OLD, released=OLD)
    updated = replace(resting, id=AssetId("a/envoy"), unit="a", target=OLD, applied=OLD, good=True)
    rolling.resting = [resting, updated]
    rolling.step()
    found = rolling.look(Traffic(rolling))
    assert {sample.unit for sample in rolling.of(Counted)[-1].samples} == {"a", "b"}
    assert not rolling.of(Validated)
    assert found.seen.unproven["a"].startswith("canary analysis: ")


def test_worse_units_fail_and_the_numbers_are_kept() -> None:
    rolling = compared("a", "b", "c")
    for _ in range(30):
        rolling.look(Traffic(rolling, bad=0.3))
    [failed] = rolling.of(Failed)
    assert failed.unit == "a"
    assert failed.why.startswith("canary analysis: errors: ")
    assert rolling.now - 1000.0 < 1000.0
    sample = rolling.of(Counted)[0].samples[0]
    assert (sample.unit, sample.replica, sample.canary) == ("a", "0", True)
    assert set(sample.values) == {"requests", "errors"}
    assert {item.unit for item in rolling.of(Counted)[0].samples if not item.canary} == {"b", "c"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (MetricError(Cause.UNREACHABLE, "no connection"), "requests of a: prometheus: no connection"),
        ([Sample(float("nan"), "0")], "the value of 0 is not a finite number"),
        ([Sample(-3, "0")], "the value of 0 is negative"),
        ([Sample(1, "0"), Sample(2, "0")], "two values of the answer are of the same replica"),
    ],
)
def test_without_counters_nothing_passes_and_the_deadline_names_the_cause(answer: Answer, why: str) -> None:
    rolling = compared("a", "b", deadline=60.0)
    found = [rolling.look(lambda ask: answer) for _ in range(12)][-1]
    assert rolling.released == {"a"}
    assert "a is not good after 60 s: canary analysis: " in found.hold
    assert why in found.hold


def test_the_last_wave_has_nothing_to_be_compared_with() -> None:
    rolling = Rolling(policy((Wave(),), canary=ANALYSIS), "a", "b")
    rolling.step()
    found = rolling.look(Traffic(rolling))
    assert not found.seen.asks
    assert rolling.of(Ended)[0].how is RolloutEnd.COMPLETED


def test_each_wave_is_judged_by_its_own_counters() -> None:
    rolling = Rolling(policy((Wave(units=1), Wave(units=2), Wave()), canary=ANALYSIS), "a", "b", "c", "d")
    rolling.step()
    for _ in range(60):
        rolling.look(Traffic(rolling))
    cohorts = {
        counted.cohort: {item.unit for item in counted.samples if item.canary}
        for counted in rolling.of(Counted)
    }
    assert cohorts == {1: {"a"}, 2: {"b"}}
    assert rolling.of(Ended)[0].how is RolloutEnd.COMPLETED


def test_a_restart_judges_from_what_was_stored() -> None:
    """The same counters give the same verdict, whether it was followed or is computed at once."""
    rolling = compared("a", "b", "c")
    for _ in range(5):
        rolling.look(Traffic(rolling, bad=0.012))
    running = rolling.course.running
    assert running is not None
    assert running.counted
    followed = rolling.verdicts.of(ANALYSIS, running, 2)
    assert followed == Verdicts().of(ANALYSIS, running, 2)


def test_the_error_rate_of_all_cohorts_is_that_of_the_rollout() -> None:
    for waves in (1, 3):
        parts = [alpha_of(0.01, cohort, waves) for cohort in range(1, 200)]
        assert sum(parts) <= 0.01 + 1e-12
        assert parts[:waves] == [0.01 / (waves + 1)] * waves


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"counters": {"requests": "x"}}, "`judge.metrics` is missing"),
        ({"counters": {"errors": "x"}}, "`judge.metrics` is missing"),
    ],
)
def test_an_analysis_that_compares_nothing_is_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        CanaryAnalysis(source="p", **fields)


def test_begun_rollouts_have_no_cohort() -> None:
    course = after(Course(), "r1", Begun(2), 0.0)
    assert course.running is not None
    assert course.running.newest_cohort == 0
