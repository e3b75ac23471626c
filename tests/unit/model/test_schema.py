"""What is marked in plain data of a declared type."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.model.references import External, Reference
from lehr.model.schema import Form, Schema

MARKS = {"/parent": Reference(), "/more/*": Reference(), "/by/#": Reference()}


def schema(form: Form) -> Schema:
    return Schema({}, MARKS, externals=("/image", "/images/*"), form=form)


def mentioned(form: Form, value: Any) -> list[str]:
    return [item.path for item in schema(form).mentions(value, "")]


def test_a_field_of_a_message_without_presence_refers_to_nothing_when_it_is_empty() -> None:
    empty = {"parent": "", "more": [""], "by": {"": 1}}
    assert mentioned(Form.PROTOBUF, empty) == ["/more/0", "/by/"]
    assert mentioned(Form.JSON, empty) == ["/parent", "/more/0", "/by/"]


@pytest.mark.parametrize(
    ("form", "found"), [(Form.PROTOBUF, ["/images/0"]), (Form.JSON, ["/image", "/images/0"])]
)
def test_such_a_field_names_nothing_outside_either(form: Form, found: list[str]) -> None:
    assert [path for path, _ in schema(form).outside({"image": "", "images": [""]}, "")] == found


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("s3://b/k", [External("s3://b/k")]),
        ({"uri": "s3://b/k", "digest": "sha256:0"}, [External("s3://b/k", "sha256:0")]),
        ({"digest": "sha256:0"}, [External("", "sha256:0")]),
        ({"uri": 5}, [External("")]),
        (5, [External("")]),
        (None, []),
    ],
)
def test_what_should_name_something_outside_and_names_nothing_is_found_too(
    value: Any, named: list[External]
) -> None:
    assert [item for _, item in schema(Form.JSON).outside({"image": value}, "")] == named
