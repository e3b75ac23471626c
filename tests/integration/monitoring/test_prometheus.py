"""A real Prometheus: its answers, its alerts, and its absence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.model.monitoring import Cause, Question, Reading
from lehr.monitoring.configuration import PrometheusDefinition
from lehr.monitoring.looks import Looks
from lehr.monitoring.prometheus import PrometheusSource
from lehr.monitoring.web import Web
from lehr.secrets import SecretReader
from tests.prometheus import Prometheus

CONFIGURATION = "global: {evaluation_interval: 1s}\nrule_files: [rules.yml]\n"
RULES = """\
groups:
  - name: a
    rules:
      - {alert: Fires, expr: vector(1), labels: {severity: page}}
      - {alert: Quiet, expr: vector(1) > 2, labels: {severity: page}}
      - {alert: Pending, expr: vector(1), for: 1h, labels: {severity: page}}
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "prometheus.yml").write_text(CONFIGURATION)
    (folder / "rules.yml").write_text(RULES)
    prometheus = Prometheus(folder)
    try:
        prometheus.start(lambda alerts: b"firing" in alerts)
        yield prometheus.address
    finally:
        prometheus.kill()


def read(address: str, question: Question) -> Reading:
    async def main() -> Reading:
        secrets = SecretReader(Path(), Path(), lambda path, digest: None, {}, Inline())
        source = PrometheusSource(
            Web(PrometheusDefinition(address=address), secrets, Path()), 10.0, SystemClock()
        )
        looks = Looks({"it": source}, SystemClock(), None)
        try:
            history = await looks.history(question)
        finally:
            await looks.close()
        assert history is not None
        return history.last

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("query", "cause"),
    [
        ("vector(0.01)", Cause.GOOD),
        ("0.01", Cause.GOOD),
        ("vector(0.5)", Cause.OUT_OF_BOUNDS),
        ('label_replace(vector(0.5), "job", "a", "", "") or vector(0.01)', Cause.OUT_OF_BOUNDS),
        ("vector(0) / 0", Cause.NOT_A_NUMBER),
        ("vector(1) / 0", Cause.NOT_A_NUMBER),
        ("nothing_has_this_name", Cause.NO_DATA),
        ("up[5m]", Cause.UNREADABLE),
        ('"text"', Cause.UNREADABLE),
        ("sum(", Cause.REFUSED),
        ("", Cause.REFUSED),
    ],
)
def test_a_query_is_answered(address: str, query: str, cause: Cause) -> None:
    reading = read(address, Question("it", query, at_most=0.05))
    assert reading.cause is cause, reading.message
    assert cause is not Cause.OUT_OF_BOUNDS or reading.value == 0.5


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"alertname": "Fires"}, "Fires"),
        ({"severity": "page"}, "Fires"),
        ({"alertname": "Quiet"}, ""),
        ({"alertname": "Pending"}, ""),
    ],
)
def test_an_alert_fires_or_is_quiet(address: str, labels: dict[str, str], name: str) -> None:
    reading = read(address, Question("it", alerts=tuple(labels.items())))
    assert reading.cause is (Cause.FIRING if name else Cause.GOOD)
    assert reading.series == name
    assert (reading.sampled_at is not None) is bool(name)


@pytest.mark.parametrize("labels", [{"alertname": "Fire"}, {"severity": "pgae"}])
def test_an_alert_that_does_not_exist_is_not_one_that_is_quiet(address: str, labels: dict[str, str]) -> None:
    assert read(address, Question("it", alerts=tuple(labels.items()))).cause is Cause.NO_DATA
