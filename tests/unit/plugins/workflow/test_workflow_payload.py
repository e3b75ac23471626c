"""Payloads of `lehr.Workflow`: what is refused before anything is asked."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.model.asset import AssetId, make_asset
from lehr.plugins.workflow.engines import id_of
from lehr.plugins.workflow.payload import TYPES, Workflow, removal_argument
from lehr.testing.plugins import target_of

TEMPORAL = {"temporal": {"address": "127.0.0.1:7233", "task_queue": "q"}}
DBOS = {"dbos": {"database": "sqlite:firmware.sqlite", "queue": "q"}}
GOOD: dict[str, Any] = {
    "intended": {"version": "2", "ports": {"up": 4}},
    "observe": {"http": {"url": "http://127.0.0.1:1/state"}},
    "engine": TEMPORAL,
    "workflow": "Update",
    "input": {"address": "sw1"},
}


def read(**changed: Any) -> Workflow:
    return msgspec.convert(GOOD | changed, Workflow)


def test_the_argument_has_the_input_and_what_is_intended() -> None:
    assert read().argument() == {"address": "sw1", "version": "2", "ports": {"up": 4}}


def test_the_argument_of_a_removal_has_its_own_input_or_that_of_the_asset() -> None:
    for given, expected in (({}, {"address": "sw1"}), ({"input": {"how": "x"}}, {"how": "x"})):
        workflow = read(remove={"workflow": "Remove", "intended": {"serving": False}, **given})
        assert workflow.remove is not None
        assert removal_argument(workflow, workflow.remove) == {**expected, "serving": False}


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"intended": {}}, "length >= 1"),
        ({"observe": {}}, "exactly one of `http` and `command`"),
        ({"observe": {**GOOD["observe"], "command": {"run": "x"}}}, "exactly one of `http` and `command`"),
        ({"engine": {}}, "exactly one of `temporal` and `dbos`"),
        ({"engine": TEMPORAL | DBOS}, "exactly one of `temporal` and `dbos`"),
        ({"input": {"version": "3"}}, "`input` and `intended` both have the field 'version'"),
        ({"version": "/nothing"}, "`version` must be a JSON pointer to text in `intended`"),
        ({"version": "/ports"}, "`version` must be a JSON pointer to text in `intended`"),
        ({"timeout_seconds": 0}, ">= 1.0"),
        ({"workflow": ""}, "length >= 1"),
        ({"workflow": "a\nb"}, "matching regex"),
        ({"engine": DBOS, "when_superseded": "cancel"}, "must not be `cancel` with DBOS"),
        ({"intended": {"x": "y" * 70_000}}, "at most 65,536 are allowed"),
        ({"remove": {"workflow": "R", "intended": {"address": 1}}}, "both have the field 'address'"),
        ({"observe": {"http": {"url": "http://a:b@c/"}}}, "has a user name or password"),
        ({"observe": {"http": {"url": "http://a/", "at": "x"}}}, "`at` must be a JSON pointer"),
        (
            {"observe": {"http": {"url": "http://example.org/", "credentials": {"secret": "env:T"}}}},
            "sent without encryption",
        ),
        ({"observe": {"command": {"run": "x", "environment": {"LEHR_X": "1"}}}}, "reserved"),
        ({"engine": {"temporal": {"address": "nowhere", "task_queue": "q"}}}, "must be host:port"),
        ({"engine": {"temporal": {"address": "a:99999", "task_queue": "q"}}}, "must be host:port"),
        (
            {"engine": {"temporal": {"address": "a:1", "task_queue": "q", "api_key": {"secret": "env:K"}}}},
            "sent without encryption",
        ),
        ({"engine": {"dbos": {"database": "postgresql://u:p@h/d", "queue": "q"}}}, "contains a password"),
        ({"engine": {"dbos": {"database": "mysql://h/d", "queue": "q"}}}, "`database` must start with"),
        (
            {"engine": {"dbos": {**DBOS["dbos"], "password": {"secret": "env:P"}}}},
            "`password` is only for PostgreSQL",
        ),
    ],
)
def test_what_cannot_work_is_refused(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        read(**changed)
    assert problem in str(caught.value)


def test_two_assets_may_not_claim_the_same_fields_of_production() -> None:
    claims = TYPES[0].claims
    assert claims is not None
    assert [*claims(read())] == [
        "workflow:http://127.0.0.1:1/state#/version",
        "workflow:http://127.0.0.1:1/state#/ports",
    ]


def test_assets_have_different_ids_in_their_engine() -> None:
    ids = ("a", "a/b", "a:b", "a.b", "a@b", "a_b", "a-b")
    found = {id_of(target_of(make_asset(AssetId(id), "lehr.Workflow", read(), {})).key) for id in ids}
    assert len(found) == len(ids)
    assert not any(one != other and other.startswith(f"{one}:") for one in found for other in found)
