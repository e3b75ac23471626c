"""`lehr explain --provider`: types of a Terraform provider, with its documentation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lehr.base.errors import StalledError
from lehr.query.types import field_of
from lehr.wiring.provider_types import page_of
from tests.terraform import fake
from tests.terraform.aws import sha256
from tests.terraform.cloud import SCHEMA


def test_arguments_come_first_and_blocks_have_fields() -> None:
    page = page_of(SCHEMA, "cloud_queue", "cloud/aws")
    assert page.role == "lehr.TerraformResource"
    assert [field.name for field in page.fields][:2] == ["name", "delay"]
    assert page.fields[0].required
    made = next(field for field in page.fields if field.name == "arn")
    assert made.limits == ("made by the provider",)
    token = field_of(page, ["rule", "token"])
    assert token is not None
    assert token.limits == ("secret",)
    kinds = {field.name: field.kind for field in page.fields}
    assert (kinds["zones"], kinds["tags"], kinds["rule"]) == (
        "set of text",
        "mapping to text",
        "list of mapping",
    )


def test_a_data_source_is_found_where_there_is_no_resource_type() -> None:
    assert page_of(SCHEMA, "cloud_identity", "cloud/aws").role == "lehr.TerraformData"
    with pytest.raises(StalledError, match="has no resource type cloud_x"):
        page_of(SCHEMA, "cloud_x", "cloud/aws")


def test_the_command_starts_the_provider_without_its_secrets(tmp_path: Path) -> None:
    program = fake.binary(tmp_path)
    asset = {
        "id": "cloud/fake",
        "type": "lehr.TerraformProvider",
        "payload": {
            "path": str(program),
            "sha256": sha256(program),
            "config": {"token": "${token}"},
            "secrets": {"token": {"secret": "env:NOT_THERE"}},
        },
    }
    (tmp_path / "fake.json").write_text(json.dumps(asset))
    words = ["explain", "--provider", str(tmp_path / "fake.json"), "fake_given.labels", "-o", "json"]
    done = subprocess.run([sys.executable, "-m", "lehr", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "set of text"
