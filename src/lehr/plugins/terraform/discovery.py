"""Drafts `lehr.TerraformResource` of what exists: by ids, by tags, or from a state file. Read-only.

A provider process of its own reads it, since a provider that crashes would end pushes as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.documents import load
from lehr.base.errors import LehrError, StalledError, TransientError, raised_as
from lehr.plugins.terraform import tfstate
from lehr.plugins.terraform.differences import differences
from lehr.plugins.terraform.drafts import referring, unwritten, written
from lehr.plugins.terraform.errors import Meaning, described, error_of_look, errors, meaning
from lehr.plugins.terraform.intent import schema_of
from lehr.plugins.terraform.payload import TERRAFORM_PROVIDER, TERRAFORM_RESOURCE, TerraformProvider
from lehr.plugins.terraform.provider import Provider, ProviderError, Schema, State
from lehr.plugins.terraform.providers import Providers
from lehr.plugins.terraform.reading import revealed
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.nulls import null_value
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.plugins.terraform.values.secret_paths import secret_texts
from lehr.sdk.discovered_ids import Ids
from lehr.sdk.plugin import Found
from lehr.sdk.secrets import Hidden, Secrets, SecretValue

_STATE = "state="
_TAG = "tag:"
_REFERRED = ("arn", "id")
_ROUNDS = 4
_FORM = (
    "write the file of a lehr.TerraformProvider, then a type and ids (`assets/aws.yaml aws_sqs_queue URL`) "
    "or tags (`assets/aws.yaml aws_vpc tag:team=shop`), or `state=terraform.tfstate`"
)


class _Draft(NamedTuple):
    """A draft in the making.

    Attributes:
        id: of the asset.
        state: None for a resource that is not there.
        config: None if `obstacle` is why there is none.
    """

    id: str
    type: str
    import_id: str
    state: State | None
    config: dict[str, Any] | None
    notes: tuple[str, ...] = ()
    obstacle: str = ""


async def drafts(
    providers: Providers, secrets: Secrets, query: Sequence[str], blocking: Blocking, base: Path
) -> AsyncIterator[Found]:
    """The provider, as it is needed to read the drafts, and then a draft of each resource.

    Args:
        query: the file of a provider's asset, then `state=FILE`, or a type and import ids or `tag:NAME=VALUE`
        base: the folder that relative paths start from.

    Raises:
        LehrError: the query cannot be understood, or nothing can be read.
    """
    if len(query) < 2:
        raise StalledError("this does not name any resource", code="TER131", fix=_FORM)
    id, document, payload = await provider_in(base / query[0], blocking)
    yield Found(id=id, type=TERRAFORM_PROVIDER, payload=document)
    held = await revealed(payload.secrets, secrets)
    async with providers.use(payload, held, Hidden(held.values()), purpose="discovery") as provider:
        if query[1].startswith(_STATE):
            path = base / query[1].removeprefix(_STATE)
            with raised_as(StalledError, f"{path} cannot be read", code="TER132"):
                content = await blocking.run(path.read_bytes)
            found = [draft async for draft in _of_state(provider, tfstate.resources(content))]
        else:
            found = [draft async for draft in _of_ids(provider, payload, query[1], query[2:])]
    for made in found:
        yield made_found(made, id)


def made_found(draft: _Draft, provider: str) -> Found:
    """A draft as it is shown."""
    payload: dict[str, Any] = {"provider": provider, "type": draft.type}
    if draft.config is not None:
        payload |= draft.config
    if draft.import_id:
        payload["import"] = draft.import_id
    return Found(
        id=draft.id, type=TERRAFORM_RESOURCE, payload=payload, notes=draft.notes, obstacle=draft.obstacle
    )


async def provider_in(path: Path, blocking: Blocking) -> tuple[str, dict[str, Any], TerraformProvider]:
    """The first provider in a file of assets: its id, and its payload as it is written and as it is meant.

    Raises:
        StalledError: there is none.
    """
    with raised_as(StalledError, f"{path} cannot be read", code="TER133", fix=_FORM):
        content = await blocking.run(path.read_bytes)
    for document in load(str(path), content).documents:
        data = document.value
        for asset in data if isinstance(data, list) else [data]:
            if isinstance(asset, dict) and asset.get("type") == TERRAFORM_PROVIDER:
                payload = asset.get("payload", {})
                with raised_as(
                    StalledError,
                    f"{path} has no valid provider",
                    code="TER134",
                    on=(msgspec.ValidationError, TypeError),
                ):
                    return str(asset.get("id")), payload, msgspec.convert(payload, TerraformProvider)
    raise StalledError(f"{path} has no asset of type {TERRAFORM_PROVIDER}", code="TER135", fix=_FORM)


# --- by ids and tags -------------------------------------------------------------------


async def _of_ids(
    provider: Provider, payload: TerraformProvider, type: str, words: Sequence[str]
) -> AsyncIterator[_Draft]:
    schema = schema_of(provider.schema.resources, type, payload.path, "resource type")
    ids = Ids()
    tags = dict(word.removeprefix(_TAG).partition("=")[::2] for word in words if word.startswith(_TAG))
    named = [word for word in words if not word.startswith(_TAG)]
    if not words:
        raise StalledError(f"this names no {type}", code="TER136", fix=_FORM)
    for id in [*named, *(await _tagged(provider, type, tags) if tags else ())]:
        try:
            imported = await provider.import_resource(type, id)
            state = await provider.read_resource(type, imported)
        except ProviderError as error:
            raise error_of_look(f"the {type} {id} cannot be read", error, known_to_pass=False) from None
        asset = ids.propose(f"{type}/{id.rpartition('/')[2]}")
        yield await _draft(provider, schema, _Draft(asset, type, id, state, None))


async def _tagged(provider: Provider, type: str, tags: dict[str, str]) -> list[str]:
    """Ids of the resources of a type that have tags, from a data source of the provider."""
    for name, attribute in ((f"{type}s", "ids"), (type, "id")):
        source = provider.schema.data_sources.get(name)
        if source is None:
            continue
        config, problems = configured(source.block, {"tags": tags})
        if errors(problems):
            continue
        try:
            value = await provider.read_data_source(name, config)
        except ProviderError as error:
            if meaning(error.diagnostics) is Meaning.MISSING:
                return []
            raise error_of_look(f"the data source {name} cannot be read", error) from None
        found = (value or {}).get(attribute)
        return [str(item) for item in (found if isinstance(found, list) else [found]) if item]
    raise StalledError(
        f"resources of type {type} cannot be searched by tags",
        code="TER137",
        why="the provider has no data source for that",
        fix="name their ids",
    )


# --- from a state file -----------------------------------------------------------------


async def _of_state(provider: Provider, kept: Sequence[tfstate.Kept]) -> AsyncIterator[_Draft]:
    ids = Ids()
    assets = {item.name: ids.propose(f"{item.type}/{_plain_name(item)}") for item in kept}
    for item in kept:
        made = _Draft(assets[item.name], item.type, item.id, None, None, (f"{item.name} in Terraform",))
        schema = provider.schema.resources.get(item.type)
        if item.obstacle or schema is None:
            why = item.obstacle or f"the provider has no resource type {item.type}"
            yield made._replace(obstacle=why)
            continue
        try:
            state = await _read_again(provider, schema, item)
        except ProviderError as error:
            held = Hidden(
                SecretValue(text.encode()) for text in secret_texts(schema.block, _whole(schema, item))
            )
            yield made._replace(obstacle=f"it cannot be read: {described(errors(error.diagnostics), held)}")
            continue
        values = dict(_referred(item, kept, assets))
        yield await _draft(provider, schema, made._replace(state=state), values)


async def _read_again(provider: Provider, schema: Schema, item: tfstate.Kept) -> State:
    value = await provider.upgrade_state(item.type, item.schema, msgspec.json.encode(item.attributes))
    return await provider.read_resource(item.type, State(value))


def _whole(schema: Schema, item: tfstate.Kept) -> dict[str, Any]:
    return {**null_value(schema.block), **item.attributes}


def _referred(
    item: tfstate.Kept, kept: Sequence[tfstate.Kept], assets: dict[str, str]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Texts that are outputs of the resources that one depends on, each with the asset and the output."""
    for other in kept:
        if other.address in item.needs and not other.obstacle and other.name != item.name:
            for name in _REFERRED:
                text = other.attributes.get(name)
                if isinstance(text, str) and text:
                    yield text, (assets[other.name], f"attributes/{name}")


