"""The pages about `lehr.HttpResource`: the guide is run, examples are valid, every field is described."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from lehr.plugins.http_resource.payload import HttpResource, Ready
from tests.docs.test_tutorials import ROOT, run
from tests.rest_api import serving

GUIDE = (ROOT / "docs" / "how-to" / "manage-http-resources.md").read_text()
PAGE = (ROOT / "docs" / "reference" / "types-http.md").read_text()
FENCED = re.compile(r"^```yaml\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def payloads(page: str) -> list[Any]:
    documents = [found for block in FENCED.findall(page) for found in yaml.safe_load_all(block)]
    return [document["payload"] for document in documents if "payload" in document]


@pytest.mark.parametrize("payload", [*payloads(GUIDE), *payloads(PAGE)], ids=str)
def test_every_example_is_valid(payload: Any) -> None:
    msgspec.convert(payload, HttpResource)


@pytest.mark.parametrize("type", [HttpResource, Ready])
def test_every_field_is_described_with_its_default(type: type[msgspec.Struct]) -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| `?([^|`]*)`? \|[^|]*\|$", PAGE, re.MULTILINE))
    for field in msgspec.structs.fields(type):
        assert (rows[field.encode_name] == "required") == field.required, field.name
        if not field.required:
            default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            assert rows[field.encode_name] == msgspec.json.encode(default).decode(), field.name


def test_the_guide_is_run(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    text = FENCED.sub(lambda found: found[0] if found[1].startswith("# ") else "", GUIDE)
    with serving() as api:
        printed = run(text.replace("http://127.0.0.1:8480", api.base), here)
        assert [item["name"] for item in api.items.values()] == ["chair"]
    [shown] = re.findall(r"^    (\{.*\})$", GUIDE, re.MULTILINE)
    assert shown in printed
    assert f'{{"url":"{api.base}/things/t1"}}' in printed
