"""A provider over its own protocol: `lehr.plugins.terraform.provider.Provider`."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from lehr.plugins.terraform.provider import (
    Applied,
    Block,
    Diagnostic,
    Planned,
    ProviderError,
    ProviderGoneError,
    ProviderSchema,
    Schema,
    Severity,
    State,
    Value,
)
from lehr.plugins.terraform.values.cty_types import CtyType, implied_type
from lehr.plugins.terraform.values.redaction import redacted
from lehr.plugins.terraform.values.secret_paths import secret_texts
from lehr.plugins.terraform.wire import calls, messages
from lehr.plugins.terraform.wire.calls import CAPABILITIES, Call, diagnostics_of, packed, path_of, value_of
from lehr.plugins.terraform.wire.connection import Connection

LONGEST_CALL = 300.0
"""Seconds that any call may take but an apply, which has no limit."""

_LONGEST_APPLY = 3600.0
"""Seconds that an apply has to end before its process does."""

TERRAFORM_VERSION = "1.11.4"
"""The version of Terraform whose behaviour is imitated; providers get it."""

_MOST_VALID = 10_000
"""Configurations of which the client remembers, by their digests, that they are valid."""

T = TypeVar("T")


class WireProvider:
    """A running provider. Implements `Provider`; `configure` it before anything else is asked.

    Args:
        end: ends the process.
        seconds: that any call may take but an apply.
    """

    def __init__(
        self,
        connection: Connection,
        schema: ProviderSchema,
        end: Callable[[], Awaitable[None]],
        *,
        seconds: float = LONGEST_CALL,
    ) -> None:
        self._connection = connection
        self._schema = schema
        self._end = end
        self._seconds = seconds
        self._types: dict[tuple[str, str], CtyType] = {}
        self._applies: set[asyncio.Task[Any]] = set()
        self._valid: OrderedDict[bytes, None] = OrderedDict()

    @property
    def schema(self) -> ProviderSchema:
        return self._schema

    @property
    def gone(self) -> str:
        """Why it does not answer any more; empty while it does."""
        return self._connection.gone

    @property
    def applying(self) -> int:
        """How many applies are under way, also those whose caller was cancelled."""
        return len(self._applies)

    async def configure(self, config: Value) -> tuple[Diagnostic, ...]:
        """Configure it, once. Returns warnings.

        Raises:
            ProviderError, ProviderGoneError: as the methods of `Provider`.
        """
        block = self._schema.provider.block
        value = packed(config, implied_type(block))
        checked = await self._call(
            calls.VALIDATE_PROVIDER, messages.ValidateProviderConfig.Request(config=value)
        )
        warnings = _warnings(checked.diagnostics, block, config)
        request = messages.ConfigureProvider.Request(
            terraform_version=TERRAFORM_VERSION, config=value, client_capabilities=CAPABILITIES
        )
        answer = await self._call(calls.CONFIGURE, request)
        return (*warnings, *_warnings(answer.diagnostics, block, config))

    async def validate_resource(self, type: str, config: Value) -> tuple[Diagnostic, ...]:
        """As in `Provider`. A provider checks a configuration alone, so one that is valid stays so."""
        request = messages.ValidateConfig.Request(
            type_name=type, config=packed(config, self._type(type)), client_capabilities=CAPABILITIES
        )
        key = hashlib.sha256(type.encode() + b"\0" + request.config.msgpack).digest()
        if key in self._valid:
            self._valid.move_to_end(key)
            return ()
        answer = await self._call(calls.VALIDATE_RESOURCE, request)
        found = _diagnostics(answer.diagnostics, self._block(type), config)
        if not found:
            self._valid[key] = None
            if len(self._valid) > _MOST_VALID:
                self._valid.popitem(last=False)
        return found

    async def import_resource(self, type: str, id: str) -> State:
        type_ = self._type(type)
        request = messages.ImportResourceState.Request(
            type_name=type, id=id, client_capabilities=CAPABILITIES
        )
        answer = await self._call(calls.IMPORT, request)
        _warnings(answer.diagnostics, self._block(type))
        for one in answer.imported_resources:  # those of other types are for separate resources
            if one.type_name == type:
                return State(self._value(one.state, type_), one.private)
        return State(None)

    async def upgrade_state(self, type: str, version: int, json: bytes) -> Value:
        request = messages.UpgradeResourceState.Request(
            type_name=type, version=version, raw_state=messages.RawState(json=json)
        )
        answer = await self._call(calls.UPGRADE, request)
        _warnings(answer.diagnostics, self._block(type))
        return self._value(answer.upgraded_state, self._type(type))

    async def read_resource(self, type: str, state: State) -> State:
        request = messages.ReadResource.Request(
            type_name=type,
            current_state=packed(state.value, self._type(type)),
            private=state.private,
            client_capabilities=CAPABILITIES,
        )
        answer = await self._call(calls.READ, request)
        _warnings(answer.diagnostics, self._block(type), state.value)
        return State(self._value(answer.new_state, self._type(type)), answer.private)

    async def plan(self, type: str, prior: State, proposed: Value, config: Value) -> Planned:
        type_ = self._type(type)
        request = messages.PlanResourceChange.Request(
            type_name=type,
            prior_state=packed(prior.value, type_),
            proposed_new_state=packed(proposed, type_),
            config=packed(config, type_),
            prior_private=prior.private,
            client_capabilities=CAPABILITIES,
        )
        answer = await self._call(calls.PLAN, request)
        warnings = _warnings(answer.diagnostics, self._block(type), prior.value, config)
        return Planned(
            value=self._value(answer.planned_state, type_),
            private=answer.planned_private,
            replaces=tuple(map(path_of, answer.requires_replace)),
            legacy_types=answer.legacy_type_system,
            warnings=warnings,
        )

    async def apply(self, type: str, prior: State, planned: Planned, config: Value) -> Applied:
        """As in `Provider`. If this call is cancelled, the provider still carries it out.

        Raises:
            ProviderError: it failed, and the answer has no state. Look whether something was made.
        """
        type_ = self._type(type)
        request = messages.ApplyResourceChange.Request(
            type_name=type,
            prior_state=packed(prior.value, type_),
            planned_state=packed(planned.value, type_),
            config=packed(config, type_),
            planned_private=planned.private,
        )
        answer = await self._uncancelled(self._connection.call(calls.APPLY, request, None))
        secret = (self._block(type), prior.value, config)
        if not answer.HasField("new_state"):
            _warnings(answer.diagnostics, *secret)
        state = State(self._value(answer.new_state, type_), answer.private)
        return Applied(state, _diagnostics(answer.diagnostics, *secret))

    async def read_data_source(self, type: str, config: Value) -> Value:
        type_ = self._type(type, data=True)
        value = packed(config, type_)
        check = messages.ValidateConfig.Request(type_name=type, config=value)
        block = _known(self._schema.data_sources, type).block
        _warnings((await self._call(calls.VALIDATE_DATA, check)).diagnostics, block, config)
        request = messages.ReadDataSource.Request(
            type_name=type, config=value, client_capabilities=CAPABILITIES
        )
        answer = await self._call(calls.READ_DATA, request)
        _warnings(answer.diagnostics, block, config)
        return self._value(answer.state, type_)

    async def close(self) -> None:
        """End the process, after its applies have ended, or had an hour."""
        if self._applies:
            await asyncio.wait(self._applies, timeout=_LONGEST_APPLY)
        await self._connection.close()
        await self._end()

    async def _call(self, call: Call, request: Any) -> Any:
        return await self._connection.call(call, request, self._seconds)

    async def _uncancelled(self, call: Coroutine[Any, Any, T]) -> T:
        task = asyncio.ensure_future(call)
        self._applies.add(task)
        task.add_done_callback(self._applied)
        return await asyncio.shield(task)

    def _applied(self, task: asyncio.Task[Any]) -> None:
        self._applies.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may no longer wait

    def _block(self, name: str) -> Block:
        return _known(self._schema.resources, name).block

    def _type(self, name: str, *, data: bool = False) -> CtyType:
        """The type of the values of a resource type or data source; made once."""
        key = ("data" if data else "resource", name)
        if key not in self._types:
            self._types[key] = implied_type(
                _known(self._schema.data_sources if data else self._schema.resources, name).block
            )
        return self._types[key]

    def _value(self, message: messages.DynamicValue, type_: CtyType) -> Value:
        try:
            return value_of(message, type_)
        except ValueError as error:
            raise ProviderGoneError(f"the provider answered with a damaged value: {error}") from None


def _known(schemas: Mapping[str, Schema], name: str) -> Schema:
    if name not in schemas:
        raise ProviderError([Diagnostic(Severity.ERROR, f"the provider does not have {name}")])
    return schemas[name]


def _diagnostics(
    found: Iterable[messages.Diagnostic], block: Block, *values: Value
) -> tuple[Diagnostic, ...]:
    """Those of an answer about `values` of `block`, without what is sensitive in these."""
    diagnostics = diagnostics_of(found)
    if not diagnostics:
        return ()
    secrets = frozenset().union(*(secret_texts(block, value) for value in values))
    return tuple(redacted(one, block, secrets) for one in diagnostics)


def _warnings(found: Iterable[messages.Diagnostic], block: Block, *values: Value) -> tuple[Diagnostic, ...]:
    """The same. Raises `ProviderError` if there are errors among them."""
    diagnostics = _diagnostics(found, block, *values)
    if any(one.severity is Severity.ERROR for one in diagnostics):
        raise ProviderError(diagnostics)
    return diagnostics
