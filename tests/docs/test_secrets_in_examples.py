"""Nothing that the project itself shows looks like a secret to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor
from lehr.validate.secrets import value_looks_secret

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for folder in ("docs", "examples", "src", "benchmarks")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".md", ".yaml", ".py", ".toml", ".json", ".lehr", ".patch")
)
_SNIPPET = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def values(path: Path) -> Iterator[object]:
    """The file as one text, and every document that is or stands in it."""
    text = path.read_text()
    yield text
    for snippet in _SNIPPET.findall(text) if path.suffix == ".md" else [text]:
        if path.suffix in (".md", ".yaml"):
            yield from (document.value for document in documents.load("x.yaml", snippet.encode()).documents)


def look(value: object) -> list[Diagnostic]:
    asset = make_asset(AssetId("x"), "test.Any", {"value": value}, {})
    change, registry = AssetChange(asset.id, None, asset), Registry()
    predecessor = MappingPredecessor({}, registry)
    proposal = DeltaProposal(Partition("test"), registry, Limits(), [change], predecessor)
    return [found for view in proposal.views() for found in value_looks_secret(view)]


@pytest.mark.parametrize("folder", ["docs", "examples", "src", "benchmarks"])
def test_nothing_that_is_shown_looks_like_a_secret(folder: str) -> None:
    files = [path for path in FILES if path.is_relative_to(ROOT / folder)]
    assert files
    found = {
        f"{path.relative_to(ROOT)}: {item.what}"
        for path in files
        for value in values(path)
        for item in look(value)
    }
    assert found == set()
