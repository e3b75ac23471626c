"""Questions to target selections that are not Lehr's own, in the background: no other policy waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from lehr.base.clock import Clock
from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.model.asset import AssetId
from lehr.rollouts.policy import Policy
from lehr.rollouts.services import Answer, Asked, ask, nothing, situation
from lehr.sdk.target_selection import SelectionQuestion, Selections

log = Log()

_BETWEEN = 1.0
"""Seconds between the beginnings of two questions of a policy."""

_REFUSED = 10.0
"""Seconds after which a selection is asked again whose answer was refused."""

_VALID = 60.0
"""Seconds after which a selection is asked again at the latest."""


class _Entry(msgspec.Struct):
    """The last question of a policy.

    Attributes:
        began: monotonic seconds, as `until`.
        until: how long the answer counts.
    """

    began: float
    task: asyncio.Task[None] | None = None
    answer: Answer | None = None
    until: float = 0.0


class AskedSelections:
    """Asks selections, one question at a time for each policy, and keeps the last answer of each.

    Args:
        wake: called when there is a new answer.
    """

    def __init__(self, clock: Clock, selections: Selections, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._selections = selections
        self._wake = wake
        self._entries: dict[AssetId, _Entry] = {}
        self._troubled: dict[AssetId, str] = {}

    def answer(self, policy: AssetId) -> Answer | None:
        """The last answer for a policy, while it counts."""
        entry = self._entries.get(policy)
        return entry.answer if entry is not None and self._clock.monotonic() < entry.until else None

    def ask(self, policy: Policy, question: SelectionQuestion | None) -> float | None:
        """Ask, unless the last answer is one to this question.

        Returns:
            Seconds after which this should be called again; None if only a new answer matters.
        """
        by = policy.payload.selected_by
        if by is None or question is None:
            return None
        now, entry = self._clock.monotonic(), self._entries.get(policy.id)
        if entry is not None:
            if entry.task is not None and not entry.task.done():
                return None
            known = self.answer(policy.id)
            if known is not None and situation(known.question) == situation(question):
                return entry.until - now
            if entry.began + _BETWEEN > now:
                return entry.began + _BETWEEN - now
        entry = self._entries[policy.id] = _Entry(now)
        entry.task = asyncio.create_task(
            self._asked(policy.id, by.service, question, entry), name=f"selection of {policy.id}"
        )
        return None

    async def close(self) -> None:
        """Wait for no more answers."""
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _asked(self, policy: AssetId, name: str, question: SelectionQuestion, entry: _Entry) -> None:
        try:
            asked = await ask(self._selections(name), question)
        except LehrError as error:  # there is no such selection
            asked = Asked(nothing(question, f"selection {name}: {error}"), error)
        again = asked.selection.ask_again_at
        seconds = _VALID if again is None else min(_VALID, max(_BETWEEN, again - question.now))
        entry.until = self._clock.monotonic() + (seconds if asked.refused is None else _REFUSED)
        entry.answer = Answer(question, asked)
        self._log(policy, asked)
        self._wake()

    def _log(self, policy: AssetId, asked: Asked) -> None:
        """Log a cause once, until the selection answers or has another."""
        cause = "" if asked.refused is None else asked.refused.code
        if asked.refused is not None and self._troubled.get(policy) != cause:
            log.warning(
                "nothing is updated: a selection has no usable answer",
                policy=policy,
                code=cause,
                error=str(asked.refused),
            )
        self._troubled[policy] = cause


def earliest(one: float | None, other: float | None) -> float | None:
    """The smaller of two numbers of seconds; None is never."""
    return min((seconds for seconds in (one, other) if seconds is not None), default=None)
