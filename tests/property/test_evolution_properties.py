"""Data becomes data of a later version, however it gets there, and nothing but that is touched."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.base.errors import StalledError
from lehr.model.asset import AssetId, make_asset
from lehr.model.evolution import Evolution, Former, Step, evolution
from lehr.model.types import AssetType, Registry, Schema

names = st.sampled_from(["a", "b", "c", "d"])
pointers = st.lists(names, min_size=1, max_size=2).map(lambda parts: "/" + "/".join(parts))
plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["x", "x:y", "7", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
two = st.lists(pointers, min_size=2, max_size=2, unique=True)
steps = st.one_of(
    st.builds(lambda old, new: {"rename": {old: new}}, pointers, pointers),
    st.builds(lambda at, value: {"default": {at: value}}, pointers, plain),
    st.builds(lambda at: {"remove": [at]}, pointers),
    st.builds(lambda at, into: {"split": {"field": at, "by": ":", "into": into}}, pointers, two),
    st.builds(lambda at, into: {"join": {"fields": at, "by": ":", "into": into}}, two, pointers),
    st.builds(lambda at: {"retype": {at: "string"}}, pointers),
    st.builds(lambda at: {"replace": {at: {"x": "y"}}}, pointers),
    st.builds(lambda old, new: {"within": "/a/*", "rename": {old: new}}, pointers, pointers),
)
formers = st.lists(st.lists(steps, max_size=3), min_size=1, max_size=4)
values = st.dictionaries(names, plain, max_size=4)


def grown(forms: list[list[dict[str, Any]]]) -> Evolution:
    told = [{"version": number, "steps": found} for number, found in enumerate(forms, start=1)]
    return evolution(len(forms) + 1, msgspec.convert(told, list[Former]))


def converted(changes: Evolution, value: Any, version: int, wanted: int) -> Any:
    """Its bytes, or that it cannot be."""
    try:
        return msgspec.json.encode(changes.convert(value, version, wanted))
    except StalledError:
        return None


@settings(max_examples=150)
@given(formers, values, st.data())
def test_converting_composes_and_changes_nothing_of_what_it_is_given(
    forms: list[list[dict[str, Any]]], value: Any, data: st.DataObject
) -> None:
    changes = grown(forms)
    between = data.draw(st.integers(1, changes.version))
    before = msgspec.json.encode(value)
    whole = converted(changes, value, 1, changes.version)
    first = converted(changes, value, 1, between)
    if first is None:
        assert whole is None
    else:
        assert converted(changes, msgspec.json.decode(first), between, changes.version) == whole
    assert msgspec.json.encode(value) == before


@settings(max_examples=100)
@given(formers, values)
def test_what_is_converted_is_not_converted_again(forms: list[list[dict[str, Any]]], value: Any) -> None:
    changes = grown(forms)
    known = Registry([AssetType("t", Schema({}, {}), evolution=changes)])
    try:
        newest = known.payload(make_asset(AssetId("x"), "t", value, {}), dict)
    except StalledError:
        return
    again = make_asset(AssetId("x"), "t", newest, {}, versions={"t": changes.version})
    assert known.payload(again, dict) == newest


@settings(max_examples=100)
@given(values, st.dictionaries(names, plain, max_size=3))
def test_a_field_that_comes_with_a_default_changes_no_other(value: Any, defaults: dict[str, Any]) -> None:
    step = Step(default={f"/{name}": item for name, item in defaults.items()})
    changes = evolution(2, [Former(1, (step,))])
    assert changes.convert(value, 1, 2) == {**defaults, **value}
