"""Rules of the payload of `lehr.HttpResource`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.plugins.http_resource.payload import TYPES, HttpResource

SECRET = {"secret": "env:TOKEN"}
URL = {"url": "https://api.example.org/things/lamp"}
COLLECTION = {"collection": "https://api.example.org/things", "body": {"name": "lamp"}}


def load(**fields: Any) -> HttpResource:
    return msgspec.convert(fields, HttpResource)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "exactly one of"),
        ({**URL, **COLLECTION}, "exactly one of"),
        ({"url": "ftp://a/b"}, "`url` must start with http"),
        ({"url": "/things"}, "`url` must start with http"),
        ({"url": "https://"}, "and a host"),
        ({"url": "https://a:99999/"}, "not a valid URL"),
        ({"url": "https://[a/"}, "not a valid URL"),
        ({"url": "https://ann:pw@a/"}, "user name or password"),
        ({"url": "https://ann@a/"}, "user name or password"),
        ({"url": "https://a/b c"}, "blanks"),
        ({"url": "https://a/b\n"}, "blanks"),
        ({"url": "https://ä/"}, "blanks"),
        ({"url": "https://a/b#c"}, "fragments"),
        ({"url": "https://a/" + "b" * 2000}, "2,000"),
        ({**COLLECTION, "import": "https://b/1"}, "same server"),
        ({**COLLECTION, "import": "no"}, "`import` must start"),
        ({**URL, "import": "https://a/1"}, "`import` is only for"),
        ({**URL, "match": "/name", "body": {"name": "a"}}, "`match` is only for"),
        ({**URL, "next": "/next"}, "`next` is only for"),
        ({**COLLECTION, "create": "put"}, "`create` must be `post`"),
        ({**COLLECTION, "match": "name"}, "`match` must be a JSON pointer"),
        ({**COLLECTION, "match": "/size"}, "must have text or a whole number at /size"),
        ({**COLLECTION, "match": "/name", "body": {"name": True}}, "whole number at /name"),
        ({**COLLECTION, "id": ""}, "`id` must be a JSON pointer"),
        ({**COLLECTION, "items": "data"}, "`items` must be"),
        ({**COLLECTION, "next": "/a~2"}, "`next` must be"),
        ({**URL, "immutable": ["zone"]}, "`immutable` must be"),
        ({**URL, "ready": {"field": "status", "in": ["up"]}}, "`ready.field` must be"),
        ({**URL, "ready": {"field": "/status", "in": []}}, "length >= 1"),
        ({**URL, "ready": {"field": "/a", "in": ["up"], "failed": ["up"]}}, "same value"),
        ({**URL, "ready": {"field": "/a/b", "in": [1]}, "secrets": {"/a": SECRET}}, "must not be a secret"),
        ({**URL, "secrets": {"password": SECRET}}, "`secrets` must be"),
        ({**URL, "secrets": {"/a": SECRET}, "body": {"a": 1}}, "has a value at /a"),
        ({**URL, "secrets": {"/a/b": SECRET}, "body": {"a": [1]}}, "does not lead through objects"),
        ({**URL, "secrets": {"/a": SECRET, "/a/b": SECRET}}, "/a/b within /a"),
        ({**URL, "secrets": {"/a": "hunter2"}}, "Expected `object`"),
        ({"url": "http://example.org/", "secrets": {"/a": SECRET}}, "without encryption"),
        ({"url": "http://example.org/", "credentials": SECRET}, "`credentials` would be sent without"),
        ({"url": "http://127.0.0.1.example.org/", "credentials": SECRET}, "without encryption"),
        ({**URL, "body": {"": 1}}, "has a key that is empty"),
        ({**URL, "body": {"a": [{"\x1b": 1}]}}, "`body/a/0` has a key"),
        ({**URL, "body": {"a": "x" * 70_000}}, "65,536"),
        ({**URL, "body": {"a": float("nan")}}, "`body/a` is not a number"),
        ({**URL, "body": {"a": "\ud800"}}, "plain JSON"),
        ({**URL, "headers": {"Authorization": "x"}}, "must not have Authorization"),
        ({**URL, "headers": {"host": "x"}}, "must not have host"),
        ({**URL, "headers": {"a b": "x"}}, "invalid name 'a b'"),
        ({**URL, "headers": {"a": "x\r\nb: c"}}, "control characters"),
        ({**URL, "absent_on": []}, "length >= 1"),
        ({**URL, "absent_on": [200]}, ">= 400"),
        ({**URL, "update": "post"}, "Invalid enum value"),
        ({**URL, "bodi": {}}, "bodi"),
    ],
    ids=repr,
)
def test_what_cannot_work_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem) as caught:
        load(**fields)
    assert "pw" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        load(url="ftp://a", match="name", immutable=["b"], headers={"Host": "c"}, body={"": 1})
    assert str(caught.value).count(";") == 5


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8430", "[::1]"])
def test_credentials_may_stay_on_this_machine(host: str) -> None:
    load(url=f"http://{host}/", credentials=SECRET)


def test_a_body_may_not_be_too_deep() -> None:
    body: dict[str, Any] = {}
    for _ in range(40):
        body = {"a": body}
    with pytest.raises(msgspec.ValidationError, match="32 levels"):
        load(**URL, body=body)


def test_two_assets_cannot_claim_one_resource() -> None:
    [item] = TYPES
    assert item.claims is not None

    def claims(**fields: Any) -> list[str]:
        return list(item.claims(load(**fields)))  # type: ignore[misc]

    assert claims(url="https://API.example.org/a") == claims(url="https://api.example.org:443/a")
    assert claims(url="https://a/b?c=1") != claims(url="https://a/b?c=2")
    assert claims(**COLLECTION) == []
    assert claims(**COLLECTION, match="/name") == ["http:https://api.example.org:443/things#/name=lamp"]
    imported = "https://api.example.org/things/1"
    assert claims(**{**COLLECTION, "import": imported}) == claims(url=imported)
