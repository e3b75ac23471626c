"""What the fake provider answers to each call."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from lehr.plugins.terraform.provider import Block
from lehr.plugins.terraform.values.cty_types import implied_type
from lehr.plugins.terraform.values.json_codec import from_json
from lehr.plugins.terraform.values.nulls import null_value
from lehr.plugins.terraform.wire import calls, messages
from lehr.plugins.terraform.wire.calls import Call, packed, path_message, value_of
from tests.terraform import fake_behaviour, fake_types
from tests.terraform.fake_messages import PROTOCOL, error, message_of, schema_message
from tests.terraform.fake_store import Store

VERSION = int(os.environ.get("FAKE_SCHEMA_VERSION", "1"))


class FakeProvider:
    """Answers calls."""

    def __init__(self) -> None:
        self.schema = fake_types.schema(PROTOCOL, VERSION, os.environ.get("FAKE_PLAN_DESTROY") != "no")
        self.store = Store("/nowhere")
        self.bad_days: dict[str, str] = {}
        self.config: dict[str, Any] = {}

    async def answer(self, call: Call, request: Any) -> Any:
        handlers: dict[Call, Any] = {
            calls.SCHEMA: lambda _request: self._schemas(),
            calls.VALIDATE_PROVIDER: self._validate_provider,
            calls.CONFIGURE: self._configure,
            calls.VALIDATE_RESOURCE: self._validate,
            calls.VALIDATE_DATA: lambda _request: messages.ValidateConfig.Response(),
            calls.UPGRADE: self._upgrade,
            calls.READ: self._read,
            calls.PLAN: self._plan,
            calls.IMPORT: self._import,
            calls.READ_DATA: self._read_data,
            calls.STOP: lambda _request: messages.StopProvider.Response(),
        }
        if call is calls.APPLY:
            return await self._apply(request)
        return handlers[call](request)

    def _schemas(self) -> Any:
        answer: Any = calls.SCHEMA.answer(PROTOCOL)(provider=schema_message(self.schema.provider))
        for name, schema in self.schema.resources.items():
            answer.resource_schemas[name].CopyFrom(schema_message(schema))
        for name, schema in self.schema.data_sources.items():
            answer.data_source_schemas[name].CopyFrom(schema_message(schema))
        answer.server_capabilities.plan_destroy = self.schema.plan_destroy
        optional = os.environ.get("FAKE_SCHEMA_OPTIONAL") != "no"
        answer.server_capabilities.get_provider_schema_optional = optional
        return answer

    def _validate_provider(self, request: Any) -> Any:
        return messages.ValidateProviderConfig.Response(prepared_config=request.config)

    def _configure(self, request: Any) -> Any:
        config = value_of(request.config, implied_type(self.schema.provider.block))
        if self.config:
            return messages.ConfigureProvider.Response(diagnostics=[error("configured twice")])
        if config["token"] == "wrong":
            detail = "the token wrong is not valid"
            return messages.ConfigureProvider.Response(diagnostics=[error("no access", detail)])
        self.config = config
        self.store = Store(config["store"])
        self.store.note_process()
        self.bad_days = config["bad_days"] or {}
        return messages.ConfigureProvider.Response()

    def _validate(self, request: Any) -> Any:
        config = value_of(request.config, self._type(request.type_name))
        found = map(message_of, fake_behaviour.problems_of(config))
        return messages.ValidateConfig.Response(diagnostics=found)

    def _upgrade(self, request: Any) -> Any:
        state = json.loads(request.raw_state.json)
        if request.version < 2 <= VERSION and "title" in state:
            state["text"] = state.pop("title")
        known = {name: one for name, one in state.items() if name in self._type(request.type_name)[1]}
        value = from_json(json.dumps(known).encode(), self._type(request.type_name))
        return messages.UpgradeResourceState.Response(
            upgraded_state=packed(value, self._type(request.type_name))
        )

    def _read(self, request: Any) -> Any:
        type_ = self._type(request.type_name)
        state = fake_behaviour.read(request.type_name, value_of(request.current_state, type_), self.store)
        private = request.private or b'{"read": true}'
        return messages.ReadResource.Response(new_state=packed(state, type_), private=private)

    def _plan(self, request: Any) -> Any:
        name, type_ = request.type_name, self._type(request.type_name)
        prior, proposed, config = (
            value_of(one, type_) for one in (request.prior_state, request.proposed_new_state, request.config)
        )
        if proposed is None and prior.get("protected"):
            protected = error("it is protected", "", "protected")
            return messages.PlanResourceChange.Response(diagnostics=[protected])
        value = fake_behaviour.planned(self._block(name), prior, proposed, config)
        return messages.PlanResourceChange.Response(
            planned_state=packed(value, type_),
            requires_replace=map(path_message, fake_behaviour.replaced(name, prior, value)),
            planned_private=request.prior_private or b'{"planned": true}',
        )

    async def _apply(self, request: Any) -> Any:
        name, type_ = request.type_name, self._type(request.type_name)
        prior, value, config = (
            value_of(one, type_) for one in (request.prior_state, request.planned_state, request.config)
        )
        seconds = (value or prior).get("seconds") if name == "fake_slow" else None
        await asyncio.sleep(seconds or 0)
        diagnostics = []
        if value is None:
            self.store.delete(name, prior["id"])
            state = None
        else:
            state = fake_behaviour.applied(name, self._block(name), value, config, self.store)
            if value.get("fail"):
                diagnostics.append(error("half of it failed", "the rest was made"))
        return messages.ApplyResourceChange.Response(
            new_state=packed(state, type_), private=request.planned_private, diagnostics=diagnostics
        )

    def _import(self, request: Any) -> Any:
        name = request.type_name
        if self.store.get(name, request.id) is None:
            missing = error("there is no such resource", request.id)
            return messages.ImportResourceState.Response(diagnostics=[missing])
        state = null_value(self._block(name)) | {"id": request.id}
        imported = messages.ImportResourceState.ImportedResource(
            type_name=name, state=packed(state, self._type(name)), private=b'{"imported": true}'
        )
        return messages.ImportResourceState.Response(imported_resources=[imported])

    def _read_data(self, request: Any) -> Any:
        type_ = implied_type(self.schema.data_sources[request.type_name].block)
        value = value_of(request.config, type_)
        if request.type_name == "fake_lookup":
            found = self.store.get("fake_given", value["name"])
            value |= {"exists": found is not None, "text": found["text"] if found else None}
        else:
            value["ids"] = [
                id_
                for id_ in self.store.ids("fake_made")
                if value["tag"] in ((self.store.get("fake_made", id_) or {}).get("tags") or {})
            ]
        return messages.ReadDataSource.Response(state=packed(value, type_))

    def _block(self, name: str) -> Block:
        return self.schema.resources[name].block

    def _type(self, name: str) -> Any:
        return implied_type(self._block(name))
