"""The guide to several accounts is run; the reference of providers is complete."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec

from lehr.base import documents
from lehr.model.provider import ProvidedBy, Provider
from tests.docs.test_tutorials import ROOT, run

GUIDE = (ROOT / "docs" / "how-to" / "serve-several-accounts.md").read_text()
REFERENCE = (ROOT / "docs" / "reference" / "types-provider.md").read_text()


def test_the_guide_is_run(tmp_path: Path) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)  # plugins get no variables of Lehr's
    (tmp_path / "python3").write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {sys.executable} "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    printed = run(GUIDE, here)
    assert "notes/eu (example.Note): will be pushed" in printed
    assert printed.endswith("WillkommenWelcome")


def test_every_field_is_described_with_its_default() -> None:
    for kind in (Provider, ProvidedBy):
        section = REFERENCE.partition(f"\n## lehr.{kind.__name__}\n")[2].partition("\n## ")[0]
        rows = dict(re.findall(r"^\| `([a-z]+)` \| `?([^|`]*?)`? \|[^|]*\|$", section, re.MULTILINE))
        fields = {field.name: field for field in msgspec.structs.fields(kind)}
        assert rows.keys() == fields.keys()
        for name, field in fields.items():
            assert (rows[name] == "required") == field.required, name
            if not field.required:
                default = field.default if field.default is not msgspec.NODEFAULT else {}
                assert msgspec.json.decode(rows[name]) == default, name


def test_the_example_is_valid() -> None:
    (example,) = re.findall(r"^```yaml\n(.*?)^```", REFERENCE, re.MULTILINE | re.DOTALL)
    loaded = documents.load("example.yaml", example.encode())
    assert not loaded.diagnostics
    for document in loaded.documents:
        assert msgspec.convert(document.value["payload"], Provider).plugin == "buckets"
