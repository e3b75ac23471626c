"""The pages about types and plugins: every snippet runs, every example is valid, every field is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from lehr.base import documents
from lehr.model.asset import id_problem
from lehr.model.types import AssetType, Schema
from lehr.plugins.command import payload as command
from lehr.plugins.file import payload as file
from lehr.testing.conformance.asset_plugin import RULES

DOCS = Path(__file__).resolve().parents[2] / "docs"
REFERENCE = (DOCS / "reference" / "types.md").read_text()
HOW_TO = (DOCS / "how-to" / "write-a-plugin.md").read_text()
TYPES = (*file.TYPES, *command.TYPES)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def section(name: str) -> str:
    return REFERENCE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def test_the_plugin_of_the_how_to_keeps_the_contract(tmp_path: Path) -> None:
    for block in blocks(HOW_TO, "python"):
        name = block.partition("\n")[0].removeprefix("# ")
        (tmp_path / name).write_text(block)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "."]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RULES)} passed" in done.stdout


@pytest.mark.parametrize("type", TYPES, ids=lambda item: item.name)
def test_every_type_has_valid_examples(type: AssetType) -> None:
    examples = blocks(section(type.name), "yaml")
    assert examples
    for example in examples:
        loaded = documents.load("example.yaml", example.encode())
        assert not loaded.diagnostics
        for document in loaded.documents:
            assert document.value.keys() == {"id", "type", "payload"}
            assert id_problem(document.value["id"]) is None
            assert document.value["type"] == type.name
            msgspec.convert(document.value["payload"], type.payload)


@pytest.mark.parametrize("type", TYPES, ids=lambda item: item.name)
def test_every_field_is_described_with_its_default_and_no_other(type: AssetType) -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \|[^|]*\| ([^|]*?) *\|[^|]*\|$", section(type.name), re.MULTILINE))
    assert not isinstance(type.payload, Schema)
    fields = {field.name: field for field in msgspec.structs.fields(type.payload)}
    assert rows.keys() == fields.keys()
    for name, field in fields.items():
        assert (rows[name] == "required") == (field.required), name
        if isinstance(field.default, bool | float | str):
            shown = rows[name].strip("`")
            assert msgspec.json.decode(shown) == field.default, name
