"""Checks before publication that assets name providers of the plugins that serve them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lehr.base.diagnostics import Diagnostic
from lehr.model.asset import Asset, AssetId
from lehr.model.provider import PROVIDED_BY, PROVIDER, ProvidedBy, Provider
from lehr.sdk.validator import Proposal

_PLACE = f"/addons/{PROVIDED_BY}/provider"


def does_not_serve(proposal: Proposal, served: Mapping[str, str]) -> Iterator[Diagnostic]:
    """VAL072, VAL073: a plugin in another process serves the asset, and the provider is one of that plugin.

    Args:
        served: by type, the plugin of the deployment's file that serves it.
    """
    for asset in _affected(proposal):
        addon = proposal.registry.addon(asset, PROVIDED_BY, ProvidedBy)
        if addon is None:
            continue
        plugin = served.get(asset.type)
        if plugin is None:
            yield Diagnostic(
                code="VAL072",
                what=f"`{asset.id}` has a provider, and no plugin in another process serves {asset.type}",
                why="providers configure only plugins in the deployment's file of plugins",
                fix=f"remove the addon {PROVIDED_BY}, or add the type to a plugin in that file",
                subject=asset.id,
                at=proposal.place(asset, _PLACE),
            )
            continue
        provider = proposal.asset(AssetId(addon.provider))
        if provider is None or provider.type != PROVIDER:  # which other validators report
            continue
        configured = proposal.registry.payload(provider, Provider).plugin
        if configured != plugin:
            yield Diagnostic(
                code="VAL073",
                what=f"the provider `{provider.id}` of `{asset.id}` configures the plugin `{configured}`",
                why=f"{asset.type} is served by the plugin `{plugin}`",
                fix=f"name a provider of `{plugin}`, or correct `plugin` of `{provider.id}`",
                subject=asset.id,
                at=proposal.place(asset, _PLACE),
            )


def _affected(proposal: Proposal) -> Iterator[Asset]:
    """Assets that have changed, or whose provider has."""
    changed = [change.after for change in proposal.changes() if change.after is not None]
    found = {asset.id: asset for asset in changed}
    for provider in changed:
        if provider.type == PROVIDER:
            found |= {asset.id: asset for asset, _mention in proposal.mentioned_by(provider.id)}
    yield from found.values()
