"""Measures the units of rollouts in the background: no other policy waits, and no step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from lehr.model.asset import AssetId
from lehr.model.monitoring import MetricError, Question, Sample
from lehr.rollouts.measuring import Ask, Findings
from lehr.sdk.metrics import Metrics

_AT_ONCE = 20
"""Questions of a policy that are asked at the same time."""

_Found = Sequence[Sample] | MetricError


class _Round(msgspec.Struct):
    """The questions of one look.

    Attributes:
        rollout: id of the rollout that the look is made for.
        findings: None until all are answered.
    """

    rollout: str
    task: asyncio.Task[None] | None = None
    findings: Findings | None = None


class Measurements:
    """Asks what a look has to know, and keeps the answers until the look is made.

    Args:
        wake: called when there are answers.
    """

    def __init__(self, metrics: Metrics, wake: Callable[[], None]) -> None:
        self._metrics = metrics
        self._wake = wake
        self._rounds: dict[AssetId, _Round] = {}

    def findings(self, policy: AssetId, rollout: str) -> Findings | None:
        """The answers for the next look at a rollout of a policy; None before they are there."""
        known = self._rounds.get(policy)
        return known.findings if known is not None and known.rollout == rollout else None

    def follow(self, policy: AssetId, rollout: str, asks: Sequence[Ask]) -> None:
        """Ask what a step needs, unless questions for this rollout are being asked already."""
        if not asks:
            self.forget(policy)
            return
        known = self._rounds.get(policy)
        if known is not None and known.rollout == rollout:
            return
        if known is not None and known.task is not None:
            known.task.cancel()
        begun = self._rounds[policy] = _Round(rollout)
        begun.task = asyncio.create_task(self._answer(begun, asks), name=f"measurements of {policy}")

    def forget(self, policy: AssetId) -> None:
        """Forget answers that are there: the next look needs newer ones."""
        known = self._rounds.get(policy)
        if known is not None and known.findings is not None:
            del self._rounds[policy]

    async def close(self) -> None:
        """Wait for no more answers."""
        tasks = [item.task for item in self._rounds.values() if item.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, begun: _Round, asks: Sequence[Ask]) -> None:
        answers: dict[Question, _Found] = {}
        questions = list(dict.fromkeys(ask.question for ask in asks))
        for some in _parts(questions):
            found = await asyncio.gather(*(self._asked(question) for question in some))
            answers.update(zip(some, found, strict=True))
        begun.findings = {ask: answers[ask.question] for ask in asks}
        self._wake()

    async def _asked(self, question: Question) -> _Found:
        try:
            return await self._metrics.ask(question)
        except MetricError as error:
            return error


def _parts(questions: Sequence[Question]) -> list[Sequence[Question]]:
    return [questions[first : first + _AT_ONCE] for first in range(0, len(questions), _AT_ONCE)]
