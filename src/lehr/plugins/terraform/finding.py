"""Finds a resource: by its handle, by the import id of intent, or by the tag of the push that made it."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.terraform.errors import Meaning, error_of_look, errors, meaning
from lehr.plugins.terraform.handle import NO_HANDLE, TerraformHandle
from lehr.plugins.terraform.intent import TAG, Intended, may_be_tagged
from lehr.plugins.terraform.observe import handle_of, identity, laid_over
from lehr.plugins.terraform.payload import TerraformResource
from lehr.plugins.terraform.provider import Provider, ProviderError, Schema, State, Value
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.nulls import null_value

NOTHING = State(None)

_LEAST_NAME = 3
_NO_IMPORT = re.compile(r"not support import|n't support import|import (is )?not supported", re.IGNORECASE)


class Sought(NamedTuple):
    """A resource to find.

    Attributes:
        config: intent, as a value of the type; None for intent that is not known.
        handle: leads to it, if it is known.
        lost: id of a push that may have created it; empty for none.
        incarnation: of the intent.
        visible_seconds: how long APIs may hide a resource that was just created.
        searched_seconds: since when the resource of the lost push has been looked for.
        made_seconds: since when this process has created the resource; infinite if it has not.
    """

    resource: TerraformResource
    intended: Intended
    schema: Schema
    config: Value
    handle: TerraformHandle
    lost: str = ""
    incarnation: int = 0
    visible_seconds: float = 60.0
    searched_seconds: float = 0.0
    made_seconds: float = math.inf


class Observed(NamedTuple):
    """A resource as it is.

    Attributes:
        state: its value is None for none.
        handle: leads to it.
        is_new: whether it was found in another way than by its handle.
    """

    state: State = NOTHING
    handle: TerraformHandle = NO_HANDLE
    is_new: bool = False


async def find(provider: Provider, sought: Sought) -> Observed:
    """The resource as it is now.

    Raises:
        LehrError: it cannot be read, or it cannot be known which one it is.
    """
    resource, handle = sought.resource, sought.handle
    _require_usable(sought)
    if handle.found:
        state = await read_known(provider, sought)
        if state.value is not None:
            return await _unless_overtaken(provider, sought, state)
    if resource.import_ is not None:
        state = await _imported(provider, sought, resource.import_)
        if state.value is not None:
            return _found(sought, state, resource.import_)
    if sought.lost and sought.lost != resource.verified_push:
        return await _of_lost_push(provider, sought)
    if sought.made_seconds < sought.visible_seconds:
        raise TransientError(
            f"the {resource.type} {handle.id} is not visible".replace("  ", " "),
            code="TER111",
            why=f"it was created less than {sought.visible_seconds:g} s ago; APIs may hide it for a while",
        )
    return Observed(handle=NO_HANDLE)


async def read_known(provider: Provider, sought: Sought) -> State:
    """The resource that the handle leads to; without a value if it is gone."""
    handle = sought.handle
    if handle.id:
        state = await _tried(provider, sought, handle.id)
        if state.value is not None:
            return state
    if handle.import_id and handle.import_id != handle.id:
        state = await _tried(provider, sought, handle.import_id)
        if state.value is not None and state.value.get("id", handle.id) == handle.id:
            return state
    return await _read(provider, sought, await _upgraded(provider, sought), handle.private)


async def _tried(provider: Provider, sought: Sought, id: str) -> State:
    """As `_imported`; nothing if the type cannot be imported, or not by this id."""
    try:
        imported = await provider.import_resource(sought.resource.type, id)
    except ProviderError as error:
        if meaning(error.diagnostics) in (Meaning.PASSING, Meaning.UNANSWERED, Meaning.REFUSED):
            raise _look_error(sought, error) from None
        return NOTHING
    value = imported.value
    if value is not None and id == sought.handle.id and "id" in value:
        value = {**value, "id": id}  # an import guesses another one from an id that is not an import id
    return await _read(provider, sought, value, sought.handle.private or imported.private)


async def _imported(provider: Provider, sought: Sought, id: str) -> State:
    """The resource with this import id, as it would be if intent had been applied to it."""
    sought = sought._replace(handle=replace(NO_HANDLE, import_id=id))
    try:
        imported = await provider.import_resource(sought.resource.type, id)
    except ProviderError as error:
        kind = meaning(error.diagnostics)
        if kind is Meaning.MISSING:
            return NOTHING
        if kind is Meaning.OTHER:  # a type without import, or the id of a state instead of an import id
            state = await _read(provider, sought, null_value(sought.schema.block), b"")
            if state.value is not None or _NO_IMPORT.search(str(error)):
                return state
        raise _look_error(sought, error, known_to_pass=False) from None
    return await _read(provider, sought, imported.value, imported.private)


async def _read(provider: Provider, sought: Sought, base: Value, private: bytes) -> State:
    if base is None:
        return NOTHING
    value = laid_over(sought.schema.block, base, sought.config, sought.intended.records, sought.handle)
    try:
        return await provider.read_resource(sought.resource.type, State(value, private))
    except ProviderError as error:
        if meaning(error.diagnostics) is Meaning.MISSING:
            return NOTHING
        raise _look_error(sought, error) from None


async def _upgraded(provider: Provider, sought: Sought) -> Value:
    """The resource as far as the handle knows it, in the provider's schema of today."""
    handle, schema = sought.handle, sought.schema
    known = {**null_value(schema.block), **_in(schema, handle.residue)}
    if "id" in known:
        known["id"] = handle.id or handle.import_id
    if handle.schema == schema.version:
        return known
    try:
        old = msgspec.json.encode({**handle.residue, "id": handle.id})
        return await provider.upgrade_state(sought.resource.type, handle.schema, old)
    except ProviderError as error:
        raise StalledError(
            f"the handle of a {sought.resource.type} cannot be upgraded",
            code="TER112",
            why=str(_look_error(sought, error)),
            fix="name the resource in `import: ID`",
        ) from None


