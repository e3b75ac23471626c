"""The pages about `lehr.TerraformWorkspace`: the guide is run, examples are valid, fields are described."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from lehr.plugins.terraform_workspace.payload import OutputOf, TerraformWorkspace
from tests.docs.test_tutorials import ROOT, run
from tests.terraform_workspaces import real_terraform

GUIDE = (ROOT / "docs" / "how-to" / "run-terraform-modules.md").read_text()
PAGE = (ROOT / "docs" / "reference" / "types-terraform-workspace.md").read_text()
FENCED = re.compile(r"^```yaml\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def payloads(page: str) -> list[Any]:
    documents = [found for block in FENCED.findall(page) for found in yaml.safe_load_all(block)]
    return [document["payload"] for document in documents if "payload" in document]


@pytest.mark.parametrize("payload", [*payloads(GUIDE), *payloads(PAGE)], ids=str)
def test_every_example_is_valid(payload: Any) -> None:
    msgspec.convert(payload, TerraformWorkspace)


@pytest.mark.parametrize("type", [TerraformWorkspace, OutputOf])
def test_every_field_is_described_with_its_default(type: type[msgspec.Struct]) -> None:
    rows = dict(re.findall(r"^\| `([a-z_0-9]+)` \| `?([^|`]*)`? \|[^|]*\|$", PAGE, re.MULTILINE))
    for field in msgspec.structs.fields(type):
        assert (rows[field.encode_name] == "required") == field.required, field.name
        if not field.required:
            default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            assert rows[field.encode_name] == msgspec.json.encode(default).decode(), field.name


@real_terraform
def test_the_guide_is_run(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    text = FENCED.sub(lambda found: found[0] if found[1].startswith("# ") else "", GUIDE)
    printed = run(text.replace("/srv/terraform", str(tmp_path / "terraform")), here)
    assert json.loads((tmp_path / "terraform" / "lamps.tfstate").read_text())["resources"] == []
    assert "terraform_data.switch" in printed
