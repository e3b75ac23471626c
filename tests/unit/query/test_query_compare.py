"""Field-level differences."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.digest import canonical
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.incarnation import AssetChange
from lehr.query.compare import (
    ChangeKind,
    FieldChange,
    changes_between,
    compare,
    compare_asset,
    compare_values,
)

ADDED, CHANGED, REMOVED = ChangeKind.ADDED, ChangeKind.CHANGED, ChangeKind.REMOVED


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("/a", CHANGED, 1, 2)]),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, [("/a/c", ADDED, None, 2)]),
        ({"a": [1, 2, 3]}, {"a": [1, 9]}, [("/a/1", CHANGED, 2, 9), ("/a/2", REMOVED, 3, None)]),
        ({"a": 1}, {"a": [1]}, [("/a", CHANGED, 1, [1])]),
        ({"a": None}, {"a": 0}, [("/a", CHANGED, None, 0)]),
        ({"a": 1}, {"a": True}, [("/a", CHANGED, 1, True)]),
        ({}, {"a/b": {"~": 1}}, [("/a~1b/~0", ADDED, None, 1)]),
        ({"a": {}}, {}, [("/a", REMOVED, {}, None)]),
    ],
)
def test_every_field_that_differs_is_named_by_its_pointer(before: Any, after: Any, expected: Any) -> None:
    assert list(compare_values(before, after)) == [FieldChange(*item) for item in expected]


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(plain, plain)
def test_values_differ_in_no_field_exactly_when_they_are_the_same(before: Any, after: Any) -> None:
    assert (not list(compare_values(before, after))) == (canonical(before) == canonical(after))
    paths = [change.path for change in compare_values(before, after)]
    assert len(paths) == len(set(paths))


def test_what_an_asset_held_is_told_when_it_comes_or_goes() -> None:
    asset = make_asset(AssetId("a"), "test.Thing", {"value": "x"}, {})
    added = compare_asset(AssetChange(asset.id, None, asset))
    removed = compare_asset(AssetChange(asset.id, asset, None))
    assert (added.kind, added.fields) == (ADDED, (FieldChange("/payload/value", ADDED, None, "x"),))
    assert (removed.kind, removed.fields) == (REMOVED, (FieldChange("/payload/value", REMOVED, "x", None),))


def test_a_change_of_type_is_a_difference_of_its_own() -> None:
    before = make_asset(AssetId("a"), "test.Thing", {"value": "x"}, {})
    after = make_asset(AssetId("a"), "test.Other", {"value": "x"}, {})
    found = compare_asset(AssetChange(AssetId("a"), before, after))
    assert found.fields == (FieldChange("/type", CHANGED, "test.Thing", "test.Other"),)


def test_assets_that_do_not_differ_are_left_out() -> None:
    one = make_asset(AssetId("a"), "test.Thing", {"value": "x"}, {})
    other = make_asset(AssetId("b"), "test.Thing", {"value": "x"}, {})
    new = make_asset(AssetId("b"), "test.Thing", {"value": "y"}, {})
    found = compare("shop@1", "working tree", changes_between([one, other], {one.id: one, new.id: new}))
    assert [asset.id for asset in found.assets] == ["b"]
    assert [found.count(kind) for kind in ChangeKind] == [0, 1, 0]


def test_content_in_files_of_the_workspace_is_compared_as_text_if_it_is_text() -> None:
    kept = {"d1": b"one", "d2": b"two", "d3": b"\0", "d4": b"\xff", "d5": b"large"}

    def paths(before: str, after: str) -> list[str]:
        def asset(digest: str) -> Asset:
            source = {"file": "f", "digest": digest, "size": 2 << 20 if digest == "d5" else 3}
            return make_asset(AssetId("a"), "t", {"source": source}, {})

        change = AssetChange(AssetId("a"), asset(before), asset(after))
        found = compare_asset(change, lambda path, digest: kept.get(digest)).fields
        texts = [item for item in found if item.path == "/payload/source/content"]
        assert all((item.before, item.after) == ("one", "two") for item in texts)
        return [item.path for item in found]

    assert paths("d1", "d2") == ["/payload/source/content", "/payload/source/digest"]
    for other in ("d3", "d4", "d5", "gone"):
        assert "/payload/source/content" not in paths("d1", other)
