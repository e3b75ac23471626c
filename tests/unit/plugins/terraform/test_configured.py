"""What people write becomes a complete configuration, or a list of what is wrong with it."""

from typing import Any

import pytest

from lehr.plugins.terraform.provider import UNKNOWN, Number, Severity
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.cty_types import implied_type
from lehr.plugins.terraform.values.msgpack_codec import decode, encode
from tests.unit.plugins.terraform.blocks import BLOCK

NAME = {"name": "n"}


def problems(written: dict[str, Any]) -> list[tuple[str, ...]]:
    found = configured(BLOCK, NAME | written)[1]
    return [(".".join(map(str, one.path)), one.summary, *([one.detail] * bool(one.detail))) for one in found]


def value(written: dict[str, Any]) -> Any:
    found, wrong = configured(BLOCK, NAME | written)
    assert [one for one in wrong if one.severity is Severity.ERROR] == []
    assert decode(encode(found, implied_type(BLOCK)), implied_type(BLOCK)) == found
    return found


def test_all_that_is_not_written_is_null_or_no_block() -> None:
    assert value({}) == {
        **dict.fromkeys(("id", "size", "enabled", "class", "zones", "labels", "pairs", "any", "password")),
        "name": "n",
        "servers": None,
        "rule": [],
        "step": [],
        "only": None,
        "group": {"x": None},
        "by_key": {},
    }


@pytest.mark.parametrize(
    ("name", "written", "meant"),
    [
        ("name", 5, "5"),
        ("name", True, "true"),
        ("name", 1.50, "1.5"),
        ("name", "e\u0301", "\u00e9"),
        ("size", "8080", 8080),
        ("size", " 0.10 ", 0.1),
        ("size", 3.0, 3),
        ("size", Number("0.1234567890123456789012345"), Number("0.1234567890123456789012345")),
        ("size", UNKNOWN, UNKNOWN),
        ("enabled", "true", True),
        ("enabled", "0", False),
        ("zones", ["b", "a", "b"], ["a", "b"]),
        ("zones", (1, 2), ["1", "2"]),
        ("labels", {"a": 1, 2: "b", True: None}, {"a": "1", "2": "b", "true": None}),
        ("pairs", [{"a": "x"}], [{"a": "x", "b": None}]),
        ("any", {"a": [1, "x", 2.0]}, {"a": [1, "x", 2]}),
        (
            "servers",
            [{"host": "b"}, {"host": "a", "zone": "z"}],
            [
                {"host": "a", "zone": "z", "token": None},
                {"host": "b", "zone": None, "token": None},
            ],
        ),
    ],
)
def test_plain_data_is_converted_as_terraform_does(name: str, written: object, meant: object) -> None:
    found = value({name: written})[name]
    assert found == meant
    assert type(found) is type(meant)


def test_one_block_needs_no_list_around_it() -> None:
    rule = {"port": 1, "name": None, "id": None, "key": None}
    assert value({"step": {"port": 1}})["step"] == [rule]
    assert value({"rule": {"port": "1"}})["rule"] == [rule]
    assert value({"only": [{"port": 1}]})["only"] == rule
    assert value({"by_key": {"a": {"port": 1}}})["by_key"] == {"a": rule}
    assert value({"group": {"x": "3"}})["group"] == {"x": 3}
    assert value({"only": UNKNOWN, "rule": [UNKNOWN, {"port": 1}]})["only"] is UNKNOWN


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ({"nmae": 1}, ("nmae", 'unknown attribute or block "nmae"', 'did you mean "name"?')),
        ({"zzz": 1}, ("zzz", 'unknown attribute or block "zzz"')),
        ({"name": None}, ("name", '"name" is required')),
        ({"id": "x"}, ("id", '"id" cannot be set: the provider decides it')),
        ({"size": "many"}, ("size", "must be a number")),
        ({"size": True}, ("size", "must be a number, not a boolean")),
        ({"size": float("inf")}, ("size", "must be a number: it is not a finite number")),
        ({"enabled": "yes"}, ("enabled", "must be true or false, not a string")),
        ({"name": ["n"]}, ("name", "must be a string, not a list")),
        ({"zones": "a"}, ("zones", "must be a list, not a string")),
        ({"zones": ["a", {}]}, ("zones", "must be a string, not a mapping")),
        ({"labels": ["a"]}, ("labels", "must be a mapping, not a list")),
        ({"labels": {"a": []}}, ("labels.a", "must be a string, not a list")),
        ({"pairs": [{"a": "x"}, {"c": 1}]}, ("pairs.1.c", 'unknown attribute "c"')),
        ({"any": {1, 2}}, ("any", "cannot be a set")),
        ({"servers": {}}, ("servers", "must be a list")),
        ({"servers": [{"hots": 1}]}, ("servers.hots", 'unknown attribute "hots"', 'did you mean "host"?')),
        ({"step": [{"port": 1}, {}]}, ("step.1.port", '"port" is required')),
        ({"step": "x"}, ("step", "must be a list of mappings")),
        ({"step": ["x"]}, ("step.0", "must be a mapping")),
        ({"by_key": {"k": {"port": "x"}}}, ("by_key.k.port", "must be a number")),
        ({"by_key": [{"port": 1}]}, ("by_key", "must be a mapping")),
        (
            {"rule": [{"port": n} for n in range(4)]},
            ("rule", 'at most 3 instances of block "rule", 4 written'),
        ),
        ({"password": "x"}, ("password", '"password" is deprecated')),
    ],
)
def test_each_mistake_is_named_with_its_place(written: dict[str, Any], wrong: tuple[str, ...]) -> None:
    assert problems(written) == [wrong]


def test_what_is_wrong_is_never_quoted() -> None:
    for written in ({"size": "s3cret"}, {"zones": "s3cret"}, {"password": ["s3cret"]}, {"step": ["s3cret"]}):
        assert "s3cret" not in repr(configured(BLOCK, NAME | written)[1])


def test_all_mistakes_are_found_at_once() -> None:
    assert len(problems({"id": 1, "size": [], "step": [{}, {}], "x": 1})) == 5


def test_as_many_blocks_as_needed() -> None:
    import msgspec

    nested = msgspec.structs.replace(BLOCK.blocks[1], least=2)
    block = msgspec.structs.replace(BLOCK, blocks=(nested,))
    assert [one.summary for one in configured(block, NAME | {"step": {"port": 1}})[1]] == [
        '2 instances of block "step" required, 1 written'
    ]
    single = msgspec.structs.replace(BLOCK.blocks[2], least=1, most=1)
    block = msgspec.structs.replace(BLOCK, blocks=(single,))
    assert [one.summary for one in configured(block, NAME)[1]] == [
        '1 instance of block "only" required, 0 written'
    ]
