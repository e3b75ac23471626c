"""What nobody has written of an asset is known, however it was declared."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.diagnostics import Position
from lehr.generate.outcome.output import UnsetFields
from lehr.generate.typing.conversion import convert
from lehr.generate.typing.unset_fields import unset_fields
from lehr.model.addons import ADDONS
from lehr.model.types import AssetType, Registry, Schema

HERE = Position("a.yaml", 1, 1)
JOB = "test.Job"
NOTE = "test.Note"
TITLE = "test.Title"


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much."""

    cpu: int = 1
    memory: int = 2


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that runs."""

    command: str
    replicas: int = 1
    limits: Limits = Limits()
    by_zone: dict[str, Limits] = {}
    stages: list[Limits] = []
    environment: dict[str, str] = {}


NOTE_SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "size": {"type": "integer", "default": 3},
        "ink": {"type": "object", "properties": {"colour": {"type": "string", "default": "blue"}}},
    },
}
REGISTRY = Registry(
    (
        AssetType(JOB, Job),
        AssetType(NOTE, Schema(NOTE_SCHEMA, {})),
        AssetType(TITLE, Schema({"type": "object", "properties": {"text": {"type": "string"}}}, {})),
    ),
    ADDONS,
)


def found(type: str, payload: dict[str, Any], **addons: Any) -> UnsetFields:
    value = {
        "id": "a",
        "type": type,
        "payload": payload,
        "addons": {f"lehr.{k}": v for k, v in addons.items()},
    }
    asset, problems = convert(value, REGISTRY, HERE, lambda pointer: HERE)
    assert asset is not None, problems
    return unset_fields(value, asset, REGISTRY)


def test_fields_that_are_not_written_are_left_out() -> None:
    assert set(found(JOB, {"command": "x", "replicas": 1, "environment": {"A": "b"}})) == {
        "/payload/limits",
        "/payload/by_zone",
        "/payload/stages",
    }


def test_what_is_written_with_the_value_of_the_default_is_written() -> None:
    whole = {"command": "x", "replicas": 1, "limits": {"cpu": 1, "memory": 2}}
    whole |= {"by_zone": {}, "stages": [], "environment": {}}
    assert found(JOB, whole) == ()


def test_mappings_are_gone_into_and_lists_are_not() -> None:
    payload = {"command": "x", "replicas": 2, "limits": {"cpu": 4}, "by_zone": {"a/b": {"memory": 1}}}
    payload |= {"stages": [{"cpu": 1}], "environment": {}}
    assert set(found(JOB, payload)) == {"/payload/limits/memory", "/payload/by_zone/a~1b/cpu"}


def test_addons_leave_out_their_own_fields() -> None:
    left = found(TITLE, {"text": "x"}, Owner={"team": "web"}, Labels={"labels": {}})
    assert left == ("/addons/lehr.Owner/contact",)


def test_types_that_are_declared_as_data_are_known_too() -> None:
    assert set(found(NOTE, {"text": "x", "ink": {}})) == {"/payload/size", "/payload/ink/colour"}
    assert found(NOTE, {"text": "x", "size": 3}) == ()
    assert found(TITLE, {}) == ()


def test_equal_answers_are_one_value() -> None:
    some, other = ({"command": text, "limits": {"cpu": 9}} for text in ("a", "b"))
    assert found(JOB, some) is found(JOB, other)
    assert found(JOB, {"command": "a"}) is found(JOB, {"command": "b"})
