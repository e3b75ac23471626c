"""A cloud in memory with resources of several kinds, and a Terraform provider of it."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from lehr.plugins.terraform.payload import TerraformProvider
from lehr.plugins.terraform.placeholders import filled
from lehr.plugins.terraform.provider import (
    UNKNOWN,
    Applied,
    Attribute,
    Block,
    Diagnostic,
    NestedBlock,
    Nesting,
    Planned,
    ProviderError,
    ProviderSchema,
    Schema,
    Severity,
    State,
    Value,
)
from lehr.plugins.terraform.values.canonical import has_unknown
from lehr.plugins.terraform.values.nulls import null_value
from lehr.sdk.secrets import SecretValue


def text(name: str, **more: Any) -> Attribute:
    return Attribute(name=name, type="string", **more)


ID = text("id", computed=True)
TAGS = Attribute(name="tags", type=["map", "string"], optional=True)
RULE = NestedBlock(
    "rule",
    Block(
        attributes=(
            Attribute(name="port", type="number", required=True),
            text("token", optional=True, sensitive=True),
        )
    ),
    Nesting.LIST,
)

QUEUE = Block(
    attributes=(
        ID,
        text("name", required=True),
        text("arn", computed=True),
        text("policy", optional=True),
        Attribute(name="delay", type="number", optional=True, computed=True),
        Attribute(name="zones", type=["set", "string"], optional=True),
        Attribute(name="force_destroy", type="bool", optional=True),
        TAGS,
    ),
    blocks=(RULE,),
)
PARAMETER = Block(
    attributes=(
        ID,
        text("name", required=True),
        text("value", required=True, sensitive=True),
        text("description", optional=True),
        Attribute(name="version", type="number", computed=True),
    )
)
NETWORK = Block(attributes=(ID, text("range", required=True), text("comment", optional=True), TAGS))
DISK = Block(attributes=(ID, Attribute(name="size", type="number", required=True)))
KEY = Block(attributes=(ID, text("user", required=True), text("secret", computed=True, sensitive=True)))
ATTACHMENT = Block(
    attributes=(ID, text("role", required=True), text("policy", required=True), text("note", optional=True))
)

IDENTITY = Block(
    attributes=(ID, text("account", computed=True), text("secret", computed=True, sensitive=True))
)

SCHEMA = ProviderSchema(
    provider=Schema(
        0, Block(attributes=(text("region", required=True), text("token", optional=True, sensitive=True)))
    ),
    resources={
        "cloud_queue": Schema(1, QUEUE),
        "cloud_parameter": Schema(0, PARAMETER),
        "cloud_network": Schema(0, NETWORK),
        "cloud_disk": Schema(0, DISK),
        "cloud_key": Schema(0, KEY),
        "cloud_attachment": Schema(0, ATTACHMENT),
    },
    data_sources={
        "cloud_network": Schema(0, Block(attributes=(ID, TAGS, text("range", computed=True)))),
        "cloud_identity": Schema(0, IDENTITY),
    },
    plan_destroy=True,
)

FIXED = {
    "cloud_queue": {"name"},
    "cloud_parameter": {"name"},
    "cloud_network": {"range"},
    "cloud_disk": set(),
    "cloud_key": {"user"},
    "cloud_attachment": {"role", "policy"},
}
"""Arguments for whose change a resource is replaced."""

UNREADABLE = {"cloud_queue": {"force_destroy"}, "cloud_key": {"secret"}}
"""Attributes that the API does not return."""

NAMED = {"cloud_queue": "name", "cloud_parameter": "name"}
"""Types with given names; others get names from the cloud."""

ACCOUNT = "4711"


class Cloud:
    """What exists, and what happens to calls.

    Attributes:
        resources: by type and id.
        before: awaited with the name of each call and its type, before it is carried out; may raise.
        after: the same after it was carried out, in place of the answer if it raises.
        hides: how many reads of a resource, by id, find nothing.
        creation_error: the error with which each creation ends, although it creates; empty for none.
        calls: names of calls and their types.
        schema: of the provider.
    """

    def __init__(self) -> None:
        self.resources: dict[tuple[str, str], dict[str, Any]] = {}
        self.before: Callable[[str, str], Awaitable[None]] | None = None
        self.after: Callable[[str, str], Awaitable[None]] | None = None
        self.hides: dict[str, int] = {}
        self.creation_error = ""
        self.calls: list[tuple[str, str]] = []
        self.schema = SCHEMA
        self.made = 0
        self.processes: list[MemoryProvider] = []

    async def start(self, payload: TerraformProvider, secrets: Mapping[str, SecretValue]) -> MemoryProvider:
        await self.happen("start", "")
        config = filled(payload.config, {name: value.text() for name, value in secrets.items()})
        provider = MemoryProvider(self, config)
        self.processes.append(provider)
        return provider

    async def happen(self, call: str, type: str) -> None:
        self.calls.append((call, type))
        await asyncio.sleep(0)
        if self.before is not None:
            await self.before(call, type)

    async def happened(self, call: str, type: str) -> None:
        if self.after is not None:
            await self.after(call, type)

    def everything(self) -> Any:
        """All resources as a value to compare, without versions, which only count."""
        return copy.deepcopy(
            {
                place: {k: v for k, v in item.items() if k != "version"}
                for place, item in self.resources.items()
            }
        )

    def of(self, type: str) -> list[dict[str, Any]]:
        return [item for (kind, _id), item in self.resources.items() if kind == type]

    def count(self, call: str) -> int:
        return sum(name == call for name, _type in self.calls)

    def create(self, type: str, value: dict[str, Any]) -> str:
        self.made += 1
        number = f"{self.made:06d}"
        if type in NAMED:
            name = value[NAMED[type]]
            id = f"https://queue.example/{ACCOUNT}/{name}" if type == "cloud_queue" else name
            if (type, id) in self.resources:
                raise failure(f"{type} {name!r} already exists")
        elif type == "cloud_attachment":
            id = f"{value['role']}-{number}"
        else:
            id = f"{type.removeprefix('cloud_')}-{number}"
        made: dict[str, Any] = {"id": id}
        if type == "cloud_queue":
            made |= {
                "arn": f"arn:cloud:{value['name']}",
                "delay": value["delay"] if value["delay"] is not UNKNOWN else 0,
            }
        if type == "cloud_parameter":
            made |= {"version": 1}
        if type == "cloud_key":
            made |= {"secret": f"born-{number}-secret"}
        self.resources[type, id] = {**value, **made}
        return id


class MemoryProvider:
    """A `Provider` of a `Cloud`."""

    def __init__(self, cloud: Cloud, config: dict[str, Any]) -> None:
        self.cloud = cloud
        self.config = config
        self.closed = False

    @property
    def schema(self) -> ProviderSchema:
        return self.cloud.schema

    async def validate_resource(self, type: str, config: Value) -> tuple[Diagnostic, ...]:
        await self.cloud.happen("validate", type)
        if config.get("comment") == "refused":
            return (Diagnostic(Severity.ERROR, "comment is refused", "", ("comment",)),)
        return ()

    async def import_resource(self, type: str, id: str) -> State:
        await self.cloud.happen("import", type)
        if type == "cloud_attachment":
            raise failure("resource cloud_attachment doesn't support import")
        return State({**null_value(self._block(type)), "id": id}, id.encode())

    async def upgrade_state(self, type: str, version: int, json: bytes) -> Value:
        await self.cloud.happen("upgrade", type)
        return {**null_value(self._block(type)), **msgspec.json.decode(json)}

    async def read_resource(self, type: str, state: State) -> State:
        await self.cloud.happen("read", type)
        id = state.value["id"]
        known = self.cloud.resources.get((type, id))
        if known is None or self.cloud.hides.get(id, 0):
            self.cloud.hides[id] = max(0, self.cloud.hides.get(id, 0) - 1)
            return State(None)
        unreadable = {name: state.value[name] for name in UNREADABLE.get(type, ())}
        return State({**copy.deepcopy(known), **unreadable}, state.private)

    async def plan(self, type: str, prior: State, proposed: Value, config: Value) -> Planned:
        await self.cloud.happen("plan", type)
        if proposed is None:
            return Planned(None, prior.private)
        fixed = [
            (name,)
            for name in sorted(FIXED[type])
            if prior.value is not None and prior.value[name] != proposed[name]
        ]
        value = copy.deepcopy(proposed)
        if prior.value is None or fixed:
            for attribute in self._block(type).attributes:
                if attribute.computed and config[attribute.name] is None:
                    value[attribute.name] = UNKNOWN
        elif type == "cloud_parameter" and prior.value["value"] != proposed["value"]:
            value["version"] = UNKNOWN
        return Planned(value, prior.private, tuple(fixed))

    async def apply(self, type: str, prior: State, planned: Planned, config: Value) -> Applied:
        await self.cloud.happen("apply", type)
        applied = self._applied(type, prior, planned)
        await self.cloud.happened("apply", type)
        return applied

    def _applied(self, type: str, prior: State, planned: Planned) -> Applied:
        cloud = self.cloud
        if planned.value is None:
            cloud.resources.pop((type, prior.value["id"]), None)
            return Applied(State(None))
        value = copy.deepcopy(planned.value)
        if prior.value is None:
            try:
                id = cloud.create(type, value)
            except ProviderError as error:
                return Applied(State(None), error.diagnostics)
            state = State(copy.deepcopy(cloud.resources[type, id]), id.encode())
            if cloud.creation_error:
                return Applied(state, (Diagnostic(Severity.ERROR, cloud.creation_error),))
            return Applied(state)
        known = cloud.resources[type, prior.value["id"]]
        if value.get("version") is UNKNOWN:
            value["version"] = known["version"] + 1
        assert not has_unknown(value)
        cloud.resources[type, prior.value["id"]] = value
        return Applied(State(copy.deepcopy(value), prior.private))

    async def read_data_source(self, type: str, config: Value) -> Value:
        await self.cloud.happen("data", type)
        if type == "cloud_identity":
            return {"id": ACCOUNT, "account": ACCOUNT, "secret": "born-data-secret"}
        found = [
            item
            for item in self.cloud.of(type)
            if (config["tags"] or {}).items() <= (item["tags"] or {}).items()
        ]
        if len(found) != 1:
            raise failure("no matching network found" if not found else "multiple networks matched")
        return {"id": found[0]["id"], "tags": found[0]["tags"], "range": found[0]["range"]}

    async def close(self) -> None:
        self.closed = True

    def _block(self, type: str) -> Block:
        return self.schema.resources[type].block


def failure(summary: str, detail: str = "", path: tuple[str | int, ...] = ()) -> ProviderError:
    return ProviderError([Diagnostic(Severity.ERROR, summary, detail, path)])
