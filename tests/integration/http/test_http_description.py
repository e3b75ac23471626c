"""The OpenAPI document says what there is: every path, parameter, answer and problem, and no other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
from msgspec.structs import replace
from starlette.routing import Route

from lehr.base.clock import SystemClock
from lehr.http.application import Application
from lehr.http.catalogue import CATALOGUE
from lehr.http.hooks import Hook
from lehr.http.limits import Limits
from lehr.http.openapi import openapi
from lehr.http.problems import STATUS
from lehr.http.watch_streams import OfWatch
from lehr.model.writes import RecordDecision
from lehr.query.run_state import idle
from lehr.testing.conformance.store.subject import PARTITION, asset
from tests.integration.http.served import INSTALLATION, ROOT, served
from tests.unit.enforce.test_turn_inputs import TURNS, decided

DOCUMENT = openapi(CATALOGUE)


async def no_look() -> None:
    pass


def routes() -> list[Route]:
    limits, clock = Limits(), SystemClock()
    nothing: Any = None  # routes are made without it
    application = Application(
        nothing,
        nothing,
        INSTALLATION,
        clock,
        limits,
        lambda scope, last: None,
        lambda: idle(0.0),
        Hook(lambda: "secret", no_look, clock),
    )
    return application.routes()


def test_every_route_is_described_and_no_other() -> None:
    described = {(path, method.upper()) for path, item in DOCUMENT["paths"].items() for method in item}
    there = {
        (route.path.replace(":path", ""), method)
        for route in routes()
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert described == there


def test_every_parameter_is_described_and_no_other() -> None:
    kinds = {item.name: item.parameters for item in CATALOGUE} | {"watch": OfWatch}
    for path, item in DOCUMENT["paths"].items():
        if "get" not in item or item["get"]["operationId"] not in kinds:
            continue
        fields = msgspec.structs.fields(kinds[item["get"]["operationId"]])
        described = {given["name"]: given for given in item["get"]["parameters"] if given["in"] != "header"}
        assert {field.encode_name: field.required for field in fields} == {
            name: given["required"] for name, given in described.items()
        }
        in_path = {name for name, given in described.items() if given["in"] == "path"}
        assert in_path == {part[1:-1] for part in path.split("/") if part.startswith("{")}


def test_operations_have_names_of_their_own() -> None:
    names = [operation["operationId"] for item in DOCUMENT["paths"].values() for operation in item.values()]
    assert len(names) == len(set(names))


def test_every_problem_is_described_with_its_codes() -> None:
    responses = DOCUMENT["components"]["responses"]
    assert {int(status) for status in responses} == set(STATUS.values())
    for code, status in STATUS.items():
        assert code in responses[str(status)]["description"]


def test_every_reference_leads_somewhere() -> None:
    def follow(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                found: Any = DOCUMENT
                for part in value["$ref"].removeprefix("#/").split("/"):
                    found = found[part]
            for item in value.values():
                follow(item)
        elif isinstance(value, list):
            for item in value:
                follow(item)

    follow(DOCUMENT)


QUERIES = {
    "referrers": "asset=a",
    "versions": "asset=a",
    "releases": "asset=a",
    "blame": "asset=a",
    "why": "asset=a",
    "graph": "around=a",
    "what-if": "asset=a&if=retry&if=approve",
    "unblock": "asset=a",
    "plan": "selector=all",
    "replay": "decision=1",
    "rollout-forecast": "policy=none",
    "rollout-canary": "policy=none",
    "former-referrers": "asset=a",
    "claimants": "claim=x",
    "addon-since": "asset=a&addon=x",
    "usage": "key=x",
    "prunable": "keep=1&before=2026-01-31T12:00:00Z",
}
KNOWN = {
    "partition": PARTITION,
    "at": "latest",
    "id": "a",
    "sequence": "1",
    "name": "none@1",
    "operation": "none",
}
MISSING = (
    "imported/",
    "operations/",
    "rollouts/",
    "rollout-forecast",
    "rollout-canary",
    "/what-if",
    "/unblock",
    "/plan",
)
OF_TYPES = {"name": "test.Thing"}


def test_what_is_answered_is_as_it_is_described(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            server.publish([asset("a", "x")])
            server.publish([asset("b", "a")], mentions={"b": ["a"]})
            decision, inputs = decided(*TURNS["a check"])
            server.store.commit([RecordDecision(replace(decision, partition=PARTITION), inputs)])
            for path, item in DOCUMENT["paths"].items():
                if "get" not in item or path.endswith(("/watch", "/events")):  # which have no end
                    continue
                query = QUERIES.get(item["get"]["operationId"], "")
                names = {**KNOWN, **OF_TYPES} if "/types/" in path else KNOWN
                answer = await server.get(f"{path.format(**names)}?{query}")
                status = 404 if any(name in path for name in MISSING) else 200
                assert answer.status == status, (path, answer.content)
                described = item["get"]["responses"][str(status)]
                if "$ref" in described:
                    described = DOCUMENT["components"]["responses"][str(status)]
                media = answer.headers["content-type"].partition(";")[0]
                schema = {**described["content"][media]["schema"], "components": DOCUMENT["components"]}
                jsonschema_rs.validate(schema, answer.json)

    asyncio.run(main())


def test_the_document_is_served(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path) as server:
            answer = await server.get("/openapi.json")
            assert answer.json["paths"].keys() == DOCUMENT["paths"].keys()
            again = await server.get("/openapi.json", [("If-None-Match", answer.headers["etag"])])
            assert again.status == 304
            assert (await server.get(f"{ROOT}/hook")).status == 404

    asyncio.run(main())
