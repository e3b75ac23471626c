"""Judges monitors from outside: no push starts while their answers are bad, missing, old or not a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from lehr.model.asset import Asset
from lehr.testing.sim.metrics import Answer
from lehr.testing.sim.selectors import selected

_TURN_SECONDS = 15.0
"""Seconds from the look at a monitor to the admission of the push at the most."""

Given = Callable[[], Iterable[Mapping[Any, Iterable[Answer]]]]
"""The answers that each control plane got, by question."""


class MonitorJudge:
    """All monitors in force."""

    def __init__(self, given: Given, now: Callable[[], float]) -> None:
        """Judge by the answers that were given; `now` is monotonic."""
        self._given = given
        self._now = now

    def closed(self, asset: Asset, monitors: Mapping[str, dict[str, Any]]) -> list[str]:
        """Monitors that select an asset and have kept it from pushes for longer than a turn."""
        return [
            id
            for id, payload in monitors.items()
            if selected(payload["select"], asset) and not any(self._open(payload))
        ]

    def _open(self, payload: Mapping[str, Any]) -> Iterator[bool]:
        """Whether each control plane could have found it open."""
        now = self._now()
        for by_question in self._given():
            for question, answers in by_question.items():
                asked = (question.query, question.every, question.steady)
                if asked == (payload["query"], payload["every"], payload["steady"]):
                    yield _was_open(list(answers), payload["steady"], question.fresh, now)


def _was_open(answers: list[Answer], steady: int, fresh: float, now: float) -> bool:
    """Whether it was open at some moment of a turn that ends now."""
    good, trouble = 0, False
    for number, answer in enumerate(answers):
        trouble = trouble or not answer.good
        good = good + 1 if answer.good else 0
        until = answers[number + 1].at if number + 1 < len(answers) else math.inf
        until = min(until, answer.at + fresh)
        if good and (good >= steady or not trouble) and until >= now - _TURN_SECONDS:
            return True
    return False
