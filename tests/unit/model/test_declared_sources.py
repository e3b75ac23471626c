"""What `sources` in `lehr.yaml` may say, and that every mistake in it is told with its place."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.generate.engine.workspace import read_workspace
from lehr.model.declared_sources import DirectoryPlace, GitPlace, declared_sources

GOOD: dict[str, Any] = {
    "code": {"git": "ssh://git@example.org/code.git", "tag": "v1", "path": "intent"},
    "shared": {"directory": "../shared"},
    "rows": {"sql": "sqlite:a.sqlite", "query": "SELECT 1", "key": ["a"]},
    "staging": {"partition": "staging", "state": "../s", "incarnation": 4, "digest": "0" * 40},
}

BAD = [
    ({"git": "a", "branch": "b", "tag": "c"}, "`branch` and `tag`"),
    ({"git": "a", "commit": "abc"}, "40 hexadecimal digits"),
    ({"git": "a", "path": "../b"}, "is outside the repository"),
    ({"git": "https://a:b@example.org/c"}, "holds a password"),
    ({"git": "https://token@example.org/c"}, "holds a password"),
    ({"git": ""}, "`sources.x`"),
    ({"git": "a", "directory": "b"}, "kind of source"),
    ({"got": "a"}, "kind of source"),
    ([], "kind of source"),
    ({"git": "a", "brunch": "b"}, "unknown field `brunch`"),
    ({"sql": "sqlite:a", "query": "SELECT 1"}, "`key` is missing"),
    ({"sql": "mysql://h/d", "query": "SELECT 1", "key": ["a"]}, "postgresql:// or sqlite:"),
    ({"sql": "postgresql://u:x@h/d", "query": "SELECT 1", "key": ["a"]}, "holds a password"),
    ({"sql": "postgresql://h/d?password=x", "query": "SELECT 1", "key": ["a"]}, "holds a password"),
    ({"sql": "sqlite:a", "query": "SELECT 1", "key": []}, "`sources.x`"),
    ({"partition": "a", "incarnation": 1, "digest": "0" * 40}, "`state`"),
    (
        {"partition": "a", "state": "b", "archive": "c", "incarnation": 1, "digest": "0" * 40},
        "`state`",
    ),
    ({"partition": "A!", "state": "b", "incarnation": 1, "digest": "0" * 40}, "`partition`"),
    ({"partition": "a", "state": "b", "incarnation": 0, "digest": "0" * 40}, "`sources.x`"),
    ({"partition": "a", "state": "b", "incarnation": 1, "digest": "latest"}, "`sources.x`"),
]


def test_what_is_right_is_understood() -> None:
    found = declared_sources(GOOD)
    assert list(found) == list(GOOD)
    assert found["code"] == GitPlace(git="ssh://git@example.org/code.git", tag="v1", path="intent")
    assert found["shared"] == DirectoryPlace(directory="../shared")


@pytest.mark.parametrize(("value", "told"), BAD)
def test_what_is_wrong_is_refused_by_source_and_workspace_alike(value: Any, told: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the message is generation's business
        declared_sources({"x": value})
    content = f"partition: a\nsources:\n  x: {_flow(value)}\n"
    workspace, problems = read_workspace(content.encode())
    assert workspace is None
    assert any(told in item.what for item in problems), problems
    assert all(item.at is not None and item.at.line == 3 for item in problems)


def test_what_a_source_accepts_the_workspace_accepts_too() -> None:
    content = f"partition: a\nsources: {_flow(GOOD)}\n"
    workspace, problems = read_workspace(content.encode())
    assert workspace is not None, problems


@pytest.mark.parametrize("name", ["A", "a/b", "..", "", "-a", "a" * 64, "ä"])
def test_names_are_folders(name: str) -> None:
    with pytest.raises(ValueError, match="is not a source"):
        declared_sources({name: {"directory": "a"}})
    workspace, problems = read_workspace(f'partition: a\nsources:\n  "{name}": {{directory: a}}\n'.encode())
    assert workspace is None
    assert [str(item.at) for item in problems] == ["lehr.yaml:3:3"]


def test_all_mistakes_are_told_at_once() -> None:
    content = b"partition: a\nsources:\n  B: {git: a, commit: x}\n  c: {directory: 3}\n  d: {}\n"
    _, problems = read_workspace(content)
    assert sorted(item.at.line for item in problems if item.at is not None) == [3, 3, 4, 5]


def test_a_partition_is_no_source_of_itself() -> None:
    content = f"partition: staging\nsources: {_flow({'staging': GOOD['staging']})}\n"
    _, [problem] = read_workspace(content.encode())
    assert problem.what == "lehr.yaml: staging cannot be its own source"
    assert problem.at is not None
    assert problem.at.line == 2


@pytest.mark.parametrize("value", ["[]", "3", "a"])
def test_sources_are_a_mapping(value: str) -> None:
    workspace, problems = read_workspace(f"partition: a\nsources: {value}\n".encode())
    assert workspace is None
    assert [str(item.at) for item in problems] == ["lehr.yaml:2:1"]


def _flow(value: Any) -> str:
    import json

    return json.dumps(value)


@pytest.mark.parametrize(
    "value",
    [
        {"git": "https://a:b@example.org/c"},
        {"git": "https://a:b@example.org/c", "branch": "b", "tag": "c"},
        {"sql": "postgresql://h/d?password=x", "query": "SELECT 1"},
    ],
)
def test_the_line_with_a_password_is_not_shown_whatever_is_wrong_with_it(value: Any) -> None:
    _, problems = read_workspace(f"partition: a\nsources:\n  x: {_flow(value)}\n".encode())
    assert problems
    assert all(item.confidential for item in problems)


def test_a_line_without_a_password_is_shown() -> None:
    _, [problem] = read_workspace(b"partition: a\nsources:\n  x: {git: a, commit: x}\n")
    assert not problem.confidential
