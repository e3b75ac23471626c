"""The OpenAPI document, made from the resources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lehr import __version__
from lehr.base.digest import digest_bytes
from lehr.base.moments import described
from lehr.client.wire import BatchDocument, Problem
from lehr.http import event_streams, problems, watch_streams
from lehr.http.event_streams import OfEvents
from lehr.http.hooks import HOOK_PATH
from lehr.http.problems import STATUS
from lehr.http.questions import (
    PARTITION_PATH,
    Catalogue,
    NoParameters,
    Question,
    Representation,
    Resource,
    RunStates,
)
from lehr.http.target_selection import SELECT_PATH, SUMMARY
from lehr.http.watch_streams import OfWatch
from lehr.model.feed import FeedEntry
from lehr.query.run_state import RunState, idle
from lehr.rollouts import Selection
from lehr.rollouts.question import Question as SelectionQuestion

WATCH_PATH = f"{PARTITION_PATH}/watch"
EVENTS_PATH = f"{PARTITION_PATH}/events"
HEALTH_PATH = "/healthz"
RUN_PATH = "/v1/run"
OPENAPI_PATH = "/openapi.json"

_REF = "#/components/schemas/{name}"


class Health(msgspec.Struct, frozen=True):
    """The server and its store answer.

    Attributes:
        partitions: their number.
        running: whether a `lehr run` answers next to this server.
    """

    status: str
    partitions: int
    running: bool


_HEALTH = "Whether the server and its store answer."
_RUN = "Whether a `lehr run` is active on this state, and when it last checked the source and production."


def of_server(run_state: RunStates, document: msgspec.Raw) -> Catalogue:
    """Resources of every server besides those of its store; `document` describes them all."""
    found = Catalogue()
    tag = digest_bytes(bytes(document))[:16]

    @found.answered_by(HEALTH_PATH, _HEALTH, NoParameters, Health, name="health", apart=True)
    def _health(question: Question, _asked: NoParameters) -> Representation:
        return Representation(
            lambda: Health("ok", len(question.store.intent.partitions()), run_state().active)
        )

    @found.answered_by(RUN_PATH, _RUN, NoParameters, RunState, apart=True)
    def _run(_question: Question, _asked: NoParameters) -> Representation:
        return Representation(run_state)

    @found.answered_by(OPENAPI_PATH, "This document.", NoParameters, dict[str, Any], name="openapi")
    def _description(_question: Question, _asked: NoParameters) -> Representation:
        return Representation(lambda: document, tag)

    return found


def openapi(resources: Sequence[Resource]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of `resources`, and of those that every server has."""
    everything = (*resources, *of_server(lambda: idle(0.0), msgspec.Raw(b"{}")))
    kinds = [*(item.answers for item in everything), BatchDocument, FeedEntry, Problem]
    kinds += [SelectionQuestion, Selection]
    schemas, components = described(msgspec.json.schema_components(kinds, ref_template=_REF))
    by_kind = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, Any] = {
        item.path: {"get": _operation(item, by_kind[repr(item.answers)])} for item in everything
    }
    paths[WATCH_PATH] = {"get": _watch(by_kind[repr(BatchDocument)])}
    paths[EVENTS_PATH] = {"get": _events(by_kind[repr(FeedEntry)])}
    paths[HOOK_PATH] = {"post": _HOOK}
    paths[SELECT_PATH] = {"post": _select(by_kind[repr(SelectionQuestion)], by_kind[repr(Selection)])}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Lehr",
            "version": __version__,
            "description": "Intent and its status. Read-only: GET, and HEAD, which is GET without the "
            "content. POST asks what does not fit into a URL, and changes nothing. Errors are problem+json "
            "(RFC 9457).",
        },
        "paths": paths,
        "components": {"schemas": components, "responses": _RESPONSES},
    }


_ANY = (400, 406, 413, 414, 421, 431, 500, 503)
_OF_SOMETHING = (404, 410)
_OF_DRY_RUN = (401, 408)