def _plain_name(item: tfstate.Kept) -> str:
    """The name in Terraform without the type: `net/main`, `web/0`."""
    inner = item.name.replace(f"{item.type}.", "", 1).replace("module.", "")
    return inner.replace("[", "/").replace("]", "").replace('"', "").replace(".", "/")


# --- configurations --------------------------------------------------------------------


async def _draft(
    provider: Provider, schema: Schema, made: _Draft, values: dict[str, tuple[str, str]] | None = None
) -> _Draft:
    """The draft with the shortest configuration for which the provider plans no change."""
    block, state = schema.block, made.state
    if state is None or state.value is None:
        return made._replace(obstacle="it does not exist")
    missing = unwritten(block, state.value)
    if missing:
        config = {**written(block, state.value), **{name: f"${{{name}}}" for name in missing}}
        secrets = {name: {"secret": f"env:{name.upper()}"} for name in missing}
        payload = {"config": config, "secrets": secrets}
        return made._replace(config=payload, obstacle=f"name where these are kept: {', '.join(missing)}")
    also: set[str] = set()
    problem = "no configuration leads to it"
    for _round in range(_ROUNDS):
        config = written(block, state.value, also)
        value, problems = configured(block, config)
        if wrong := errors(problems):
            problem = described(wrong)
            break
        differing = set[str]()
        with suppress(LehrError):
            differing, problem = await _planned(provider, made.type, schema, state, value)
        if not differing and not problem:
            config, references = referring(config, values or {})
            return made._replace(config=_payload(config, references))
        if differing <= also:
            break
        also |= differing
    return made._replace(config={"config": written(block, state.value, also)}, obstacle=problem)


async def _planned(
    provider: Provider, type: str, schema: Schema, state: State, config: Any
) -> tuple[set[str], str]:
    """Attributes that a provider would change, and why the configuration does not do; empty if it does."""
    proposed = proposed_new(schema.block, state.value, config)
    try:
        planned = await provider.plan(type, state, proposed, config)
    except (ProviderError, TransientError) as error:
        if isinstance(error, TransientError):
            raise
        return set(), f"its change cannot be planned: {described(errors(error.diagnostics))}"
    found = {str(item.path[0]) for item in differences(schema.block, state.value, planned.value)}
    return found, f"a push would change {', '.join(sorted(found))}" if found else ""


def _payload(config: dict[str, Any], references: dict[str, tuple[str, str]]) -> dict[str, Any]:
    payload: dict[str, Any] = {"config": config}
    if references:
        payload["references"] = {
            name: {"asset": asset, "output": output} for name, (asset, output) in references.items()
        }
    return payload
