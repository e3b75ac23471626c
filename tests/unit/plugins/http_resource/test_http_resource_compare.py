"""Comparison of resources, and the requests that follow, as pure functions."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.model.diff import Change, Goal
from lehr.model.secret import Secret
from lehr.plugins.http_resource import requests
from lehr.plugins.http_resource.compare import Intended, Observed, compared, differences, same, shown
from lehr.plugins.http_resource.fields import MISSING, at, with_values, within
from lehr.plugins.http_resource.handle import ResourceHandle, parse, references
from lehr.plugins.http_resource.payload import HttpResource
from lehr.plugins.http_resource.places import item, linked
from lehr.sdk.secrets import HIDDEN, Hidden, SecretValue

URL = "https://api.example.org/things/lamp"
THINGS = "https://api.example.org/v1/things?version=2"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def found(intended: Any, observed: Any) -> list[str]:
    return [item.pointer for item in differences(intended, observed)]


@pytest.mark.parametrize(
    ("intended", "observed", "pointers"),
    [
        ({}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, ["/a"]),
        ({"a": 0}, {"a": False}, ["/a"]),
        ({"a": "1"}, {"a": 1}, ["/a"]),
        ({"a": None}, {}, []),
        ({"a": None}, {"a": None}, []),
        ({"a": None}, {"a": 0}, ["/a"]),
        ({"a": 1}, {}, ["/a"]),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, []),
        ({"a": {"b": 1, "c": None}}, {}, ["/a/b"]),
        ({"a": {"b": 1}}, {"a": 7}, ["/a"]),
        ({"a": {}}, {}, ["/a"]),
        ({"a": {}}, {"a": {"b": 1}}, []),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": 1}]}, []),
        ({"a": [1, {"b": 1}]}, {"a": [1, {"b": 1, "c": 2}]}, ["/a"]),
        ({"a": [1, 2]}, {"a": [2, 1]}, ["/a"]),
        ({"a/b": {"~": 1}}, {"a/b": {"~": 2}}, ["/a~1b/~0"]),
    ],
)
def test_only_declared_fields_are_compared(intended: Any, observed: Any, pointers: list[str]) -> None:
    assert found(intended, observed) == pointers


@given(JSON)
def test_what_is_as_declared_does_not_differ(value: Any) -> None:
    assert same(value, value)
    assert found({"a": value}, {"a": value, "b": 1}) == []


@given(
    st.dictionaries(
        st.text("ab/~é", min_size=1, max_size=3), st.integers() | st.lists(st.text(), max_size=3)
    ),
    JSON,
)
def test_a_diff_can_be_kept_and_is_the_same_again(body: dict[str, Any], value: Any) -> None:
    intended = Intended(HttpResource(url=URL, body=body))
    for document in (None, {}, dict.fromkeys(body, value)):
        one = compared(intended, Observed(URL, document), Goal.PRESENT, "")
        assert one.digest() == compared(intended, Observed(URL, document), Goal.PRESENT, "").digest()
        assert len(msgspec.json.encode(one)) < 16_384


def test_a_large_resource_has_a_short_diff() -> None:
    body = {f"field-{number:04}-{'x' * 180}": {"y" * 100: "z" * 150} for number in range(140)}
    found = compared(Intended(HttpResource(url=URL, body=body)), Observed(URL, {}), Goal.PRESENT, "")
    assert len(msgspec.json.encode(found)) < 16_384
    assert len({change.path for change in found.changes}) == len(found.changes) == 31


@pytest.mark.parametrize("value", ["x" * 500, list(range(100)), {"a": "x" * 500}, 10**20])
def test_long_values_are_described(value: Any) -> None:
    assert len(str(shown(value))) < 100
    assert shown(value) == shown(value)


@pytest.mark.parametrize(
    "value", ["my hunter2-hunter2", ["hunter2-hunter2"], {"a": {"b": "hunter2-hunter2"}}]
)
def test_a_known_secret_is_shown_nowhere(value: Any) -> None:
    assert shown(value, Hidden([SecretValue(b"hunter2-hunter2\n")])) == HIDDEN


def test_null_and_a_missing_field_are_distinguished() -> None:
    intended = Intended(HttpResource(url=URL, body={"a": 1, "b": 1}))
    changes = compared(intended, Observed(URL, {"a": None}), Goal.PRESENT, "").changes
    assert changes == (Change("body/a", 1, "null"), Change("body/b", 1, None))


@pytest.mark.parametrize(
    ("changed", "replaced"),
    [("/zone", True), ("/zone/id", True), ("/", False), ("/zones", False), ("/zon", False)],
)
def test_a_change_within_a_fixed_field_is_one_of_it(changed: str, replaced: bool) -> None:
    assert within(changed, "/zone") is replaced


def test_the_requests_have_the_declared_fields_and_secrets() -> None:
    secrets = {"/login/password": SecretValue(b"hunter2\n")}
    resource = HttpResource(
        url=URL, body={"login": {"user": "ann"}}, secrets={"/login/password": Secret("env:P")}, update="patch"
    )
    intended, observed = Intended(resource, secrets), Observed(URL, {"a": 1}, '"7"')
    body = b'{"login":{"user":"ann","password":"hunter2"}}'
    create = requests.creation(intended, "op1")
    assert (create.method, create.url, create.body) == ("PUT", URL, body)
    assert create.headers["if-none-match"] == "*"
    change = requests.change(intended, observed)
    assert (change.method, change.body, change.headers["if-match"]) == ("PATCH", body, '"7"')
    assert change.headers["content-type"] == "application/json"
    delete = requests.deletion(observed)
    assert (delete.method, delete.body, delete.headers) == ("DELETE", None, {"if-match": '"7"'})
    assert "hunter2" not in repr(create)
    assert resource.body == {"login": {"user": "ann"}}


def test_values_are_put_without_changing_the_document() -> None:
    document = {"a": {"b": 1}}
    assert with_values(document, {"/a/c": 2, "/d/e": 3}) == {"a": {"b": 1, "c": 2}, "d": {"e": 3}}
    assert document == {"a": {"b": 1}}
    assert at({"a": [{"b": 1}]}, "/a/0/b") == 1
    assert at({"a": [1]}, "/a/1") is MISSING
    assert at({"a": [1]}, "/a/-1") is MISSING


@pytest.mark.parametrize(
    ("id", "url"),
    [
        ("t1", "https://api.example.org/v1/things/t1?version=2"),
        (7, "https://api.example.org/v1/things/7?version=2"),
        ("a/b", "https://api.example.org/v1/things/a%2Fb?version=2"),
        ("/v1/things/t1", "https://api.example.org/v1/things/t1"),
        ("https://api.example.org/x", "https://api.example.org/x"),
        ("https://api.example.org:443/x", "https://api.example.org:443/x"),
        ("/v1/things/", None),
        ("/v1/things?version=2", None),
        ("//elsewhere.test/x", None),
        ("https://elsewhere.test/x", None),
        ("http://api.example.org/x", None),
        ("..", None),
        (True, None),
        (1.5, None),
        ("x" * 3000, None),
    ],
)
def test_items_are_on_the_same_server(id: object, url: str | None) -> None:
    assert item(THINGS, id) == url


@pytest.mark.parametrize("link", ["http://[", "javascript:1", "https://a@api.example.org/", "/a b", "\x00"])
def test_links_that_cannot_be_asked_are_not(link: str) -> None:
    assert linked(THINGS, link) is None


def test_a_handle_is_kept_as_text() -> None:
    handle = ResourceHandle("https://a/b", "c0ffee")
    assert parse(handle.text()) == handle
    assert ResourceHandle().text() == ""
    assert parse("") == parse("{") == parse("[1]") == ResourceHandle()


def test_references_are_identified_by_place_and_version() -> None:
    one, two = {"/a": Secret("env:A")}, {"/a": Secret("env:A", version="2")}
    assert references(one) == references({"/a": Secret("env:A")}) != references(two)
    assert references({}) == ""