def _responses_of_problems() -> Iterator[tuple[str, dict[str, Any]]]:
    """One response for each status, with its codes."""
    for status in sorted(set(STATUS.values())):
        codes = " or ".join(code for code, other in STATUS.items() if other == status)
        response = _content(f"{codes}: the reason of the failure.", _PROBLEM, problems.MEDIA_TYPE)
        if status == STATUS["Busy"]:
            response["headers"] = {"Retry-After": {"schema": {"type": "integer"}}}
        yield str(status), response


def _refused(*statuses: int) -> dict[str, Any]:
    """References to those responses."""
    return {str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses}


def _content(description: str, schema: Mapping[str, Any], media: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {media: {"schema": schema}}}


_PROBLEM = {"$ref": _REF.format(name="Problem")}
_RESPONSES = dict(_responses_of_problems())
_ETAG = {"ETag": {"description": "Present if the content can be cached.", "schema": {"type": "string"}}}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "Entity tags of cached responses.",
    "schema": {"type": "string"},
}

_HOOK = {
    "operationId": "hook",
    "summary": "Triggers a check of the source. Only if `lehr run` has a webhook secret.",
    "description": "A signed push event of GitHub, GitLab or Gitea. Its content is not used.",
    "parameters": [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
        for name in ("X-Hub-Signature-256", "X-Gitea-Signature", "X-Gitlab-Token")
    ],
    "requestBody": {
        "content": {
            media: {"schema": {}} for media in ("application/json", "application/x-www-form-urlencoded")
        }
    },
    "responses": {
        "202": {"description": "The check is scheduled."},
        **_refused(400, 401, 404, 408, 413, 414, 415, 431, 500),
    },
}


def _select(question: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operationId": "select",
        "summary": SUMMARY,
        "requestBody": {"required": True, "content": {"application/json": {"schema": question}}},
        "responses": {
            "200": _content("The units to update, and why not the others.", answer),
            **_refused(400, 406, 408, 413, 414, 415, 421, 431, 500, 503),
        },
    }


def _operation(item: Resource, schema: Mapping[str, Any]) -> dict[str, Any]:
    whole = schema
    if "fields" in item.parameters.__struct_fields__:
        whole = {"description": "With `fields`, assets only have these.", "type": "object"}
    of_something = _OF_SOMETHING if item.parameters.__struct_fields__ else ()
    return {
        "operationId": item.name,
        "summary": item.summary,
        "parameters": [*_parameters(item.parameters, item.path), _IF_NONE_MATCH],
        "responses": {
            "200": {**_content(item.summary, whole), "headers": _ETAG},
            "304": {"description": "Nothing changed since the response with this ETag.", "headers": _ETAG},
            **_refused(*_ANY, *of_something, *(_OF_DRY_RUN if item.dry else ())),
        },
    }


def _watch(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "operationId": "watch",
        "summary": "The changes of each incarnation in order, without end: one line of JSON each.",
        "parameters": _parameters(OfWatch, WATCH_PATH),
        "responses": {
            "200": _content("Lines.", schema, watch_streams.MEDIA_TYPE),
            **_refused(*_ANY, *_OF_SOMETHING),
        },
    }


def _events(schema: Mapping[str, Any]) -> dict[str, Any]:
    header = {
        "name": "Last-Event-ID",
        "in": "header",
        "required": False,
        "schema": {"type": "string"},
        "description": "The id of the last event that was received.",
    }
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": schema}
    event = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "event": {"type": "string"}, "data": data},
        "required": ["data"],
    }
    return {
        "operationId": "events",
        "summary": "What each commit changes, without end: a server-sent event for each.",
        "parameters": [*_parameters(OfEvents, EVENTS_PATH), header],
        "responses": {
            "200": _content("Events, whose data are JSON.", event, event_streams.MEDIA_TYPE),
            **_refused(*_ANY, *_OF_SOMETHING),
        },
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
