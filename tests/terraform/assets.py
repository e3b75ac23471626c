"""Assets over the provider of `tests.terraform.cloud`, and the plugin that enforces them."""

from __future__ import annotations

from typing import Any

from lehr.base.blocking import Inline
from lehr.base.clock import Clock, SystemClock
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.plugins.terraform.payload import (
    TERRAFORM_DATA,
    TERRAFORM_PROVIDER,
    TERRAFORM_RESOURCE,
    TYPES,
    OutputReference,
    TerraformData,
    TerraformProvider,
    TerraformResource,
)
from lehr.plugins.terraform.plugin import TerraformPlugin
from lehr.testing.plugins import FixedReader, FixedSecrets
from lehr.validate.secrets import secrets_in
from tests.terraform.cloud import Cloud

REGISTRY = Registry(TYPES)
TOKEN = "hunter2-hunter2"
PASSWORD = 'correct "horse" battery/staple'
SECRETS = FixedSecrets({"env:TOKEN": TOKEN, "env:PASSWORD": PASSWORD})
ID = AssetId("shop/it")


def provider_asset(**more: Any) -> Asset:
    payload = TerraformProvider(
        path="/usr/bin/provider",
        sha256="0" * 64,
        config={"region": "eu-1", "token": "${token}"},
        secrets={"token": Secret("env:TOKEN")},
        **{"calls_per_second": 1000, "operation_tag": "tags", **more},
    )
    return make_asset(AssetId("cloud/provider"), TERRAFORM_PROVIDER, payload, {})


PROVIDER = provider_asset()
IDENTITY = make_asset(
    AssetId("cloud/identity"),
    TERRAFORM_DATA,
    TerraformData(provider="cloud/provider", type="cloud_identity"),
    {},
)
OUTPUTS = {"cloud/identity": {"id": "4711", "attributes": {"account": "4711"}}}


def resource(type: str, config: dict[str, Any], **more: Any) -> Asset:
    payload = TerraformResource(provider="cloud/provider", type=type, config=config, **more)
    return make_asset(ID, TERRAFORM_RESOURCE, payload, {})


def queue(delay: int, **more: Any) -> Asset:
    config = {
        "name": "orders",
        "policy": "allow ${account} and ${aws:username}",
        "delay": delay,
        "force_destroy": delay > 1,
        "zones": ["b", "a"],
        "rule": [{"port": 80 + delay, "token": "${password}"}],
        "tags": {"team": "shop"},
    }
    known = {"import_": "https://queue.example/4711/orders"}
    return resource(
        "cloud_queue",
        config,
        references={"account": OutputReference("cloud/identity", "attributes/account")},
        secrets={"password": Secret("env:PASSWORD")},
        **{**known, **more},
    )


def parameter(size: int, **more: Any) -> Asset:
    config = {"name": "orders", "value": "is ${password}", "description": f"size {size}"}
    known = {"import_": "orders"}
    secrets = {"password": Secret("env:PASSWORD")}
    return resource("cloud_parameter", config, secrets=secrets, **{**known, **more})


def network(size: int, **more: Any) -> Asset:
    config = {"range": "10.0.0.0/8", "comment": f"size {size}", "tags": {"a": "b"}}
    return resource("cloud_network", config, **more)


def disk(size: int, **more: Any) -> Asset:
    return resource("cloud_disk", {"size": size}, **more)


def reader(asset: Asset, *others: Asset) -> FixedReader:
    return FixedReader([asset, *(others or (PROVIDER, IDENTITY))], REGISTRY, outputs=OUTPUTS)


def plugin_of(cloud: Cloud, clock: Clock | None = None, **more: Any) -> TerraformPlugin:
    settings = {"settle_seconds": 0.3, "visible_seconds": 0.0, "linger_seconds": 0.0, "call_seconds": 0.5}
    return TerraformPlugin(
        clock or SystemClock(),
        cloud.start,
        Inline(),
        secrets=SECRETS,
        secrets_in=secrets_in,
        **{**settings, **more},
    )
