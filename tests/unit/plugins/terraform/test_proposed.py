"""What is proposed to a provider, from what was before and what is written now.

`tests/integration/plugins/terraform` compares the same with what the terraform command proposes.
"""

from typing import Any

import pytest

from lehr.plugins.terraform.provider import UNKNOWN, Attribute, Block, NestedBlock, NestedObject, Nesting
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.nulls import null_value
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.plugins.terraform.values.set_elements import may_become
from tests.unit.plugins.terraform.blocks import BLOCK


def config(**written: Any) -> Any:
    return configured(BLOCK, {"name": "n", **written})[0]


def state(**values: Any) -> Any:
    return {**null_value(BLOCK), "name": "n", "id": "1", "class": "c", **values}


def rule(port: int, id: str | None = None, name: str | None = None) -> dict[str, Any]:
    return {"port": port, "name": name, "id": id, "key": None}


def server(host: str | None, zone: str | None = None) -> dict[str, Any]:
    return {"host": host, "zone": zone, "token": None}


def test_nothing_is_proposed_for_a_deletion() -> None:
    assert proposed_new(BLOCK, state(), None) is None


def test_a_creation_is_the_configuration() -> None:
    assert proposed_new(BLOCK, None, config(size=3)) == config(size=3)


def test_what_may_be_computed_stays_and_the_rest_is_removed() -> None:
    proposed = proposed_new(BLOCK, state(size=3, zones=["a"]), config())
    assert (proposed["id"], proposed["class"]) == ("1", "c")
    assert (proposed["size"], proposed["zones"]) == (None, None)
    assert proposed_new(BLOCK, state(), config(**{"class": "d"}))["class"] == "d"
    assert proposed_new(BLOCK, state(), config(**{"class": UNKNOWN}))["class"] is UNKNOWN


def test_elements_of_lists_belong_together_by_index_and_of_maps_by_key() -> None:
    prior = state(step=[rule(1, "a"), rule(2, "b")], by_key={"x": rule(1, "a"), "y": rule(2, "b")})
    proposed = proposed_new(
        BLOCK, prior, config(step=[{"port": 9}], by_key={"y": {"port": 8}, "z": {"port": 7}})
    )
    assert proposed["step"] == [rule(9, "a")]
    assert proposed["by_key"] == {"y": rule(8, "b"), "z": rule(7)}


def test_elements_of_sets_belong_together_if_nothing_written_differs() -> None:
    prior = state(rule=[rule(1, "a"), rule(2, "b", "two")])
    proposed = proposed_new(BLOCK, prior, config(rule=[{"port": 1}, {"port": 2}, {"port": 2, "name": "two"}]))
    assert sorted(proposed["rule"], key=repr) == sorted(
        [rule(1, "a"), rule(2), rule(2, "b", "two")], key=repr
    )


def test_one_former_element_becomes_one_new_element_at_most() -> None:
    prior = state(servers=[server(None, "z")])
    proposed = proposed_new(BLOCK, prior, config(servers=[{"host": None}, {"zone": UNKNOWN}]))
    assert [one["zone"] for one in proposed["servers"]].count("z") == 1


def test_a_single_block_keeps_what_is_computed_and_a_removed_one_is_null() -> None:
    prior = state(only=rule(1, "a"), group={"x": 2})
    assert proposed_new(BLOCK, prior, config(only={"port": 2}))["only"] == rule(2, "a")
    assert proposed_new(BLOCK, prior, config())["only"] is None
    assert proposed_new(BLOCK, prior, config())["group"] == {"x": None}
    assert proposed_new(BLOCK, state(), config(only={"port": 2}))["only"] == rule(2)


def test_a_computed_collection_stays_unless_it_has_something_that_was_written() -> None:
    computed = [server(None, "z")]
    assert proposed_new(BLOCK, state(servers=computed), config())["servers"] == computed
    assert proposed_new(BLOCK, state(servers=[server("h", "z")]), config())["servers"] is None


def test_what_is_unknown_as_a_whole_stays_unknown() -> None:
    proposed = proposed_new(BLOCK, state(), config(rule=UNKNOWN, servers=UNKNOWN, step=[UNKNOWN]))
    assert proposed["rule"] is UNKNOWN
    assert proposed["servers"] is UNKNOWN
    assert proposed["step"] == [UNKNOWN]


LINE = Block(attributes=(Attribute(name="text", type="string", optional=True),))
ELEMENT = Block(
    attributes=(
        Attribute(name="id", type="string", computed=True),
        Attribute(name="name", type="string", optional=True),
        Attribute(name="note", nested=NestedObject(LINE.attributes, Nesting.SINGLE), optional=True),
    ),
    blocks=(
        NestedBlock("list", LINE, Nesting.LIST),
        NestedBlock("set", LINE, Nesting.SET),
        NestedBlock("map", LINE, Nesting.MAP),
        NestedBlock("one", LINE, Nesting.SINGLE),
    ),
)
A, B = {"text": "a"}, {"text": "b"}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ({}, {}, True),
        ({"name": "x"}, {"name": "y"}, False),
        ({"name": "x"}, {}, False),
        ({}, {"name": "x"}, False),
        ({}, {"note": A}, True),
        ({"note": A}, {}, False),
        ({"note": A}, {"note": B}, False),
        ({"list": [A]}, {"list": [A, B]}, True),
        ({"list": [A, B]}, {"list": [A]}, False),
        ({"list": []}, {"list": [A]}, True),
        ({"set": [A]}, {"set": [A, B]}, True),
        ({"set": [A, B]}, {"set": [A]}, False),
        ({"map": {"k": A}}, {"map": {"k": A, "l": B}}, True),
        ({"map": {"k": A}}, {"map": {"l": A}}, False),
        ({}, {"one": A}, True),
        ({"one": A}, {}, False),
    ],
)
def test_an_element_of_a_set_may_have_grown_within(
    before: dict[str, Any], after: dict[str, Any], same: bool
) -> None:
    state = configured(ELEMENT, before)[0] | {"id": "1"}
    assert may_become(ELEMENT, configured(ELEMENT, after)[0], state) is same
