"""A call carries its asset's provider, which counts as read; plugins in Python get its configuration."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from lehr.base.errors import NeedError, StalledError
from lehr.enforce.intent_readers import content_digest
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.provider import PROVIDED_BY, PROVIDER, TYPES, Provider
from lehr.model.types import AssetType, Registry
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.given import GivenReader, GivenSecrets, reading
from lehr.plugins.remote.intent import CarriedIntent
from lehr.plugins.remote.provided import ProviderReader, require_usable, usable_provider
from lehr.plugins.remote.service import NoAssets, Served, Service
from lehr.plugins.remote.wire import traits_message, traits_of
from lehr.sdk.plugin import Traits
from lehr.sdk.provider import ConfiguredProvider, configured, provider_of
from lehr.sdk.secrets import NoSecrets, SecretValue
from lehr.testing.plugins import FixedReader, FixedSecrets

LINE = AssetId("line")
A = AssetId("accounts/a")
BY_A = {PROVIDED_BY: {"provider": A}}
APPLIES = Traits(providers=True)


class Line(msgspec.Struct, frozen=True):
    """A line."""

    text: str = "hello"


REGISTRY = Registry((AssetType("example.Line", Line), *TYPES))


def line(addons: dict[str, Any] | None = None) -> Asset:
    return make_asset(LINE, "example.Line", Line(), BY_A if addons is None else addons)


def account(token: str = "env:TOKEN_A", plugin: str = "lines") -> Asset:
    config = {"folder": "a", "login": [{"token": {"secret": token}}]}
    return make_asset(A, PROVIDER, Provider(plugin=plugin, config=config), {})


def carried(read: FixedReader, secrets: FixedSecrets | None = None) -> CarriedIntent:
    found = CarriedIntent(read, secrets or FixedSecrets({}), {})
    found.begin(LINE)
    provider = usable_provider("lines", APPLIES, read, LINE)
    if provider is not None:
        found.provide(provider)
    return found


def given(intent: m.Intent) -> GivenReader:
    arrived = m.Intent.FromString(intent.SerializeToString())
    return GivenReader(arrived, 1, Registry((AssetType("example.Line", Line),)))


def test_the_provider_is_part_of_a_call_from_its_start() -> None:
    intent = carried(FixedReader([line(), account()], REGISTRY)).message
    assert intent.provider == A
    assert [asset.id for asset in intent.assets] == [LINE, A]
    reader = given(intent)
    provider = provider_of(reader, LINE)
    assert provider is not None
    assert (provider.id, provider.config["folder"]) == (A, "a")
    assert reader.complete


def test_an_asset_without_a_provider_carries_none() -> None:
    intent = carried(FixedReader([line({}), account()], REGISTRY)).message
    assert (intent.provider, len(intent.assets)) == ("", 1)
    assert provider_of(given(intent), LINE) is None


def test_the_provider_is_read_and_so_part_of_the_content_digest() -> None:
    digests = []
    for asset in (account(), account("env:OTHER"), account()):
        read = FixedReader([line(), asset], REGISTRY)
        carried(read)
        assert set(read.reads) == {LINE, A}
        digests.append(content_digest(line(), {LINE: line().digest, A: asset.digest}))
    assert digests[0] == digests[2] != digests[1]


def test_secrets_of_the_provider_may_be_asked_for_as_those_of_the_asset() -> None:
    async def story() -> dict[str, Any]:
        intent = carried(FixedReader([line(), account()], REGISTRY), FixedSecrets({"env:TOKEN_A": "hunter2"}))
        reader = given(intent.message)
        with reading(reader), pytest.raises(NeedError):
            await _provider(reader).revealed(GivenSecrets())
        await intent.add(reader.need)
        reader = given(intent.message)
        with reading(reader):
            return await _provider(reader).revealed(GivenSecrets())

    settings = asyncio.run(story())
    assert settings == {"folder": "a", "login": [{"token": SecretValue(b"hunter2")}]}
    assert "hunter2" not in repr(settings)


def test_a_secret_of_another_provider_is_not_given() -> None:
    intent = carried(FixedReader([line(), account()], REGISTRY), FixedSecrets({"env:TOKEN_B": "hunter2"}))
    with pytest.raises(StalledError, match="no asset that it has read refers to") as refused:
        asyncio.run(intent.add(m.Need(secrets=["env:TOKEN_B"])))
    assert refused.value.code == "PLG121"


def _provider(reader: GivenReader) -> ConfiguredProvider:
    found = provider_of(reader, LINE)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("assets", "traits", "code", "why"),
    [
        ([line()], APPLIES, "SDK113", "it does not exist"),
        ([line(), make_asset(A, "example.Line", Line(), {})], APPLIES, "SDK113", "it is a example.Line"),
        ([line(), account(plugin="buckets")], APPLIES, "PLG182", "the plugin buckets, not lines"),
        ([line(), account()], Traits(), "PLG183", "cannot be configured by providers"),
    ],
)
def test_a_provider_that_cannot_apply_stalls(
    assets: list[Asset], traits: Traits, code: str, why: str
) -> None:
    with pytest.raises(StalledError) as refused:
        usable_provider("lines", traits, FixedReader(assets, REGISTRY), LINE)
    assert refused.value.code == code
    assert why in str(refused.value) + refused.value.why
    assert refused.value.fix


def test_whether_a_plugin_applies_providers_is_a_trait() -> None:
    assert traits_of(traits_message(APPLIES)).providers
    assert not traits_of(m.Traits()).providers
    served = Served("empty", "1", NoAssets(NoSecrets()), REGISTRY)
    assert not Service(served).description().traits.providers


def test_discovery_may_read_the_provider_alone() -> None:
    provider = configured(account())
    require_usable("lines", APPLIES, provider)
    read = ProviderReader(provider)
    intent = CarriedIntent(read, FixedSecrets({}), {})
    intent.provide(provider)
    assert configured(_only(given(intent.message).asset(A))) == provider
    asyncio.run(intent.add(m.Need(assets=["line"])))
    assert [asset.exists for asset in intent.message.assets] == [True, False]
    with pytest.raises(StalledError) as refused:
        asyncio.run(intent.add(m.Need(outputs=[m.OutputKey(id="line", path="size")])))
    assert refused.value.code == "PLG184"


def _only(asset: Asset | None) -> Asset:
    assert asset is not None
    return asset
