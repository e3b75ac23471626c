"""What Lehr proposes to a provider is what the terraform command proposes, to the last byte."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.plugins.terraform.provider import Block
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.cty_types import block_of, implied_type
from lehr.plugins.terraform.values.msgpack_codec import decode
from lehr.plugins.terraform.values.proposed import proposed_new
from lehr.plugins.terraform.values.set_elements import may_become
from tests.terraform import fake_types
from tests.terraform.command import TerraformWithFake, needs_terraform

pytestmark = needs_terraform

BLOCKS = fake_types.RESOURCES | fake_types.NESTED_RESOURCES
CASES = 40
"""Resources at once."""

STEPS = 4


def some(chance: random.Random, written: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Some of the attributes."""
    return {name: make() for name, make in written.items() if chance.random() < 0.6}


def few(chance: random.Random, make: Callable[[], Any], most: int = 3) -> list[Any]:
    return [make() for _ in range(chance.randint(0, most))]


def word(chance: random.Random) -> str:
    return chance.choice(["a", "b", "c"])


def given(chance: random.Random) -> dict[str, Any]:
    return some(
        chance,
        {
            "text": lambda: word(chance),
            "size": lambda: chance.choice([1, 0.1, 1e21, "7", 2**70, 0.5]),
            "enabled": lambda: chance.choice([True, "false"]),
            "tags": lambda: {word(chance): word(chance), "n": 1},
            "labels": lambda: few(chance, lambda: word(chance)),
            "force": lambda: True,
            "class": lambda: word(chance),
        },
    )


def part(chance: random.Random) -> dict[str, Any]:
    return {"host": word(chance)} | some(chance, {"zone": lambda: word(chance)})


def rule(chance: random.Random) -> dict[str, Any]:
    return {"port": chance.randint(1, 2)} | some(
        chance,
        {
            "name": lambda: word(chance),
            "zone": lambda: word(chance),
            "key": lambda: word(chance),
            "lone": lambda: part(chance),
            "row": lambda: few(chance, lambda: part(chance), 2),
            "part": lambda: few(chance, lambda: part(chance)),
        },
    )


def blocks(chance: random.Random) -> dict[str, Any]:
    return some(
        chance,
        {
            "class": lambda: word(chance),
            "only": lambda: rule(chance),
            "options": lambda: some(chance, {"x": lambda: 1, "y": lambda: word(chance)}),
            "step": lambda: few(chance, lambda: rule(chance)),
            "rule": lambda: few(chance, lambda: rule(chance), 4),
            "keyed": lambda: {word(chance): rule(chance), word(chance): rule(chance)},
        },
    )


def pair(chance: random.Random) -> dict[str, Any]:
    return some(chance, {"a": lambda: word(chance), "b": lambda: word(chance)})


def item(chance: random.Random) -> dict[str, Any]:
    return some(
        chance,
        {
            "name": lambda: word(chance),
            "zone": lambda: word(chance),
            "size": lambda: chance.randint(1, 2),
            "inner": lambda: pair(chance),
            "inners": lambda: few(chance, lambda: pair(chance), 2),
        },
    )


def nested(chance: random.Random) -> dict[str, Any]:
    makes: dict[str, Callable[[], Any]] = {}
    for prefix in ("", "sticky_"):
        makes[f"{prefix}single"] = lambda: item(chance)
        makes[f"{prefix}list"] = lambda: few(chance, lambda: item(chance))
        makes[f"{prefix}set"] = lambda: few(chance, lambda: item(chance))
        makes[f"{prefix}map"] = lambda: {word(chance): item(chance), word(chance): item(chance)}
    return some(chance, makes)


def types(chance: random.Random) -> dict[str, Any]:
    return some(
        chance,
        {
            "any": lambda: chance.choice([1, "x", True, [1, "x"], {"a": [None, 0.1]}, None, []]),
            "pair": lambda: [word(chance), chance.randint(0, 3)],
            "objects": lambda: few(chance, lambda: {"a": word(chance), "b": 1}),
            "object_set": lambda: few(
                chance, lambda: {"a": word(chance), "b": few(chance, lambda: word(chance))}
            ),
            "numbers": lambda: {word(chance): 0.1, "x": "12345678901234567890.123"},
            "sets": lambda: few(chance, lambda: word(chance)),
        },
    )


def secret(chance: random.Random) -> dict[str, Any]:
    return some(
        chance,
        {"value": lambda: word(chance), "value_wo": lambda: word(chance), "value_wo_version": lambda: 1},
    )


def changed(chance: random.Random, written: Any) -> Any:
    """`written` with one small change, where changes of whole values would hide how elements are matched."""
    found = list(_places(written))
    if not found:
        return written
    container, key = chance.choice(found)
    value = container[key]
    if isinstance(value, str) and value in "abc" and chance.random() < 0.5:
        container[key] = word(chance)
    elif isinstance(container, list) and chance.random() < 0.5:
        container.append(copy.deepcopy(value))
    elif key not in {"port", "host"}:
        del container[key]
    return written


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


MAKES = {
    "fake_given": given,
    "fake_blocks": blocks,
    "fake_nested": nested,
    "fake_types": types,
    "fake_secret": secret,
}


def check(block: Block, written: dict[str, Any], request: dict[str, Any]) -> None:
    type_ = implied_type(block)
    prior, config, theirs = (
        decode(request[name], type_) for name in ("prior_state", "config", "proposed_new_state")
    )
    assert configured(block, written) == (config, ())
    ours = proposed_new(block, prior, config)
    for name, value in ours.items():
        if value != theirs[name]:
            assert is_ambiguous(block, name, prior, config), (name, prior, config)


def is_ambiguous(block: Block, name: str, prior: Any, config: Any) -> bool:
    """Whether an element of a set was one of several, where Terraform decides by the order of its hashes."""
    of_elements = next(
        (one.block for one in block.blocks if one.name == name and one.nesting == "set"), None
    ) or next(
        (block_of(one.nested) for one in block.attributes if one.name == name and one.nested is not None),
        None,
    )
    return of_elements is not None and any(
        sum(may_become(of_elements, one, former) for one in config[name]) > 1 for former in prior[name]
    )


@pytest.mark.parametrize("type_", MAKES)
@pytest.mark.parametrize("protocol", [5, 6])
def test_random_changes_are_proposed_as_terraform_does(tmp_path: Path, protocol: int, type_: str) -> None:
    if protocol == 5 and type_ not in fake_types.RESOURCES:
        pytest.skip("version 5 has no nested attributes")
    chance = random.Random(type_)
    terraform = TerraformWithFake(tmp_path, protocol)
    compared = 0
    changes = 0.0 if type_ == "fake_types" else 0.8  # tuples and objects cannot lose a part
    made = [MAKES[type_](chance) for _ in range(CASES)]
    for step in range(STEPS):
        if step:
            made = [
                changed(chance, copy.deepcopy(one)) if chance.random() < changes else MAKES[type_](chance)
                for one in made
            ]
        written = {f"r{number}": {**one, "name": f"r{number}"} for number, one in enumerate(made)}
        terraform.write({type_: written})
        terraform.apply()
        for request in terraform.requests("PlanResourceChange"):
            name = decode(request["config"], implied_type(BLOCKS[type_]))["name"]
            check(BLOCKS[type_], written[name], request)
            compared += 1
    assert compared > CASES * STEPS // 2