async def _unless_overtaken(provider: Provider, sought: Sought, state: State) -> Observed:
    """The resource of the handle, unless a lost push has replaced it, or intent names another one."""
    resource, handle = sought.resource, sought.handle
    if sought.lost and (tagged := await _tagged(provider, sought)) is not None:
        return tagged
    if resource.import_ is None or resource.import_ == handle.import_id:
        return Observed(state, handle)
    other = await _imported(provider, sought, resource.import_)
    if other.value is not None and identity(other.value) != identity(state.value):
        raise StalledError(
            f"this asset has the {resource.type} {identity(state.value)}, and `import` names another one",
            code="TER113",
            why="the first one would be left behind",
            fix="declare the other one as an asset of its own, or correct `import`",
        )
    # A name in intent may have changed with the resource: the handle leads to it.
    return Observed(state, handle)


async def _of_lost_push(provider: Provider, sought: Sought) -> Observed:
    resource, lost = sought.resource, sought.lost
    tagged = await _tagged(provider, sought)
    if tagged is not None:
        return tagged
    if _searched_by_tag(provider, sought) or _is_identified(sought):
        if sought.searched_seconds >= sought.visible_seconds:
            return Observed()
        raise TransientError(
            f"it is not known whether the push {lost} has created a {resource.type}",
            code="TER117",
            why=f"it is not there; APIs may take {sought.visible_seconds:g} s to show what was created",
        )
    raise StalledError(
        f"the push {lost} may have created a {resource.type}, which cannot be found",
        code="TER114",
        why="its answer was lost; creating it again could make a second one",
        fix=f"if the resource is there, add `import: ID`; if not, add `verified_push: {lost}`",
    )


async def _tagged(provider: Provider, sought: Sought) -> Observed | None:
    """The resource that the lost push has created; None for none, or if the type cannot be searched."""
    if not _searched_by_tag(provider, sought):
        return None
    type, attribute = sought.resource.type, sought.intended.provider.operation_tag
    block = provider.schema.data_sources[type].block
    config, _problems = configured(block, {attribute: {TAG: sought.lost}})
    try:
        data = await provider.read_data_source(type, config)
    except ProviderError as error:
        if meaning(error.diagnostics) is Meaning.MISSING:
            return None
        raise _look_error(sought, error) from None
    id = (data or {}).get("id")
    if not isinstance(id, str) or not id:
        return None
    state = await _imported(provider, sought, id)
    return None if state.value is None else _found(sought, state, "")


def _is_identified(sought: Sought) -> bool:
    """Whether `import` names what intent would create, and not only what it adopts: it contains its name."""
    import_id, config = sought.resource.import_, sought.config or {}
    return import_id is not None and any(
        isinstance(item, str) and len(item) >= _LEAST_NAME and item in import_id for item in config.values()
    )


def _searched_by_tag(provider: Provider, sought: Sought) -> bool:
    """Whether the provider has a data source of the type that can be searched by tags alone."""
    type, attribute = sought.resource.type, sought.intended.provider.operation_tag
    source = provider.schema.data_sources.get(type)
    if not attribute or source is None or not may_be_tagged(sought.schema.block, attribute):
        return False
    _config, problems = configured(source.block, {attribute: {TAG: sought.lost}})
    return may_be_tagged(source.block, attribute) and not errors(problems)


def _found(sought: Sought, state: State, import_id: str) -> Observed:
    handle = new_handle(sought, state, import_id)
    return Observed(state, handle, is_new=True)


def new_handle(sought: Sought, state: State, import_id: str, **more: Any) -> TerraformHandle:
    """The handle of a resource that was found or created with the intent of `sought`."""
    block, intended = sought.schema.block, sought.intended
    kept = TerraformHandle(
        type=sought.resource.type,
        import_id=import_id,
        private=state.private,
        schema=sought.schema.version,
        applied=intended.records,
        incarnation=sought.incarnation,
        **more,
    )
    return handle_of(block, state.value, sought.config, kept, intended.secrecy(block, state.value).hidden)


def _require_usable(sought: Sought) -> None:
    resource, handle = sought.resource, sought.handle
    if handle.type and handle.type != resource.type:
        raise StalledError(
            f"this asset has a {handle.type}, and intent has the type {resource.type}",
            code="TER115",
            why=f"the {handle.type} {handle.id} would be left behind".replace("  ", " "),
            fix="declare the new resource as another asset, and turn this one down",
        )
    if handle.schema > sought.schema.version:
        raise StalledError(
            f"the {resource.type} was last managed by a newer version of its provider",
            code="TER116",
            why=f"its schema had version {handle.schema}; this provider has version {sought.schema.version}",
            fix="use that version of the provider, or a later one",
        )


def _in(schema: Schema, residue: dict[str, Any]) -> dict[str, Any]:
    names = {attribute.name for attribute in schema.block.attributes}
    return {name: value for name, value in residue.items() if name in names}


def _look_error(sought: Sought, error: ProviderError, *, known_to_pass: bool = True) -> Exception:
    what = f"the {sought.resource.type} cannot be read"
    return error_of_look(what, error, sought.intended.hidden, known_to_pass=known_to_pass)
