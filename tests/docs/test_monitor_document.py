"""The pages about monitors: examples are valid, every field and cause is described, and the source works."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base import documents
from lehr.checks.monitor import Monitor
from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.monitoring.configuration import (
    CommandDefinition,
    InstalledDefinition,
    MetricSources,
    PrometheusDefinition,
)

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOW_TO = (DOCS / "how-to" / "hold-pushes-on-alerts.md").read_text()
REFERENCE = (DOCS / "reference" / "metric-sources.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", blocks("yaml"))
def test_every_example_is_valid(block: str) -> None:
    loaded = documents.load("example.yaml", block.encode())
    assert not loaded.diagnostics
    for document in loaded.documents:
        if "sources" in document.value:
            assert msgspec.convert(document.value, MetricSources).sources
        else:
            assert document.value["type"] == "lehr.Monitor"
            assert msgspec.convert(document.value["payload"], Monitor).question().source


def test_the_source_of_the_how_to_answers() -> None:
    [code] = blocks("python")
    space: dict[str, Any] = {}
    exec(code, space)
    source = space["Orders"]({"country": "DE"})
    assert asyncio.run(source.ask(Question("orders", "berlin"))) == [Sample(120.0, "berlin")]
    with pytest.raises(MetricError):
        asyncio.run(source.ask(Question("orders", "rome")))


def test_every_field_type_and_cause_is_described_and_no_other() -> None:
    described = set(re.findall(r"^\| `([^`]+)` \|", REFERENCE, re.MULTILINE))
    definitions = (PrometheusDefinition, CommandDefinition, InstalledDefinition)
    fields = {name for kind in definitions for name in kind.__struct_fields__}
    types = {"prometheus", "http", "command", "installed"}
    assert described == fields | types | {str(cause) for cause in Cause if cause is not Cause.GOOD}
