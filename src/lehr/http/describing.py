"""The OpenAPI document, made from what there is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lehr import __version__
from lehr.http import problems, watching
from lehr.http.questions import Resource
from lehr.http.watching import OfWatch
from lehr.sdk.wire import BatchDocument, Problem

WATCH_PATH = "/v1/partitions/{partition}/watch"
HEALTH_PATH = "/healthz"
OPENAPI_PATH = "/openapi.json"

_REF = "#/components/schemas/{name}"


class Health(msgspec.Struct, frozen=True):
    """The server answers, and so does its store.

    Attributes:
        partitions: how many there are.
        running: whether a `lehr run` answers beside this server.
    """

    status: str
    partitions: int
    running: bool


def openapi(resources: Sequence[Resource]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of `resources`, the watch and the health of the server."""
    kinds = [*(item.answers for item in resources), BatchDocument, Problem, Health]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    by_kind = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, Any] = {
        item.path: {"get": _operation(item, by_kind[repr(item.answers)])} for item in resources
    }
    paths[WATCH_PATH] = {"get": _watch(by_kind[repr(BatchDocument)])}
    paths[HEALTH_PATH] = {
        "get": {
            "operationId": "health",
            "summary": "Whether the server answers, and its store does.",
            "responses": {"200": _content("Both do.", by_kind[repr(Health)]), "default": _PROBLEM},
        }
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lehr",
            "version": __version__,
            "description": "Intent and what became of it. Read-only. Errors are problem+json (RFC 9457).",
        },
        "paths": paths,
        "components": {"schemas": components},
    }


_PROBLEM = {
    "description": "Why there is no answer.",
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}},
}


def _content(description: str, schema: Mapping[str, Any], media: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


def _operation(item: Resource, schema: Mapping[str, Any]) -> dict[str, Any]:
    whole = schema
    if "fields" in item.parameters.__struct_fields__:
        whole = {"description": "With `fields`, assets have these alone.", "type": "object"}
    return {
        "operationId": item.name,
        "summary": item.summary,
        "parameters": _parameters(item.parameters, item.path),
        "responses": {
            "200": _content(item.summary, whole),
            "304": {"description": "Nothing has changed since the answer with this ETag."},
            "default": _PROBLEM,
        },
    }


def _watch(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operationId": "watch",
        "summary": "What each incarnation changes, in order, for ever: a line of JSON for each.",
        "parameters": _parameters(OfWatch, WATCH_PATH),
        "responses": {"200": _content("Lines.", schema, watching.MEDIA_TYPE), "default": _PROBLEM},
    }


def _parameters(kind: type[msgspec.Struct], path: str) -> list[dict[str, Any]]:
    in_path = set(re.findall(r"{(\w+)}", path))
    found = []
    for field in msgspec.structs.fields(kind):
        schema = msgspec.json.schema(field.type)
        name = field.encode_name
        described: dict[str, Any] = {
            "name": name,
            "in": "path" if name in in_path else "query",
            "required": field.required,
            "schema": schema,
        }
        if "description" in schema:
            described["description"] = schema.pop("description")
        if not field.required:
            schema["default"] = field.default
        found.append(described)
    return found
