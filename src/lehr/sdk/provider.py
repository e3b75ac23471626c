"""The provider of an asset, for plugins that serve several accounts, regions or servers.

    class BucketPlugin(AssetPlugin):
        traits = Traits(providers=True)

        async def diff(self, target: Target, read: Reader) -> Diff:
            provider = provider_of(read, target.id)
            settings = {} if provider is None else await provider.revealed(self._secrets)
            client = connect(settings["endpoint"], settings["token"].text())

The contract, for authors:

* An asset without a provider has the plugin's own configuration, as if there were no providers.
* Nothing of one provider's configuration may be used for an asset of another one.
* The provider counts as read: its assets are compared again when it changes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId
from lehr.model.provider import PROVIDED_BY, PROVIDER, ProvidedBy, Provider
from lehr.model.secret import reference_in
from lehr.sdk.plugin import Reader
from lehr.sdk.secrets import Secrets


class ConfiguredProvider(msgspec.Struct, frozen=True):
    """A provider, as intent has it.

    Attributes:
        id: of its asset.
    """

    id: AssetId
    payload: Provider

    @property
    def config(self) -> dict[str, Any]:
        """Its configuration: plain data, with references in place of secrets."""
        return self.payload.config

    async def revealed(self, secrets: Secrets) -> dict[str, Any]:
        """Its configuration with a `SecretValue` in place of each reference.

        Raises:
            LehrError: a secret cannot be read.
        """
        found: dict[str, Any] = await _revealed(self.config, secrets)
        return found


def provider_of(read: Reader, id: AssetId) -> ConfiguredProvider | None:
    """The provider of an asset; None for one that has none.

    Raises:
        StalledError: intent has no such asset or provider.
        NeedError: it has to be read first; let it pass.
    """
    named = read.addon(id, PROVIDED_BY, ProvidedBy)
    if named is None:
        return None
    provider = AssetId(named.provider)
    asset = read.asset(provider)
    if asset is None or asset.type != PROVIDER:
        found = "it does not exist" if asset is None else f"it is a {asset.type}"
        raise StalledError(
            f"the provider {provider} of {id} cannot be used",
            code="SDK113",
            why=found,
            fix="correct the addon lehr.ProvidedBy, or declare the provider",
        )
    return configured(asset)


def configured(asset: Asset) -> ConfiguredProvider:
    """The provider that an asset of type `lehr.Provider` declares."""
    return ConfiguredProvider(asset.id, msgspec.convert(asset.document()["payload"], Provider))


async def _revealed(value: Any, secrets: Secrets) -> Any:
    if (reference := reference_in(value)) is not None:
        return await secrets.read(reference)
    if isinstance(value, dict):
        return {name: await _revealed(item, secrets) for name, item in value.items()}
    if isinstance(value, list):
        return [await _revealed(item, secrets) for item in value]
    return value
