"""Moments are text outside of the program, and what they were once they are back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from lehr.base.clock import SystemClock
from lehr.base.moments import Moment, decode, described, encode, plain, rfc3339, seconds_of


class Inner(msgspec.Struct, frozen=True):
    at: Moment
    took: float = 1.5
    inner: Inner | None = None


class Without(msgspec.Struct, frozen=True):
    body: msgspec.Raw
    again: Without | None = None
    other: Without | None = None


class Began(msgspec.Struct, frozen=True, tag="began"):
    units: tuple[str, ...]


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    units: dict[str, Inner]


class Told(msgspec.Struct, frozen=True):
    fact: Began | Ended
    at: Moment


class Outer(msgspec.Struct, frozen=True):
    first: Moment | None
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}
    anything: Any = None


def test_a_moment_is_text_in_utc_to_the_microsecond() -> None:
    assert rfc3339(0.0) == "1970-01-01T00:00:00.000000Z"
    assert rfc3339(1_769_860_800.25) == "2026-01-31T12:00:00.250000Z"
    assert seconds_of("2026-01-31T13:00:00+01:00") == seconds_of("2026-01-31T12:00") == 1_769_860_800.0
    assert rfc3339(float("inf")).startswith("9999-")
    assert rfc3339(float("-inf")) == rfc3339(float("nan")) == "0001-01-01T00:00:00.000000Z"
    with pytest.raises(ValueError, match="soon"):
        seconds_of("soon")


def test_what_the_clock_says_comes_back_as_it_was() -> None:
    now = SystemClock().now()
    for step in range(1000):
        at = (int(now * 1e6) + step * 7_919) / 1e6
        assert seconds_of(rfc3339(at)) == at
    assert seconds_of(rfc3339(now)) == now


def test_moments_are_found_wherever_they_are_and_nothing_else_is_changed() -> None:
    value = Outer(2.0, (Inner(3.0, inner=Inner(4.0)),), {"x": Inner(5.0)}, {"at": 6.0})
    content = encode(value, Outer)
    assert json.loads(content) == plain(value)
    assert plain(value)["first"] == rfc3339(2.0)
    assert plain(value)["many"][0]["inner"]["at"] == rfc3339(4.0)
    assert plain(value)["named"]["x"] == {"at": rfc3339(5.0), "took": 1.5, "inner": None}
    assert plain(value)["anything"] == {"at": 6.0}
    assert decode(content, Outer) == value
    assert decode(encode([value], list[Outer]), list[Outer]) == [value]
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"first": "soon"}', Outer)


def test_structs_of_a_union_are_distinguished_by_their_tags() -> None:
    for told in (Told(Began(("a",)), 1.0), Told(Ended({"a": Inner(2.0)}), 1.0)):
        assert decode(encode(told, Told), Told) == told
    assert plain(told)["fact"]["units"]["a"]["at"] == "1970-01-01T00:00:02.000000Z"
    with pytest.raises(msgspec.ValidationError):
        decode(b'{"fact": [1], "at": "1970-01-01T00:00:02Z"}', Told)


def test_what_has_none_is_left_alone_raw_json_included() -> None:
    value = Without(msgspec.Raw(b'{"a":1}'), Without(msgspec.Raw(b"2")))
    content = encode([value, value], list[Without])
    assert json.loads(content)[1]["again"]["body"] == 2
    assert decode(content, list[Without])[0].again == value.again


def test_they_are_described_as_text() -> None:
    fields = described(msgspec.json.schema(Inner))["$defs"]["Inner"]["properties"]
    assert (fields["at"]["type"], fields["at"]["format"]) == ("string", "date-time")
    assert fields["took"]["type"] == "number"
