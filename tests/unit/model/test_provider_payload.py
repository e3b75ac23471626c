"""Providers as intent declares them: their secrets, limits and mistakes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.model.provider import PROVIDED_BY, PROVIDER, TYPES, Provider
from lehr.model.secret import Secret
from lehr.model.types import Registry

REGISTRY = Registry(TYPES)


def made(**payload: Any) -> Provider:
    return msgspec.convert({"plugin": "lines", **payload}, Provider)


def test_references_to_secrets_are_found_at_any_depth() -> None:
    config = {"a": {"secret": "env:A"}, "b/c": [1, {"d": {"secret": "age:keys.age#x"}}], "plain": "text"}
    asset = make_asset(AssetId("p"), PROVIDER, made(config=config), {})
    assert REGISTRY.secrets(asset) == [
        ("/payload/config/a", Secret("env:A")),
        ("/payload/config/b~1c/1/d", Secret("age:keys.age#x")),
    ]


def test_references_to_encrypted_files_get_their_digests() -> None:
    asset = make_asset(AssetId("p"), PROVIDER, made(config={"a": [{"secret": "age:keys.age"}]}), {})
    changed = REGISTRY.with_secrets(asset, lambda secret: msgspec.structs.replace(secret, digest="sha256:1"))
    assert REGISTRY.secrets(changed)[0][1].digest == "sha256:1"
    assert REGISTRY.payload(changed, Provider).config["a"][0]["secret"] == "age:keys.age"
    assert changed.digest != asset.digest


@pytest.mark.parametrize("value", ["hunter2", "env:", "env:LEHR_KEY", 7])
def test_a_wrong_reference_is_refused_without_showing_it(value: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="`config/login/0` does not refer to a secret") as found:
        made(config={"login": [{"secret": value}]})
    assert "hunter2" not in str(found.value)


def test_a_mapping_with_more_than_a_reference_is_plain_data() -> None:
    assert made(config={"oauth": {"secret": "x", "client": "y"}}).config["oauth"]["client"] == "y"


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({"plugin": ""}, "length >= 1"),
        ({"rate": 0}, "> 0"),
        ({"concurrency": 0}, ">= 1"),
        ({"config": []}, "object"),
        ({"config": {"a": "x" * 70_000}}, "at most 65,536"),
        ({"token": "x"}, "unknown field"),
    ],
)
def test_a_payload_that_is_not_valid_is_refused(payload: dict[str, Any], why: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=why):
        made(**payload)


def test_a_deep_configuration_is_refused() -> None:
    deep: Any = "end"
    for _ in range(40):
        deep = {"a": deep}
    with pytest.raises(msgspec.ValidationError, match="more than 32 levels"):
        made(config=deep)


def test_the_addon_is_a_reference() -> None:
    asset = make_asset(AssetId("x"), "example.Line", {}, {PROVIDED_BY: {"provider": "accounts/a"}})
    [mention] = REGISTRY.mentions(asset)
    assert (mention.target, mention.types, mention.goes_first) == ("accounts/a", (PROVIDER,), False)
    assert mention.path == f"/addons/{PROVIDED_BY}/provider"
