"""Prometheus, and servers with its HTTP API: instant queries, and alerts that fire."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from lehr.base.clock import Clock
from lehr.base.http_answer import Answer
from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.monitoring.prometheus_answers import alerts_in, refusal_in, require_evaluated, values_in
from lehr.monitoring.web import Web
from lehr.sdk.metrics import MetricSource


class PrometheusSource(MetricSource):
    """Asks `/api/v1/query`, or `/api/v1/alerts` and `/api/v1/rules`."""

    def __init__(self, web: Web, timeout: float, clock: Clock) -> None:
        self.timeout = timeout
        self._web = web
        self._clock = clock

    async def ask(self, question: Question) -> Sequence[Sample]:
        if question.value or question.at:
            raise MetricError(
                Cause.FAILED, "a Prometheus takes neither value nor at: its query has the value"
            )
        if question.alerts is not None:
            return await self._alerts(question.alerts, question.fresh)
        limit = max(1, round(self.timeout))
        query = f"/api/v1/query?query={quote(question.query, safe='')}&timeout={limit}s"
        return values_in(await self._get(query))

    async def _alerts(self, labels: tuple[tuple[str, str], ...], fresh: float) -> Sequence[Sample]:
        firing = alerts_in(await self._get("/api/v1/alerts"), labels)
        if not firing:
            rules = await self._web.ask("/api/v1/rules?type=alert")
            # Some servers with the API of Prometheus have no rules.
            if rules.status != 404:
                require_evaluated(_body(rules), labels, fresh, self._clock.now())
        return firing

    async def _get(self, query: str) -> bytes:
        return _body(await self._web.ask(query))


def _body(answer: Answer) -> bytes:
    if answer.status != 200:
        why = refusal_in(answer.body)
        raise MetricError(Cause.REFUSED, why or f"it answered with status {answer.status}")
    return answer.body
