"""Any server that answers GET with JSON."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.monitoring.json_values import samples_in
from lehr.monitoring.web import Web
from lehr.sdk.metrics import MetricSource


class JsonAddress(MetricSource):
    """Asks the address with the query appended, such as `/health?service=shop`."""

    def __init__(self, web: Web, timeout: float) -> None:
        self.timeout = timeout
        self._web = web

    async def ask(self, question: Question) -> Sequence[Sample]:
        if question.alerts is not None:
            raise MetricError(Cause.FAILED, "this source has no alerts: use a source of type prometheus")
        answer = await self._web.ask(question.query)
        if answer.status != 200:
            raise MetricError(Cause.REFUSED, f"it answered with status {answer.status}")
        return samples_in(answer.body, question)
