"""Questions about production, the readings that answer them, and which of them hold pushes. Pure.

A question is asked again and again. Each look gives a reading: good, or not good for a named cause. No
answer, an old one, and one that is not a number are causes of their own.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import msgspec

from lehr.base.clock import iso
from lehr.base.moments import Moment

_LONGEST = 300


class Question(msgspec.Struct, frozen=True):
    """A question, how often it is asked, and which answers are good.

    Equal questions are asked once, however many assets they govern.

    Attributes:
        source: name of the source, as the deployment configures it.
        query: in the source's language.
        alerts: labels of alerts that must not fire, instead of a query; None for a query.
        value: where the value is in a JSON answer: a JSON pointer, or a CEL expression over `answer`.
        at: the same for the time of the value.
        at_least, at_most: bounds of each value, included. Without both, each must be `true`.
        every: seconds between two looks.
        fresh: seconds after which an answer, or what it is about, is too old.
        steady: looks in a row that must be good after one that was not.
    """

    source: str
    query: str = ""
    alerts: tuple[tuple[str, str], ...] | None = None
    value: str = ""
    at: str = ""
    at_least: float | None = None
    at_most: float | None = None
    every: float = 30.0
    fresh: float = 120.0
    steady: int = 3

    @property
    def bounds(self) -> str:
        """Which values are good, as text."""
        if self.alerts is not None:
            return "no alert fires"
        parts = [
            f"{name} {bound:g}"
            for name, bound in (("at least", self.at_least), ("at most", self.at_most))
            if bound is not None
        ]
        return " and ".join(parts) or "true"


class Sample(msgspec.Struct, frozen=True):
    """One value of an answer, or one alert that fires.

    Attributes:
        value: not checked yet: also text, None, or not a number. True for an alert.
        name: of its series, or of the alert.
        at: wall-clock seconds of the value, or since when the alert fires; None if not known.
        replica: the replica that it is about, equal for all its counters; empty for `name`.
    """

    value: object
    name: str = ""
    at: Moment | None = None
    replica: str = ""


class Cause(enum.StrEnum):
    """Why a reading is not good."""

    GOOD = ""
    OUT_OF_BOUNDS = "out of bounds"
    FIRING = "firing"
    NO_SOURCE = "no source"
    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    REDIRECTED = "redirected"
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"
    NO_DATA = "no data"
    NOT_A_NUMBER = "not a number"
    STALE = "stale"
    CLOCK = "clock"
    FAILED = "failed"

    @property
    def missing(self) -> bool:
        """True where it is unknown whether the value is good."""
        return self not in (Cause.GOOD, Cause.OUT_OF_BOUNDS, Cause.FIRING)


class Reading(msgspec.Struct, frozen=True):
    """The finding of one look, as decisions record it.

    Attributes:
        question: the query, or the alerts.
        at: wall-clock seconds when it was read.
        cause: a `Cause`; empty if it is good.
        message: the cause in words, with nothing that changes from look to look.
        value: of the series that is furthest from good; None if there is none, or if it is infinite.
        series: its name.
        bounds: which values are good.
        sampled_at: wall-clock seconds of the value; of an alert, since when it fires.
    """

    source: str
    question: str
    at: Moment
    cause: Cause = Cause.GOOD
    message: str = ""
    value: float | bool | None = None
    series: str = ""
    bounds: str = ""
    sampled_at: Moment | None = None


class MetricError(Exception):
    """A source has no usable answer.

    Attributes:
        cause: one that is `missing`.
        message: one line, without secrets, and equal while the trouble is the same.
    """

    def __init__(self, cause: Cause, message: str) -> None:
        self.cause = cause
        self.message = _one_line(message)
        super().__init__(self.message)


def reading_of(question: Question, found: Sequence[Sample] | MetricError, now: float) -> Reading:
    """The reading of a look at `now`, in wall-clock seconds."""
    if isinstance(found, MetricError):
        return _reading(question, now, found.cause, found.message)
    try:
        return _judged(question, found, now)
    except MetricError as error:
        return _reading(question, now, error.cause, error.message)


def number_of(question: Question, sample: Sample, now: float) -> float:
    """The value of a sample of a counter, if it can be used at `now`, in wall-clock seconds.

    Raises:
        MetricError: it is too old, or is not a number that a counter can have.
    """
    _require_fresh(question, sample, now)
    value = sample.value
    of = f" of {sample.name}" if sample.name else ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        raise MetricError(Cause.NOT_A_NUMBER, f"the value{of} is not a finite number")
    if value < 0:
        raise MetricError(Cause.NOT_A_NUMBER, f"the value{of} is negative, which no counter is")
    return float(value)


def _reading(
    question: Question, now: float, cause: Cause, message: str, sample: Sample | None = None
) -> Reading:
    value = None if sample is None else sample.value
    # As JSON holds it: no infinity, and no integer of any length.
    shown = value if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    return Reading(
        question.source,
        question.query if question.alerts is None else _alerts(question.alerts),
        now,
        cause,
        message,
        shown,  # type: ignore[arg-type]
        "" if sample is None else _one_line(sample.name),
        question.bounds,
        None if sample is None else sample.at,
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


def _alerts(labels: tuple[tuple[str, str], ...]) -> str:
    return "alerts " + ", ".join(f"{name}={value}" for name, value in labels)


def _judged(question: Question, samples: Sequence[Sample], now: float) -> Reading:
    if question.alerts is not None:
        return _of_alerts(question, samples, now)
    if not samples:
        raise MetricError(Cause.NO_DATA, "the answer has no value")
    for sample in samples:
        _require_fresh(question, sample, now)
    excess, message, worst = max(
        ((*_excess(question, sample), sample) for sample in samples), key=lambda item: item[0]
    )
    if excess <= 0:
        return _reading(question, now, Cause.GOOD, "", worst)
    return _reading(question, now, Cause.OUT_OF_BOUNDS, message, worst)


def _of_alerts(question: Question, firing: Sequence[Sample], now: float) -> Reading:
    if not firing:
        return _reading(question, now, Cause.GOOD, "")
    ordered = sorted(firing, key=lambda alert: (now if alert.at is None else alert.at, alert.name))
    first = ordered[0]
    more = f", and {len(firing) - 1} more" if len(firing) > 1 else ""
    since = "" if first.at is None else f" since {iso(first.at)}"
    return _reading(question, now, Cause.FIRING, f"alert {_one_line(first.name)} fires{since}{more}", first)


def _require_fresh(question: Question, sample: Sample, now: float) -> None:
    if sample.at is None:
        return
    if not math.isfinite(sample.at):
        raise MetricError(Cause.UNREADABLE, "the time of the value is not a time")
    if sample.at > now + question.fresh:
        raise MetricError(
            Cause.CLOCK, f"the value is more than {question.fresh:g}s in the future: a clock is wrong"
        )
    if sample.at < now - question.fresh:
        raise MetricError(Cause.STALE, f"the value is older than {question.fresh:g}s")


def _excess(question: Question, sample: Sample) -> tuple[float, str]:
    """How far a value is from good, and what is wrong; at most 0 if it is good."""
    value, of = sample.value, f" of {sample.name}" if sample.name else ""
    bounded = question.at_least is not None or question.at_most is not None
    if isinstance(value, bool):
        if bounded:
            raise MetricError(Cause.NOT_A_NUMBER, f"the value{of} is true or false, and has bounds")
        return (0.0, "") if value else (1.0, "the value is false")
    if not isinstance(value, int | float):
        kind = {str: "text", type(None): "null", list: "a list", dict: "an object"}.get(type(value), "other")
        raise MetricError(Cause.NOT_A_NUMBER, f"the value{of} is {kind}, not a number")
    if not bounded:
        raise MetricError(
            Cause.NOT_A_NUMBER, f"the value{of} is a number, and the check has neither at_least nor at_most"
        )
    if not _is_finite(value):
        raise MetricError(Cause.NOT_A_NUMBER, f"the value{of} is not a finite number")
    below = -math.inf if question.at_least is None else question.at_least - value
    above = -math.inf if question.at_most is None else value - question.at_most
    if below > above:
        return below, f"the value is below {question.at_least:g}"
    return above, f"the value is above {question.at_most:g}" if above > 0 else ""


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


# --- over several looks ----------------------------------------------------------


class MetricHistory(msgspec.Struct, frozen=True):
    """The findings of the looks at a question.

    Attributes:
        last: the last look.
        since: wall-clock seconds of the first of the looks in a row that had the same cause.
        good: the last looks in a row that were good.
        trouble: the last look that was not good; None if there was none.
    """

    last: Reading
    since: Moment
    good: int
    trouble: Reading | None = None


def after(history: MetricHistory | None, reading: Reading) -> MetricHistory:
    """The history with one more look."""
    good = reading.cause is Cause.GOOD
    if history is None:
        return MetricHistory(reading, reading.at, int(good), None if good else reading)
    same = history.last.cause is reading.cause
    return MetricHistory(
        reading,
        history.since if same else reading.at,
        history.good + 1 if good else 0,
        history.trouble if good else reading,
    )


class Hold(msgspec.Struct, frozen=True):
    """Why no push may start.

    Attributes:
        cause: GOOD if the looks are good, and not yet often enough.
        message: the same while the cause is.
        until: wall-clock seconds of when time alone may end it; None if only another answer can.
    """

    cause: Cause
    message: str
    until: Moment | None = None


def hold_of(question: Question, history: MetricHistory, now: float) -> Hold | None:
    """The cause that holds pushes at `now`, in wall-clock seconds; None if they may start."""
    last = history.last
    if last.cause is not Cause.GOOD:
        since = "" if last.cause is Cause.FIRING else f" since {iso(history.since)}"
        return Hold(last.cause, f"{last.message}{since}")
    if abs(now - last.at) > question.fresh:
        # The loop of looks hangs, or the clock was set.
        message = f"the last answer is older than {question.fresh:g}s"
        return Hold(Cause.STALE, message, now + question.every)
    if history.trouble is not None and history.good < question.steady:
        was = history.trouble.message
        return Hold(Cause.GOOD, f"{was}; good again, but not yet {question.steady} times in a row")
    return None
