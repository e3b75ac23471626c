"""Prometheus, and servers with its HTTP API: instant queries, and alerts that fire."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.monitoring.prometheus_answers import alerts_in, refusal_in, values_in
from lehr.monitoring.web import Web
from lehr.sdk.metrics import MetricSource


class PrometheusSource(MetricSource):
    """Asks `/api/v1/query` and `/api/v1/alerts`."""

    def __init__(self, web: Web, timeout: float) -> None:
        self.timeout = timeout
        self._web = web

    async def ask(self, question: Question) -> Sequence[Sample]:
        if question.value or question.at:
            raise MetricError(
                Cause.FAILED, "a Prometheus takes neither value nor at: its query has the value"
            )
        if question.alerts is not None:
            return alerts_in(await self._get("/api/v1/alerts"), question.alerts)
        limit = max(1, round(self.timeout))
        query = f"/api/v1/query?query={quote(question.query, safe='')}&timeout={limit}s"
        return values_in(await self._get(query))

    async def _get(self, query: str) -> bytes:
        answer = await self._web.get(query)
        if answer.status != 200:
            why = refusal_in(answer.body)
            raise MetricError(Cause.REFUSED, why or f"it answered with status {answer.status}")
        return answer.body
