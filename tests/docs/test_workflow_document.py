"""The pages about `lehr.Workflow`: the guide is run, examples are valid, every field is described."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from lehr.plugins.workflow.addresses import Dbos, EngineAddress, Temporal
from lehr.plugins.workflow.payload import (
    CommandObservation,
    HttpObservation,
    Observation,
    Removal,
    Workflow,
)
from tests.docs.test_tutorials import ROOT, run

GUIDE = (ROOT / "docs" / "how-to" / "put-a-workflow-behind-a-push.md").read_text()
PAGE = (ROOT / "docs" / "reference" / "types-workflow.md").read_text()
FENCED = re.compile(r"^```yaml\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
TABLES: dict[str, type[msgspec.Struct]] = {
    "": Workflow,
    "http": HttpObservation,
    "command": CommandObservation,
    "remove": Removal,
}
TABLES |= {"temporal": Temporal, "dbos": Dbos}


def payloads(page: str) -> list[Any]:
    documents = [found for block in FENCED.findall(page) for found in yaml.safe_load_all(block)]
    return [document["payload"] for document in documents if "payload" in document]


@pytest.mark.parametrize("payload", [*payloads(GUIDE), *payloads(PAGE)], ids=str)
def test_every_example_is_valid(payload: Any) -> None:
    msgspec.convert(payload, Workflow)


@pytest.mark.parametrize("name", TABLES)
def test_every_field_is_described_with_its_default(name: str) -> None:
    text = PAGE.partition(f"\n`{name}` has:\n")[2].strip().partition("\n\n")[0]
    text = text or PAGE.partition("\n`http` has:\n")[0]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| `?([^|`]*)`? \|[^|]*\|$", text, re.MULTILINE))
    fields = msgspec.structs.fields(TABLES[name])
    for field in fields:
        assert (rows[field.encode_name] == "required") == field.required, field.name
        if not field.required:
            default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            assert rows[field.encode_name] == msgspec.json.encode(default).decode(), field.name
    if name:
        assert rows.keys() == {field.encode_name for field in fields}


@pytest.mark.parametrize("type", [Observation, EngineAddress])
def test_alternatives_are_those_that_the_page_names(type: type[msgspec.Struct]) -> None:
    first, second = (field.encode_name for field in msgspec.structs.fields(type))
    assert f"exactly one of `{first}` and `{second}`" in PAGE


@pytest.mark.skipif(find_spec("dbos") is None, reason="DBOS is not installed: pip install 'lehr[dbos]'")
def test_the_guide_is_run(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    text = FENCED.sub(lambda found: found[0] if found[1].startswith("# ") else "", GUIDE)
    printed = run(text.replace("python app.py", f"{sys.executable} app.py"), here)
    assert '{"release": "1.0"}' in printed
    assert "broken-1.1 does not start" in printed
    assert not (here / "shop.json").exists()
