"""Metrics of a policy: values of updated units, and counters to compare with those of other units."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, NamedTuple

import msgspec

from lehr.canary import Judge
from lehr.canary.definition import columns_of, default_metrics, problems_of
from lehr.model.monitoring import Question

Seconds = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]
Text = Annotated[str, msgspec.Meta(min_length=1)]

_FRESH = 120.0
_PLACE = re.compile(r"\$\{([^}]*)\}?")
_LABEL = "labels."
_NAMES = ("unit", "rollout", "target")
_PLAIN = re.compile(r"[\w.:/@+-]*", re.ASCII)


class PolicyMetric(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A metric whose values show whether an updated unit is good.

    In `query` and in `alerts`, `${unit}` is the unit, `${labels.NAME}` for a label of its assets,
    `${rollout}` for the id of the rollout, and `${target}` for the number of its incarnation.

    Attributes:
        source: name of a source in the file of `lehr run --metrics`.
        query: in PromQL; for a source of type `http`, appended to its address; for a command, its last
            argument.
        alerts: instead of a query: labels of alerts of Prometheus, none of which may fire.
        value: where the value is in a JSON answer: a JSON pointer, or a CEL expression over `answer`.
        at: the same for the time of the value.
        at_least: the smallest good value.
        at_most: the largest good value. Without both bounds, values must be `true`.
        window: seconds that a value covers, such as 300 for `[5m]`.
        delay: seconds by which values are late. The first look is `window` and `delay` after the push.
        fresh: seconds after which a value is too old.
        once: an answer that is `true` or `false` counts for good. It is asked until then: for load tests and
            approvals, which know the unit and the rollout from the query.
    """

    source: Text
    query: str = ""
    alerts: Annotated[dict[str, str], msgspec.Meta(min_length=1)] | None = None
    value: str = ""
    at: str = ""
    at_least: float | None = None
    at_most: float | None = None
    window: Seconds = 0.0
    delay: Seconds = 0.0
    fresh: Annotated[float, msgspec.Meta(gt=0, lt=1e9)] = _FRESH
    once: bool = False

    def __post_init__(self) -> None:
        asks = self.query or self.value or self.at or self.at_least is not None or self.at_most is not None
        if self.alerts is not None and asks:
            raise ValueError("alerts takes no query, value, at, at_least and at_most: use two metrics")
        if self.at_least is not None and self.at_most is not None and self.at_least > self.at_most:
            raise ValueError("no value is good: at_least is greater than at_most")
        for text in (self.query, *(self.alerts or {}).values()):
            _require_places(text)

    @property
    def bounds(self) -> str:
        """Which values are good, as text."""
        alerts = None if self.alerts is None else ()
        return Question(self.source, alerts=alerts, at_least=self.at_least, at_most=self.at_most).bounds

    def question(self, about: About, every: float) -> Question:
        """The question about a unit.

        Args:
            every: seconds between two looks.

        Raises:
            ValueError: a placeholder has no value for the unit.
        """
        alerts = None
        if self.alerts is not None:
            alerts = tuple(sorted((name, about.filled(value)) for name, value in self.alerts.items()))
        query = about.filled(self.query)
        return Question(
            self.source,
            query,
            alerts,
            self.value,
            self.at,
            self.at_least,
            self.at_most,
            every,
            self.fresh,
            steady=1,
        )


class Counter(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A counter of each replica of a unit.

    Attributes:
        query: its answer has a value for each replica. Placeholders are those of metrics.
        value, at: as in metrics.
    """

    query: Text
    value: str = ""
    at: str = ""


class CanaryAnalysis(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True
):
    """Compares updated units with units that are still to be updated.

    Attributes:
        source: name of a source in the file of `lehr run --metrics`.
        counters: by name, such as `requests` and `errors`: a query, or a mapping with `query`. Each answer
            has the values of all replicas of a unit, which only grow, except for restarts.
        judge: what is compared, and when it is decided. Without metrics: failures per request.
        controls: at most so many of the units that are still to be updated are asked for their counters.
        fresh: seconds after which a value is too old.
    """

    source: Text
    counters: Annotated[dict[str, Text | Counter], msgspec.Meta(min_length=1)]
    judge: Judge = Judge()
    controls: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    fresh: Annotated[float, msgspec.Meta(gt=0, lt=1e9)] = _FRESH

    def __post_init__(self) -> None:
        for counter in self.counters.values():
            _require_places(counter if isinstance(counter, str) else counter.query)
        for problem in problems_of(self.judge.metrics):
            raise ValueError(f"{problem.what}: {problem.fix}")
        metrics = self.judge.metrics or default_metrics(list(self.counters))
        if not metrics:
            raise ValueError("`judge.metrics` is missing, and no counter is named `errors` or `failures`")
        for metric in metrics:
            needed = columns_of(metric, list(self.counters)).names()
            if missing := [name for name in needed if name not in self.counters]:
                raise ValueError(f"metric {metric.name} needs the counter {missing[0]}, which is not defined")

    def questions(self, about: About, every: float) -> Iterator[tuple[str, Question]]:
        """The question for each counter of a unit.

        Raises:
            ValueError: a placeholder has no value for the unit.
        """
        for name, given in self.counters.items():
            counter = Counter(given) if isinstance(given, str) else given
            query = about.filled(counter.query)
            yield (
                name,
                Question(
                    self.source,
                    query,
                    None,
                    counter.value,
                    counter.at,
                    every=every,
                    fresh=self.fresh,
                    steady=1,
                ),
            )


class About(NamedTuple):
    """What a question is about: it fills placeholders."""

    unit: str
    labels: Mapping[str, str]
    rollout: str
    target: int

    def filled(self, text: str) -> str:
        """A text with the values of its placeholders.

        Raises:
            ValueError: the unit has no such label, or one that could change the meaning of a query.
        """
        return _PLACE.sub(lambda found: self._value(found[1]), text)

    def _value(self, name: str) -> str:
        if name.startswith(_LABEL):
            label = name.removeprefix(_LABEL)
            if label not in self.labels:
                raise ValueError(f"the assets of {self.unit} share no label {label}")
            value = self.labels[label]
        else:
            value = {"unit": self.unit, "rollout": self.rollout, "target": str(self.target)}[name]
        if not _PLAIN.fullmatch(value):
            raise ValueError(f"${{{name}}} has characters that no query may have: {value!r}")
        return value


def _require_places(text: str) -> None:
    for found in _PLACE.finditer(text):
        name = found[1]
        known = name in _NAMES or (name.startswith(_LABEL) and name != _LABEL)
        if not known or not found[0].endswith("}"):
            raise ValueError(
                f"{found[0]} is not a placeholder: "
                "use ${unit}, ${labels.NAME}, ${rollout} or ${target}"
            )
