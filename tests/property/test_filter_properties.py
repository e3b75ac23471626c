"""A filter matches what its condition holds of, wherever it looks and however little it decodes."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lehr.cel import NoAnswerError, compile_condition
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.query.filters import VARIABLES, Bounds, Filter

ids = st.sampled_from(["a", "a/b", "a/c", "b", "bb/a"])
types = st.sampled_from(["t.A", "t.B", "t.C"])
payloads = st.one_of(
    st.dictionaries(
        st.sampled_from(["a", "b", "class"]),
        st.one_of(st.integers(0, 3), st.sampled_from(["x", "y"]), st.lists(st.integers(0, 2), max_size=2)),
    ),
    st.lists(st.integers(0, 2), max_size=2),
)
assets = st.builds(
    make_asset, ids.map(AssetId), types, payloads, st.dictionaries(st.just("t.Addon"), st.just({"k": 1}))
)

conditions = st.recursive(
    st.one_of(
        st.builds("id == '{}'".format, ids),
        st.builds("'{}' == id".format, ids),
        st.builds("id.startsWith('{}')".format, st.sampled_from(["a", "a/", "b", ""])),
        st.builds("id in ['{}', '{}']".format, ids, ids),
        st.builds("type == '{}'".format, types),
        st.builds("type in ['{}', '{}']".format, types, types),
        st.builds("type != '{}'".format, types),
        st.builds("payload.a == {}".format, st.sampled_from(["1", "'x'", "payload.b"])),
        st.sampled_from(["has(payload.b)", "payload.a > 1", "payload.size() > 1", "'a' in payload"]),
        st.sampled_from(
            ["addons['t.Addon'].k == 1", "payload.a.exists(i, i > 1)", "true", "'x'", "payload.c"]
        ),
    ),
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
    ),
    max_leaves=6,
)


def holds(text: str, asset: Asset) -> bool:
    document: dict[str, Any] = asset.document()
    try:
        return compile_condition(text, VARIABLES)({name: document[name] for name in VARIABLES})
    except NoAnswerError:
        return False


def lies_within(bounds: Bounds, asset: Asset) -> bool:
    by_id = (bounds.ids is None or asset.id in bounds.ids) and asset.id.startswith(bounds.prefix)
    return by_id and (bounds.types is None or asset.type in bounds.types)


@settings(max_examples=150)
@given(conditions, st.lists(assets, min_size=1, max_size=6))
@example("payload.class == 1", [make_asset(AssetId("a"), "t.A", {"class": 1}, {})])
@example("id == 'a' && id.startsWith('b')", [make_asset(AssetId("a"), "t.A", {}, {})])
@example("id == 'a' || id.startsWith('b')", [make_asset(AssetId("bb/a"), "t.A", {}, {})])
@example("payload.a == 1", [make_asset(AssetId("a"), "t.A", [1], {})])
def test_a_filter_matches_what_its_condition_holds_of(text: str, among: list[Asset]) -> None:
    try:
        compile_condition(text, VARIABLES)
    except ValueError:
        return
    found = Filter(text)
    for asset in among:
        assert found.matches(asset) == holds(text, asset)
        assert lies_within(found.bounds, asset) or not holds(text, asset)
