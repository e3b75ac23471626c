"""What people may write of a balancer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.model.types import Registry
from lehr.plugins.balancer.payload import LOAD_BALANCER, TYPES, LoadBalancer

REGISTRY = Registry(TYPES)
GOOD: dict[str, Any] = {
    "folder": "balancers/eu",
    "admin": "127.0.0.1:9901",
    "listen": "127.0.0.1:8000",
    "backends": {"endpoints": ["127.0.0.1:8001"]},
}


def problem(**fields: Any) -> str:
    with pytest.raises(msgspec.ValidationError) as found:
        msgspec.convert({**GOOD, **fields}, LoadBalancer)
    return str(found.value)


@pytest.mark.parametrize("folder", ["", "/", "a//b", "a/../b", "./a", "a/", "a\nb"])
def test_a_folder_is_a_plain_path(folder: str) -> None:
    assert "folder" in problem(folder=folder)


@pytest.mark.parametrize(
    "address",
    ["", "8000", "localhost:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:8x", "::1:80"],
)
@pytest.mark.parametrize("field", ["admin", "listen"])
def test_addresses_are_an_ip_and_a_port(field: str, address: str) -> None:
    assert field in problem(**{field: address})


def test_admin_is_on_loopback_and_listen_unless_allowed() -> None:
    assert "anyone who can reach it controls Envoy" in problem(admin="0.0.0.0:9901")
    assert "listen_any_host" in problem(listen="0.0.0.0:80")
    msgspec.convert({**GOOD, "listen": "0.0.0.0:80", "listen_any_host": True}, LoadBalancer)
    msgspec.convert({**GOOD, "listen": "[::1]:80"}, LoadBalancer)


@pytest.mark.parametrize(
    "backends",
    [
        {},
        {"endpoints": []},
        {"endpoints": ["127.0.0.1:1"], "jobs": [{"asset": "job", "port": "http"}]},
        {"endpoints": ["127.0.0.1:1", "127.0.0.1:1"]},
        {"endpoints": ["nowhere:1"]},
        {"balancers": [{"asset": "eu"}, {"asset": "eu"}]},
        {"balancers": [{"asset": "eu", "weight": -1}]},
    ],
)
def test_backends_are_of_one_kind_and_each_named_once(backends: dict[str, Any]) -> None:
    assert "backends" in problem(backends=backends)


def test_a_balancer_claims_its_port_and_its_folder() -> None:
    asset = make_asset(AssetId("eu"), LOAD_BALANCER, msgspec.convert(GOOD, LoadBalancer), {})
    assert REGISTRY.claims(asset) == ("port:8000", "folder:balancers/eu")


def test_backends_refer_to_assets_that_need_not_go_first() -> None:
    backends = {"jobs": [{"asset": "eu/job", "port": "http"}]}
    payload = msgspec.convert({**GOOD, "backends": backends}, LoadBalancer)
    asset = make_asset(AssetId("eu"), LOAD_BALANCER, payload, {})
    assert [(item.target, item.types) for item in REGISTRY.mentions(asset)] == [("eu/job", ("lehr.Process",))]
    assert not REGISTRY.dependencies(asset)
