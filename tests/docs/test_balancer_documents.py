"""The page about `lehr.LoadBalancer`: its examples are valid, and every field is in its tables."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from lehr.base import documents
from lehr.model.types import Registry
from lehr.plugins.balancer.payload import TYPES, Backends, LoadBalancer
from lehr.plugins.process.payload import TYPES as PROCESS_TYPES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "types-balancer.md").read_text()
REGISTRY = Registry((*TYPES, *PROCESS_TYPES))


def test_every_example_is_valid() -> None:
    examples = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        loaded = documents.load("example.yaml", example.encode())
        assert not loaded.diagnostics
        for document in loaded.documents:
            payload = REGISTRY.types[document.value["type"]].payload
            msgspec.convert(document.value["payload"], payload)


def test_every_field_is_described_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| `?([^|`]*)`? \|[^|]*\|$", PAGE, re.MULTILINE))
    for field in msgspec.structs.fields(LoadBalancer):
        assert (rows[field.name] == "required") == field.required, field.name
        if not field.required:
            assert msgspec.json.decode(rows[field.name]) == field.default


def test_every_kind_of_backend_is_described() -> None:
    for field in msgspec.structs.fields(Backends):
        assert f"\n| `{field.name}` | list of " in PAGE
