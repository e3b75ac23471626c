"""Fields by the names that people write, and the places that hold their values."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.query.blame_fields import Field, field_of, occurrences
from tests.codes import raises

DOCUMENT: dict[str, Any] = {
    "id": "web",
    "type": "t",
    "payload": {"ports": [80, 443], "env": {"a.b": "x", "a": {"b": "y"}, "c/d": "z"}, "type": "inner"},
    "addons": {"lehr.Owner": {"team": "red"}},
}


@pytest.mark.parametrize(
    ("text", "pointer", "value"),
    [
        ("/payload/ports/1", "/payload/ports/1", 443),
        ("payload.ports.1", "/payload/ports/1", 443),
        ("ports[1]", "/payload/ports/1", 443),
        ("addons.lehr.Owner.team", "/addons/lehr.Owner/team", "red"),
        ('addons."lehr.Owner".team', "/addons/lehr.Owner/team", "red"),
        ("env.a.b", "/payload/env/a.b", "x"),
        ("/payload/env/a/b", "/payload/env/a/b", "y"),
        ("/payload/env/c~1d", "/payload/env/c~1d", "z"),
        ("type", "/type", "t"),
        ("payload.type", "/payload/type", "inner"),
    ],
)
def test_a_field_is_named_by_path_or_pointer(text: str, pointer: str, value: object) -> None:
    found = field_of(DOCUMENT, text)
    assert (found.pointer, found.value) == (pointer, value)


@pytest.mark.parametrize("text", ["/payload/ports/2", "payload.port", "ports.x", "/nothing", "env.a.b.c"])
def test_what_is_not_there_is_an_error_that_names_what_is(text: str) -> None:
    with raises("QRY102") as told:
        field_of(DOCUMENT, text)
    assert "payload.ports" in told.value.why


def places(file: str, content: bytes, value: object, name: str = "replicas") -> list[str]:
    field = Field(("payload", name), value)
    return [f"{item.at}{'=' if item.same_name else ''}" for item in occurrences(file, content, field)]


def test_a_value_is_found_wherever_it_stands_and_marked_under_the_same_name() -> None:
    assert places("a.yaml", b"count: 3\nreplicas: 3\nother: 4\n", 3) == ["a.yaml:1:1", "a.yaml:2:1="]
    assert places("a.json", b'{"x": [1, {"replicas": "a b"}]}', "a b") == ["a.json:1:12="]
    assert places("a.toml", b"[web]\nreplicas = 3\n", 3) == ["a.toml:2:1="]


def test_a_value_of_another_kind_is_another_value() -> None:
    assert places("a.yaml", b"replicas: '3'\nx: true\n", 3) == []
    assert places("a.yaml", b"replicas: 1\n", True) == []
    assert places("a.yaml", b"replicas: 3.0\n", 3) == ["a.yaml:1:1="]


def test_what_any_file_may_hold_by_chance_counts_only_under_the_same_name() -> None:
    assert places("a.yaml", b"x: true\nreplicas: true\n", True) == ["a.yaml:2:1="]
    assert places("a.yaml", b"x: ''\ny: []\n", "") == []


def test_lists_and_mappings_are_found_as_a_whole() -> None:
    assert places("a.yaml", b"command: [run, fast]\n", ["run", "fast"]) == ["a.yaml:1:1"]


def test_constants_of_code_are_found_and_code_that_cannot_be_read_holds_none() -> None:
    assert places("g.py", b"def f():\n    return {'mode': '0640', 'n': 3}\n", "0640") == ["g.py:2:21"]
    assert places("g.py", b"x = True\n", True) == []
    assert places("g.py", b"def f(:\n", "x") == []
    assert places("notes.txt", b"3", 3) == []
