"""Providers of assets, as the host gives them to a plugin."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.provider import PROVIDER
from lehr.sdk.plugin import Reader, Traits
from lehr.sdk.provider import ConfiguredProvider, provider_of

T = TypeVar("T")


def usable_provider(plugin: str, traits: Traits, read: Reader, id: AssetId) -> ConfiguredProvider | None:
    """The provider of an asset that a plugin serves; None for one that has none.

    Raises:
        StalledError: it does not exist, belongs to another plugin, or the plugin does not apply providers.
        NeedError: it has to be read first.
    """
    provider = provider_of(read, id)
    if provider is not None:
        require_usable(plugin, traits, provider)
    return provider


def require_usable(plugin: str, traits: Traits, provider: ConfiguredProvider) -> None:
    """Raise `StalledError` unless a plugin applies a provider: any other would use a wrong configuration."""
    if provider.payload.plugin != plugin:
        raise StalledError(
            f"the provider {provider.id} configures the plugin {provider.payload.plugin}, not {plugin}",
            code="PLG182",
            fix="name a provider of this plugin in the addon lehr.ProvidedBy, or correct `plugin`",
        )
    if not traits.providers:
        raise StalledError(
            f"the plugin {plugin} cannot be configured by providers",
            code="PLG183",
            why="it does not describe itself as one that applies them",
            fix="update the plugin, or remove the addon lehr.ProvidedBy",
        )


class ProviderReader:
    """A `Reader` for calls that are about no asset: there is only the provider."""

    incarnation = 0

    def __init__(self, provider: ConfiguredProvider) -> None:
        self._asset = make_asset(provider.id, PROVIDER, msgspec.to_builtins(provider.payload), {})

    def asset(self, id: AssetId) -> Asset | None:
        return self._asset if id == self._asset.id else None

    def payload(self, id: AssetId, kind: type[T]) -> T:
        raise self._nothing_else()

    def addon(self, id: AssetId, name: str, kind: type[T]) -> T | None:
        return None

    def output(self, id: AssetId, path: str) -> Any:
        raise self._nothing_else()

    def _nothing_else(self) -> StalledError:
        return StalledError(
            "the plugin asks for other intent than the provider",
            code="PLG184",
            fix="report this to the plugin's author",
        )
