"""A value out of a decrypted document; and what is wrong with the document, without what it says."""

from __future__ import annotations

import pytest

from lehr.base.errors import StalledError
from lehr.secrets.decrypted_value import document_in, picked
from tests.codes import raises

CANARY = "canary-4711"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", b"p\xc3\xa4ss"),
        ("db.users.1", b"b"),
        ("db.port", b"5432"),
        ("db.tls", b"true"),
        ("db.users", b'["a","b"]'),
    ],
)
def test_text_comes_as_it_is_and_all_else_as_json(key: str, value: bytes) -> None:
    document = {"password": "päss", "db": {"users": ["a", "b"], "port": 5432, "tls": True}}
    assert picked(document, key.split("."), "x.age") == value


@pytest.mark.parametrize("key", ["gone", "password.x", "users.2", "users.x"])
def test_a_key_that_leads_nowhere_is_named_and_no_value_is(key: str) -> None:
    with raises("SEC121", StalledError) as error:
        picked({"password": CANARY, "users": [CANARY, CANARY]}, key.split("."), "x.age")
    assert key in str(error.value)
    assert CANARY not in str(error.value)


@pytest.mark.parametrize(
    ("place", "content"),
    [
        ("a.yaml.age", b"a: x\n"),
        ("a.json.age", b'{"a": "x"}'),
        ("a.toml.age", b'a = "x"'),
        ("a.age", b"a: x"),
    ],
)
def test_the_format_is_that_of_the_name_without_age(place: str, content: bytes) -> None:
    assert document_in(content, place) == {"a": "x"}


@pytest.mark.parametrize(
    "content", [f"a: 1\n{CANARY}: [".encode(), b"a: 1\n---\nb: 1", b"\xff" + CANARY.encode(), b""]
)
def test_what_cannot_be_read_is_told_by_its_line_alone(content: bytes) -> None:
    with raises("SEC120", StalledError) as error:
        document_in(content, "x.yaml.age")
    assert CANARY not in str(error.value)
