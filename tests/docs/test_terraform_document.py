"""The pages about Terraform providers: the guide is run, examples are valid, every field is described."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from lehr.plugins.terraform.payload import (
    TERRAFORM_DATA,
    TERRAFORM_PROVIDER,
    TERRAFORM_RESOURCE,
    OutputReference,
    TerraformData,
    TerraformProvider,
    TerraformResource,
)
from tests.docs.test_tutorials import ROOT, run
from tests.terraform.aws import at_moto, hcl_at_moto, moto, provider_program, sha256

GUIDE = (ROOT / "docs" / "how-to" / "manage-terraform-resources.md").read_text()
PAGE = (ROOT / "docs" / "reference" / "types-terraform.md").read_text()
TUTORIAL = (ROOT / "docs" / "tutorial" / "from-terraform.md").read_text()
KEYS = "  environment: {AWS_ACCESS_KEY_ID: test, AWS_SECRET_ACCESS_KEY: test}\n"
FENCED = re.compile(r"^```yaml\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
TYPES: dict[str, type[msgspec.Struct]] = {
    TERRAFORM_PROVIDER: TerraformProvider,
    TERRAFORM_RESOURCE: TerraformResource,
    TERRAFORM_DATA: TerraformData,
}


def assets(page: str) -> list[Any]:
    documents = [found for block in FENCED.findall(page) for found in yaml.safe_load_all(block)]
    found = [asset for item in documents for asset in (item if isinstance(item, list) else [item])]
    return [asset for asset in found if "payload" in asset]


@pytest.mark.parametrize(
    "asset", [*assets(GUIDE), *assets(PAGE), *assets(TUTORIAL)], ids=lambda asset: str(asset["id"])
)
def test_every_example_is_valid(asset: Any) -> None:
    msgspec.convert(asset["payload"], TYPES[asset["type"]])


@pytest.mark.parametrize("type", [TerraformProvider, TerraformResource, OutputReference])
def test_every_field_is_described_with_its_default(type: type[msgspec.Struct]) -> None:
    rows = re.findall(r"^\| `([a-z_0-9]+)` \| `?([^|`]*)`? \|[^|]*\|$", PAGE, re.MULTILINE)
    for field in msgspec.structs.fields(type):
        default: Any = "required"
        if not field.required:
            made = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
            default = msgspec.json.encode(made).decode()
        assert (field.encode_name, default) in rows


@pytest.mark.timeout(900)  # most of it are the provider's own waits
def test_the_guide_is_run(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    program = provider_program()
    text = FENCED.sub(lambda found: found[0] if found[1].startswith("# ") else "", GUIDE)
    with moto() as address:
        text = text.replace("/opt/providers/terraform-provider-aws\n", f"{program}\n")
        text = re.sub(r"sha256: [0-9a-f]{64}", f"sha256: {sha256(program)}", text)
        text = text.replace(
            "    region: eu-central-1\n", f"    region: eu-central-1\n{at_moto(address, '    ')}"
        )
        set_up = "```sh\nexport AWS_SECRET_KEY=secret-of-the-test SHOP_TOKEN=token-of-the-test\n```\n\n"
        printed = run(set_up + text, here, seconds=600)
    assert "attributes:" in printed
    assert "cloud/sender-may-send has converged" in printed
    assert "destroyed and created again" in printed
    assert "secret-of-the-test" not in printed
    assert "token-of-the-test" not in printed


@pytest.mark.timeout(900)
def test_the_tutorial_is_run(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    program, command = provider_program(), shutil.which("terraform")
    if command is None:
        pytest.skip("NO TERRAFORM: nothing real was tested here; put terraform into the path")
    with moto() as address:
        configuration = tmp_path / "terraform.rc"
        mirror = program.parents[5]
        configuration.write_text(
            f'provider_installation {{\n  filesystem_mirror {{ path = "{mirror}" }}\n}}\n'
        )
        text = TUTORIAL.replace("/opt/providers/terraform-provider-aws\n", f"{program}\n")
        text = re.sub(r"sha256: [0-9a-f]{64}", f"sha256: {sha256(program)}", text)
        text = text.replace(
            "    region: eu-central-1\n", f"    region: eu-central-1\n{at_moto(address, '    ')}"
        )
        text = text.replace(
            '  region = "eu-central-1"\n', f'  region = "eu-central-1"\n{hcl_at_moto(address)}'
        )
        text = text.replace("  config:\n    region", f"{KEYS}  config:\n    region")
        set_up = (
            f"```sh\nexport TF_CLI_CONFIG_FILE={configuration} CHECKPOINT_DISABLE=1\n"
            "export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test\n```\n\n"
        )
        printed = run(set_up + text, here, seconds=900)
    adopted = (here / "shop" / "assets" / "adopted.yaml").read_text()
    assert "3 as intended" in printed
    assert "Not adopted" not in adopted
    assert "role: ${sender_id}" in adopted
    assert "aws_sqs_queue/orders has converged" in printed
