"""Values of Terraform's types: encoded, completed, and compared."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.plugins.terraform.provider import UNKNOWN, Number, Typed
from lehr.plugins.terraform.values import json_codec, numbers
from lehr.plugins.terraform.values.canonical import type_of
from lehr.plugins.terraform.values.cty_types import implied_type
from lehr.plugins.terraform.values.msgpack_codec import DamagedValueError, decode, encode
from lehr.plugins.terraform.values.nulls import null_value
from tests.unit.plugins.terraform.blocks import BLOCK

_NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40),
    st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30).map(numbers.normal),
    st.integers(10**25, 10**30).map(lambda n: Number(f"0.{n}").digits.rstrip("0")).map(numbers.parsed),
)
_SCALARS = {"string": st.text(max_size=5), "bool": st.booleans(), "number": _NUMBERS}


def _types() -> st.SearchStrategy[object]:
    return st.recursive(
        st.sampled_from([*_SCALARS, "dynamic"]),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["list", "set", "map"]), inner).map(list),
            st.lists(inner, max_size=3).map(lambda types: ["tuple", types]),
            st.dictionaries(st.sampled_from("abc"), inner).map(lambda fields: ["object", fields]),
        ),
        max_leaves=5,
    )


def _values(type_: Any) -> st.SearchStrategy[object]:
    match type_:
        case "dynamic":
            return st.one_of(
                st.sampled_from([True, "x", 3, 0.1, None, UNKNOWN, ["a", {"b": 1}]]),
                st.just(Typed(["set", "string"], ["a"])),
            )
        case str():
            return st.one_of(_SCALARS[type_], st.none(), st.just(UNKNOWN))
        case [("list" | "set"), element]:
            return st.lists(_values(element), max_size=3)
        case ["map", element]:
            return st.dictionaries(st.text(max_size=2), _values(element), max_size=3)
        case ["tuple", elements]:
            return st.tuples(*map(_values, elements)).map(list)
        case ["object", fields]:
            return st.fixed_dictionaries({name: _values(one) for name, one in fields.items()})
    raise AssertionError(type_)


@given(st.data())
def test_what_was_encoded_is_decoded_and_encoded_again_without_loss(data: st.DataObject) -> None:
    type_ = data.draw(_types())
    once = decode(encode(data.draw(_values(type_)), type_), type_)
    assert decode(encode(once, type_), type_) == once
    assert encode(once, type_) == encode(decode(encode(once, type_), type_), type_)


@given(st.data())
def test_json_keeps_what_is_known(data: st.DataObject) -> None:
    type_ = data.draw(_types())
    value = decode(encode(data.draw(_values(type_)), type_), type_)
    try:
        written = json_codec.to_json(value, type_)
    except ValueError:
        assert b"\xd4\0\0" in encode(value, type_)  # something is unknown
        return
    assert json_codec.from_json(written, type_) == value


@pytest.mark.parametrize(
    ("digits", "number"),
    [
        ("5", 5),
        ("5.0", 5),
        ("0.1", 0.1),
        ("1.5", 1.5),
        ("-3e2", -300),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("0.1234567890123456789012345", Number("0.1234567890123456789012345")),
    ],
)
def test_a_number_is_what_holds_all_its_digits(digits: str, number: object) -> None:
    assert numbers.parsed(digits) == number
    assert decode(encode(numbers.parsed(digits), "number"), "number") == number


@pytest.mark.parametrize("digits", ["", "x", "1e9999", "0x10", "nan", "inf", "1" * 1300, "\u0661"])
def test_what_is_not_a_number_or_too_long_is_refused(digits: str) -> None:
    with pytest.raises(ValueError, match="number"):
        numbers.parsed(digits)


def test_a_fraction_that_binary_cannot_hold_is_sent_as_its_digits() -> None:
    assert msgspec.msgpack.decode(encode(0.1, "number")) == "0.1"
    assert msgspec.msgpack.decode(encode(0.5, "number")) == 0.5
    assert msgspec.msgpack.decode(encode(2**64, "number")) == str(2**64)


def test_a_set_has_one_order_and_each_element_once() -> None:
    type_ = ["set", ["object", {"a": "number"}]]
    one, two = {"a": 1}, {"a": 2}
    assert encode([one, two, one], type_) == encode([two, one], type_)
    assert decode(encode(["b", "a", "b"], ["set", "string"]), ["set", "string"]) == ["a", "b"]
    assert decode(encode([UNKNOWN, UNKNOWN], ["set", "string"]), ["set", "string"]) == [UNKNOWN, UNKNOWN]


def test_an_unknown_value_may_come_with_what_is_known_of_it() -> None:
    refined = msgspec.msgpack.encode(msgspec.msgpack.Ext(12, msgspec.msgpack.encode({1: False})))
    assert decode(refined, "string") is UNKNOWN
    assert encode(UNKNOWN, "string") == b"\xd4\x00\x00"


def test_a_value_of_any_type_keeps_a_type_that_plain_data_does_not_have() -> None:
    assert decode(encode({"a": [1, "x"]}, "dynamic"), "dynamic") == {"a": [1, "x"]}
    typed = Typed(["list", "number"], [1, 2])
    assert decode(encode(typed, "dynamic"), "dynamic") == typed
    assert type_of([1, "x"]) == ["tuple", ["number", "string"]]


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (b"", "string"),
        (b"\xc1", "string"),
        (b"\xa1", "string"),
        (msgspec.msgpack.encode(1), "string"),
        (msgspec.msgpack.encode("x"), "number"),
        (msgspec.msgpack.encode(1), "bool"),
        (msgspec.msgpack.encode(float("nan")), "number"),
        (msgspec.msgpack.encode({"a": 1}), ["object", {"b": "number"}]),
        (msgspec.msgpack.encode([1]), ["object", {"b": "number"}]),
        (msgspec.msgpack.encode({1: "x"}), ["map", "string"]),
        (msgspec.msgpack.encode([1, 2]), ["tuple", ["number"]]),
        (msgspec.msgpack.encode([b"no json", 1]), "dynamic"),
        (msgspec.msgpack.encode([b'"strange"', 1]), "dynamic"),
        (msgspec.msgpack.encode(msgspec.msgpack.Ext(7, b"")), "string"),
        (b"\x91" * 100_000, ["list", "string"]),
    ],
)
def test_bytes_that_are_not_a_value_are_refused(data: bytes, type_: object) -> None:
    with pytest.raises(DamagedValueError):
        decode(data, type_)


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (b"{", "string"),
        (b"1", "string"),
        (b'{"a": 1}', ["object", {}]),
        (b"[1]", ["map", "string"]),
        (b'{"type": 1}', "dynamic"),
    ],
)
def test_json_that_is_not_a_value_is_refused(data: bytes, type_: object) -> None:
    with pytest.raises(DamagedValueError):
        json_codec.from_json(data, type_)


def test_an_attribute_that_a_kept_state_does_not_have_is_null() -> None:
    assert json_codec.from_json(b'{"a": 1}', ["object", {"a": "number", "b": "string"}]) == {
        "a": 1,
        "b": None,
    }


def test_nothing_set_has_every_attribute_and_no_block() -> None:
    value = null_value(BLOCK)
    assert value["name"] is None
    assert value["servers"] is None
    assert (value["rule"], value["step"], value["by_key"]) == ([], [], {})
    assert value["only"] is None
    assert value["group"] == {"x": None}
    assert decode(encode(value, implied_type(BLOCK)), implied_type(BLOCK)) == value
