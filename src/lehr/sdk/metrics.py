"""Sources of metrics, and the looks at them.

The contract, for authors of sources:

* `ask` answers one question, once. The caller limits its time, and repeats it.
* Raise `MetricError` with a cause where there is no answer. Any other exception counts as `failed`.
* Return values as they are: whether they are good, and fresh enough, is judged by the caller.
* No message has a credential.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Protocol

from lehr.model.monitoring import Cause, MetricError, MetricHistory, Question, Sample


class MetricSource(ABC):
    """Base class of sources. A program's own are installed with the entry point group `lehr.metrics`."""

    timeout: float = 10.0
    """Seconds after which a look counts as failed."""

    @abstractmethod
    async def ask(self, question: Question) -> Sequence[Sample]:
        """The values now, or the alerts that fire now.

        Raises:
            MetricError: there is no usable answer.
        """

    async def close(self) -> None:
        """Release what it holds."""


class Metrics(Protocol):
    """Asks questions, once or again and again. Implementation: `lehr.monitoring.looks.Looks`."""

    async def ask(self, question: Question) -> Sequence[Sample]:
        """The values now, or the alerts that fire now. Ends within the timeout of the source.

        Raises:
            MetricError: there is no usable answer.
        """
        ...

    async def history(self, question: Question) -> MetricHistory | None:
        """The findings of the looks at a question; None before its first look has ended.

        The question is asked from now on, until no check has needed it for some time.
        """
        ...

    def listen(self, changed: Callable[[], None]) -> None:
        """Call `changed` each time that the answer to a question changes what it holds."""
        ...

    def ignore(self, changed: Callable[[], None]) -> None:
        """Call it no more."""
        ...


class NoMetrics:
    """Asks nothing: for programs without sources, and for tests."""

    async def ask(self, question: Question) -> Sequence[Sample]:
        raise MetricError(Cause.NO_SOURCE, f"no metric source {question.source} is configured")

    async def history(self, question: Question) -> MetricHistory | None:
        return None

    def listen(self, changed: Callable[[], None]) -> None:
        """Nothing ever changes."""

    def ignore(self, changed: Callable[[], None]) -> None:
        """It is never called."""


NO_METRICS = NoMetrics()
