"""Drafts of Terraform resources: by ids, by tags and from state files, over a provider in memory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError, StalledError
from lehr.dry_run.drafts import Draft, drafts_of
from lehr.model.asset import Partition
from lehr.plugins.terraform import tfstate
from lehr.plugins.terraform.drafts import referring, written
from lehr.plugins.terraform.payload import TerraformResource
from lehr.plugins.terraform.values.nulls import null_value
from tests.terraform.assets import PASSWORD, REGISTRY, plugin_of
from tests.terraform.cloud import QUEUE, Cloud, failure

PROVIDER = """
id: cloud/provider
type: lehr.TerraformProvider
payload:
  path: /usr/bin/provider
  sha256: "0000000000000000000000000000000000000000000000000000000000000000"
  calls_per_second: 1000
  config: {region: eu-1, token: "${token}"}
  secrets: {token: {secret: "env:TOKEN"}}
"""


def made(cloud: Cloud, type: str, **values: Any) -> str:
    block = cloud.schema.resources[type].block
    return cloud.create(type, {**null_value(block), **values})


def drafted(cloud: Cloud, folder: Path, *query: str) -> list[Draft]:
    (folder / "provider.yaml").write_text(PROVIDER)

    async def run() -> list[Draft]:
        plugin = plugin_of(cloud, base=folder)
        try:
            words = ("provider.yaml", *query)
            return await drafts_of(plugin, words, Partition("test"), REGISTRY, SystemClock())
        finally:
            await plugin.close()

    return asyncio.run(run())


def resource(type: str, name: str, attributes: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    instance = {"attributes": attributes, "schema_version": 1, **more}
    return {"mode": "managed", "type": type, "name": name, "instances": [instance]}


def state(folder: Path, *resources: dict[str, Any]) -> str:
    content = {"version": 4, "serial": 1, "outputs": {}, "resources": [*resources]}
    (folder / "terraform.tfstate").write_text(json.dumps(content))
    return "state=terraform.tfstate"


def test_a_draft_by_id_is_as_short_as_can_be_and_matches(tmp_path: Path) -> None:
    cloud = Cloud()
    id = made(cloud, "cloud_queue", name="orders", delay=0, zones=["a"], rule=[], tags={"team": "shop"})
    [draft] = drafted(cloud, tmp_path, "cloud_queue", id)
    assert not draft.obstacle
    assert draft.id == "cloud_queue/orders"
    config = {"name": "orders", "zones": ["a"], "tags": {"team": "shop"}}
    assert draft.payload == {
        "provider": "cloud/provider",
        "type": "cloud_queue",
        "config": config,
        "import": id,
    }
    msgspec.convert(draft.payload, TerraformResource)


def test_drafts_by_tag(tmp_path: Path) -> None:
    cloud = Cloud()
    id = made(cloud, "cloud_network", range="10.0.0.0/8", tags={"team": "shop"})
    made(cloud, "cloud_network", range="10.0.0.0/8", tags={"team": "other"})
    [draft] = drafted(cloud, tmp_path, "cloud_network", "tag:team=shop")
    assert draft.payload["import"] == id
    assert not draft.obstacle
    assert drafted(cloud, tmp_path, "cloud_network", "tag:team=none") == []
    with pytest.raises(StalledError, match="cannot be searched by tags"):
        drafted(cloud, tmp_path, "cloud_disk", "tag:team=shop")


def test_drafts_of_a_state_file_refer_to_each_other(tmp_path: Path) -> None:
    cloud = Cloud()
    queue = made(cloud, "cloud_queue", name="orders", delay=0, rule=[])
    arn = cloud.resources["cloud_queue", queue]["arn"]
    attachment = made(cloud, "cloud_attachment", role="reader", policy=arn)
    gone = {**null_value(cloud.schema.resources["cloud_disk"].block), "id": "disk-9", "size": 1}
    query = state(
        tmp_path,
        resource("cloud_queue", "orders", {"id": queue, "name": "orders", "arn": arn}),
        resource(
            "cloud_attachment",
            "it",
            {"id": attachment, "role": "reader", "policy": arn},
            dependencies=["cloud_queue.orders"],
        ),
        resource("cloud_disk", "gone", gone),
        resource("other_thing", "it", {"id": "x"}),
        resource("cloud_disk", "tainted", gone, status="tainted"),
        {"mode": "data", "type": "cloud_identity", "name": "me", "instances": []},
    )
    found = {draft.id: draft for draft in drafted(cloud, tmp_path, query)}
    assert found["cloud_queue/orders"].obstacle == ""
    attached = found["cloud_attachment/it"]
    assert attached.obstacle == ""  # its type has no import: it is found by the id
    assert attached.payload["config"] == {"role": "reader", "policy": "${orders_arn}"}
    place = {"asset": "cloud_queue/orders", "output": "attributes/arn"}
    assert attached.payload["references"] == {"orders_arn": place}
    assert found["cloud_disk/gone"].obstacle == "it does not exist"
    assert "no resource type other_thing" in found["other_thing/it"].obstacle
    assert "tainted" in found["cloud_disk/tainted"].obstacle
    assert cloud.made == 2


def test_a_secret_of_a_state_file_is_in_no_draft(tmp_path: Path) -> None:
    cloud = Cloud()
    made(cloud, "cloud_parameter", name="token", value=PASSWORD)
    attributes = {"id": "token", "name": "token", "value": PASSWORD, "version": 1}
    query = state(tmp_path, resource("cloud_parameter", "token", attributes))
    [draft] = drafted(cloud, tmp_path, query)
    assert draft.payload["config"] == {"name": "token", "value": "${value}"}
    assert draft.payload["secrets"] == {"value": {"secret": "env:VALUE"}}
    assert "name where these are kept: value" in draft.obstacle
    assert "horse" not in str(draft)


def test_a_provider_that_repeats_a_secret_of_the_state_does_not_show_it(tmp_path: Path) -> None:
    cloud = Cloud()

    async def repeat(call: str, type: str) -> None:
        if call == "read":
            raise failure("broken", f"the value is {PASSWORD}")

    cloud.before = repeat
    attributes = {"id": "token", "name": "token", "value": PASSWORD, "version": 1}
    [draft] = drafted(cloud, tmp_path, state(tmp_path, resource("cloud_parameter", "token", attributes)))
    assert "it cannot be read: broken" in draft.obstacle
    assert "horse" not in str(draft)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b'{"version": 3}', "version 3"),
        (b"secret text", "not a Terraform state file"),
        (
            b'{"version": 4, "resources": [{"mode": "managed", "instances": "secret"}]}',
            "not a Terraform state",
        ),
        (b'{"version": 4, "resources": {"secret": []}}', "not a Terraform state file"),
    ],
)
def test_what_is_no_state_file_is_refused_without_quoting_it(content: bytes, word: str) -> None:
    with pytest.raises(StalledError) as found:
        tfstate.resources(content)
    assert word in str(found.value)
    assert "secret" not in str(found.value)


def test_names_of_a_state_file_are_those_of_terraform() -> None:
    instances = [{"attributes": {"id": "1"}, "index_key": key} for key in (None, 0, "a.b")]
    kept = {"mode": "managed", "type": "t", "name": "n", "module": "module.m", "instances": instances}
    found = tfstate.resources(json.dumps({"version": 4, "resources": [kept]}).encode())
    assert [item.name for item in found] == ["module.m.t.n", "module.m.t.n[0]", 'module.m.t.n["a.b"]']
    assert {item.address for item in found} == {"module.m.t.n"}


@pytest.mark.parametrize("query", [(), ("cloud_queue",), ("state=missing",), ("cloud_nothing", "x")])
def test_what_cannot_be_understood_is_refused(query: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(LehrError):
        drafted(Cloud(), tmp_path, *query)


def test_references_get_names_that_payloads_accept() -> None:
    config, names = referring(
        {"a": ["x", {"b": "x"}], "c": "y"}, {"x": ("net/1-Main", "attributes/id"), "y": ("q", "id")}
    )
    assert config == {"a": ["${it_1_main_id}", {"b": "${it_1_main_id}"}], "c": "${q_id}"}
    assert names == {"it_1_main_id": ("net/1-Main", "attributes/id"), "q_id": ("q", "id")}


def test_computed_and_empty_parts_are_not_written() -> None:
    value = {**null_value(QUEUE), "id": "1", "name": "a", "arn": "b", "delay": 3, "policy": "", "zones": []}
    assert written(QUEUE, value) == {"name": "a"}
    assert written(QUEUE, value, {"delay"}) == {"name": "a", "delay": 3}
