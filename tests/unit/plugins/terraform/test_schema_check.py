"""Configurations in intent are checked against the schemas of their providers, where these are known."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.secret import Secret
from lehr.plugins.terraform.kept_schemas import KeptSchemas
from lehr.plugins.terraform.payload import (
    TERRAFORM_DATA,
    TERRAFORM_RESOURCE,
    OutputReference,
    TerraformData,
    TerraformProvider,
    TerraformResource,
)
from lehr.plugins.terraform.provider import ProviderGoneError, ProviderSchema, Schema
from lehr.plugins.terraform.schema_check import does_not_fit
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor
from tests.terraform.assets import ID, PROVIDER, REGISTRY
from tests.terraform.cloud import SCHEMA

OTHER_PROVIDER = make_asset(
    PROVIDER.id, PROVIDER.type, TerraformProvider(path="/usr/bin/provider", sha256="1" * 64), {}
)


def known(sha256: str) -> ProviderSchema | None:
    return SCHEMA if sha256 == "0" * 64 else None


def found(after: Iterable[Asset], before: Iterable[Asset] = ()) -> list[Diagnostic]:
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    predecessor = MappingPredecessor(old, REGISTRY)
    return [*does_not_fit(DeltaProposal(Partition("test"), REGISTRY, Limits(), changes, predecessor), known)]


def resource(type: str, config: dict[str, Any], addons: dict[str, Any] | None = None, **more: Any) -> Asset:
    payload = TerraformResource(provider="cloud/provider", type=type, config=config, **more)
    return make_asset(ID, TERRAFORM_RESOURCE, payload, addons or {})


def queue(**config: Any) -> Asset:
    return resource("cloud_queue", {"name": "orders", **config})


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"dealy": 3}, ("config/dealy", "unknown", 'did you mean "delay"')),
        ({"delay": "soon"}, ("config/delay", "number")),
        ({"name": None}, ("config/name", "required")),
        ({"arn": "a"}, ("config/arn", "cannot be set")),
        ({"rule": "x"}, ("config/rule", "must be a list of mappings")),
        ({"rule": [{"port": 1}, {}]}, ("config/rule/1/port", "required")),
        ({"zones": {"a": "b"}}, ("config/zones",)),
    ],
)
def test_what_does_not_fit_is_reported_with_its_place(config: dict[str, Any], words: tuple[str, ...]) -> None:
    [problem] = found([PROVIDER, queue(**config)])
    assert (problem.code, problem.subject) == ("VAL071", ID)
    assert [word for word in words if word not in f"{problem.what} {problem.why}"] == []


def test_all_problems_are_reported_at_once() -> None:
    assert len(found([PROVIDER, queue(dealy=3, delay="soon", rule=[{}])])) == 3


def test_what_fits_is_not_reported() -> None:
    config = {"name": "${name}", "delay": "${delay}", "policy": "a ${token} ${aws:user}", "rule": {"port": 1}}
    references = {
        "name": OutputReference("x", "id"),
        "delay": OutputReference("x", "attributes/delay"),
    }
    secrets = {"token": Secret("env:TOKEN")}
    assert found([PROVIDER, resource("cloud_queue", config, references=references, secrets=secrets)]) == []


def test_an_unknown_type_names_a_near_one() -> None:
    [problem] = found([PROVIDER, resource("cloud_qeue", {"name": "a"})])
    assert problem.code == "VAL070"
    assert "cloud_queue" in problem.fix


def test_data_sources_are_checked_against_theirs() -> None:
    data = TerraformData(provider="cloud/provider", type="cloud_identity", config={"account": "1"})
    [problem] = found([PROVIDER, make_asset(AssetId("it"), TERRAFORM_DATA, data, {})])
    assert "cannot be set" in problem.what


def test_nothing_is_reported_where_the_schema_is_not_known() -> None:
    assert found([OTHER_PROVIDER, queue(dealy=3)]) == []
    assert found([queue(dealy=3)]) == []


def test_a_schema_that_cannot_be_read_prevents_no_publication() -> None:
    class Damaged(dict[str, Schema]):
        def __getitem__(self, name: str) -> Schema:
            raise ProviderGoneError("damaged")

    schema = replace(SCHEMA, resources=Damaged(SCHEMA.resources))
    change = AssetChange(ID, None, queue(dealy=3))
    predecessor = MappingPredecessor({PROVIDER.id: PROVIDER}, REGISTRY)
    proposal = DeltaProposal(Partition("test"), REGISTRY, Limits(), [change], predecessor)
    assert len([*does_not_fit(proposal, lambda _sha256: SCHEMA)]) == 1
    assert [*does_not_fit(proposal, lambda _sha256: schema)] == []


def test_another_version_of_a_provider_is_checked_with_all_its_resources() -> None:
    before = [OTHER_PROVIDER, queue(dealy=3)]
    assert [item.code for item in found([PROVIDER, before[1]], before)] == ["VAL071"]


def test_what_is_turned_down_need_not_fit() -> None:
    turned_down = {"lehr.Turndown": {"reason": "it never worked"}}
    assert found([PROVIDER, resource("cloud_queue", {"dealy": 1}, turned_down)]) == []


def test_schemas_that_were_never_kept_or_are_damaged_are_not_known(tmp_path: Path) -> None:
    kept = KeptSchemas(tmp_path / "schemas")
    kept.keep("c" * 64, 5, b"\xff damaged")
    assert kept.known("b" * 64) is None
    assert kept.known("c" * 64) is None
    kept.keep("../../escaped", 5, b"")
    assert [path.name for path in (tmp_path / "schemas").iterdir()] == [f"{'c' * 64}.tfplugin5"]


def test_a_folder_that_cannot_be_written_prevents_no_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    KeptSchemas(tmp_path / "file" / "schemas").keep("a" * 64, 5, b"")
