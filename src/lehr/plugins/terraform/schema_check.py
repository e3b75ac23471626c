"""Checks configurations in intent against the schemas of their providers, before publication. Pure.

Only as far as a schema is known: nothing is started for that. The first look would find the same problems,
and stall.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lehr.base.diagnostics import Diagnostic
from lehr.base.text import one_line
from lehr.model.addons import is_turned_down
from lehr.model.asset import Asset, AssetId
from lehr.plugins.terraform import placeholders
from lehr.plugins.terraform.errors import errors
from lehr.plugins.terraform.payload import (
    TERRAFORM_DATA,
    TERRAFORM_PROVIDER,
    TERRAFORM_RESOURCE,
    TerraformData,
    TerraformProvider,
    TerraformResource,
)
from lehr.plugins.terraform.provider import UNKNOWN, Path, ProviderGoneError, ProviderSchema, Schema
from lehr.plugins.terraform.values.configured import configured
from lehr.sdk.validator import Proposal

KnownSchema = Callable[[str], ProviderSchema | None]
"""The schemas of the provider whose program has a SHA-256; None if they are not known."""

_KINDS: Mapping[str, type[TerraformResource | TerraformData]] = {
    TERRAFORM_RESOURCE: TerraformResource,
    TERRAFORM_DATA: TerraformData,
}


def does_not_fit(proposal: Proposal, known: KnownSchema) -> Iterator[Diagnostic]:
    """VAL070, VAL071: each configuration fits the type that its provider has."""
    for asset in _affected(proposal):
        payload = proposal.registry.payload(asset, _KINDS[asset.type])
        schema = _provider_schema(proposal, AssetId(payload.provider), known)
        if schema is not None:
            is_resource = isinstance(payload, TerraformResource)
            types = schema.resources if is_resource else schema.data_sources
            yield from _problems(proposal, asset, payload, types)


def _affected(proposal: Proposal) -> Iterator[Asset]:
    """Resources and data sources that have changed, or whose provider has."""
    changed = [change.after for change in proposal.changes() if change.after is not None]
    found = {asset.id: asset for asset in changed}
    for provider in changed:
        if provider.type == TERRAFORM_PROVIDER:
            found |= {asset.id: asset for asset, _mention in proposal.mentioned_by(provider.id)}
    yield from (asset for asset in found.values() if asset.type in _KINDS and not is_turned_down(asset))


def _provider_schema(proposal: Proposal, id: AssetId, known: KnownSchema) -> ProviderSchema | None:
    provider = proposal.asset(id)
    if provider is None or provider.type != TERRAFORM_PROVIDER:  # which other validators report
        return None
    return known(proposal.registry.payload(provider, TerraformProvider).sha256)


def _problems(
    proposal: Proposal, asset: Asset, payload: TerraformResource | TerraformData, types: Mapping[str, Schema]
) -> Iterator[Diagnostic]:
    if payload.type not in types:
        near = difflib.get_close_matches(payload.type, types, n=1)
        yield Diagnostic(
            code="VAL070",
            what=f"the provider `{payload.provider}` of `{asset.id}` has no type `{payload.type}`",
            fix=f"did you mean `{near[0]}`?" if near else "correct `type` or `provider`",
            subject=asset.id,
            at=proposal.place(asset, "/payload/type"),
        )
        return
    try:
        block = types[payload.type].block
    except ProviderGoneError:  # kept schemas are read when they are looked up
        return
    named = dict.fromkeys([*payload.references, *payload.secrets], UNKNOWN)
    _value, found = configured(block, placeholders.filled(payload.config, named))
    for problem in errors(found):
        place = "/".join(map(str, ("config", *problem.path)))
        yield Diagnostic(
            code="VAL071",
            what=f"`{place}` of `{asset.id}` does not fit the type `{payload.type}`: {problem.summary}",
            why=one_line(problem.detail),
            fix="correct it; `lehr explain --provider FILE TYPE` shows what the type has",
            subject=asset.id,
            at=proposal.place(asset, f"/payload/config{_pointer(payload.config, problem.path)}"),
        )


def _pointer(config: Any, path: Path) -> str:
    """The part of `path` that is in intent, as a JSON pointer: a missing value has no place of its own."""
    pointer, value = "", config
    for step in path:
        if isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        elif isinstance(value, dict) and isinstance(step, int):  # one block, written without a list
            continue
        else:
            break
        pointer += "/" + str(step).replace("~", "~0").replace("/", "~1")
    return pointer
