"""A simulated metric source: the error rate of production, which is bad, missing or wrong as instructed."""

from __future__ import annotations

import asyncio
import enum
import math
from collections import deque
from collections.abc import Sequence

import msgspec

from lehr.base.clock import Clock
from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.sdk.metrics import MetricSource

SOURCE = "metrics"
"""Name of the only source."""

_GOOD, _BAD = 0.01, 0.5
_HOUR = 3600.0
_REMEMBERED = 64


class Answers(enum.StrEnum):
    """The answers of a source from now on.

    FLAPPING: every other answer is bad. NONE: an answer without a value. STALE: a good value that is an hour
    old. DOWN: it refuses to answer. HANGING: no answer at all.
    """

    GOOD = "good"
    BAD = "bad"
    FLAPPING = "flapping"
    NONE = "none"
    NAN = "nan"
    STALE = "stale"
    DOWN = "down"
    HANGING = "hanging"


class Answer(msgspec.Struct, frozen=True):
    """An answer that was given.

    Attributes:
        at: seconds of the loop.
        good: whether its value is a number within every bound that a history uses, and new.
    """

    at: float
    good: bool


class SimulatedMetrics(MetricSource):
    """The source as one control plane asks it.

    Attributes:
        given: the last answers to each question.
    """

    def __init__(self, world: MetricWorld, clock: Clock) -> None:
        self.given: dict[Question, deque[Answer]] = {}
        self._world = world
        self._clock = clock

    async def ask(self, question: Question) -> Sequence[Sample]:
        answers = self._world.answers
        given = self.given.setdefault(question, deque(maxlen=_REMEMBERED))
        if answers is Answers.FLAPPING:
            answers = Answers.BAD if given and given[-1].good else Answers.GOOD
        given.append(Answer(self._clock.monotonic(), answers is Answers.GOOD))
        now = self._clock.now()
        match answers:
            case Answers.HANGING:
                await asyncio.Event().wait()
            case Answers.DOWN:
                raise MetricError(Cause.REFUSED, "it answered with status 503")
            case Answers.NONE:
                return []
            case Answers.NAN:
                return [Sample(math.nan, at=now)]
            case Answers.STALE:
                return [Sample(_GOOD, at=now - _HOUR)]
        return [Sample(_GOOD if answers is Answers.GOOD else _BAD, at=now)]


class MetricWorld:
    """The metrics that all control planes ask.

    Attributes:
        answers: of all sources, from now on.
    """

    def __init__(self) -> None:
        self.answers = Answers.GOOD
