"""What policies find in a difference is what they find in the whole."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.policy import POLICY, POLICY_TYPE, Policy
from lehr.model.types import AssetType, Registry, Schema
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor
from lehr.validate.policies import policy_is_broken

NOTE = "test.Note"
REGISTRY = Registry((AssetType(NOTE, Schema({"type": "object"}, {})), POLICY_TYPE), ADDONS)

RULES = (
    {"name": "few", "require": "payload.n < 3", "message": "{{ id }}"},
    {"name": "any", "require": "payload.m >= 0", "message": "{{ id }}"},
    {"name": "one", "unique": "payload.n", "message": "{{ value }}"},
    {"name": "sum", "require_of_all": "size(assets) <= 3", "message": "{{ size(assets) }}"},
)
MATCHES = ({"select": {"types": ["test.*"]}}, {"select": {"ids": ["?"]}, "where": "payload.n > 0"})

notes = st.dictionaries(
    st.sampled_from("abcde"),
    st.one_of(
        st.fixed_dictionaries({"n": st.integers(0, 3)}),
        st.fixed_dictionaries({"n": st.integers(0, 3), "m": st.integers(-1, 1)}),
    ),
)
policies = st.dictionaries(
    st.sampled_from(["p", "q"]),
    st.fixed_dictionaries(
        {
            "match": st.sampled_from(MATCHES),
            "rules": st.lists(st.sampled_from(RULES), min_size=1, unique_by=str),
        }
    ),
)
worlds = st.tuples(notes, policies)

World = tuple[dict[str, Any], dict[str, Any]]


def assets(world: World) -> dict[AssetId, Asset]:
    plain = [make_asset(AssetId(id), NOTE, payload, {}) for id, payload in world[0].items()]
    judging = [
        make_asset(AssetId(f"policies/{id}"), POLICY, msgspec.convert(value, Policy), {})
        for id, value in world[1].items()
    ]
    return {asset.id: asset for asset in (*plain, *judging)}


def found(before: dict[AssetId, Asset], after: dict[AssetId, Asset]) -> set[tuple[str, str, str]]:
    changes = [AssetChange(id, before.get(id), after.get(id)) for id in sorted({*before, *after})]
    predecessor = MappingPredecessor(before, REGISTRY)
    proposal = DeltaProposal(Partition("p"), REGISTRY, Limits(), changes, predecessor)
    return {(item.subject, item.what, item.why) for item in policy_is_broken(proposal)}


@settings(max_examples=300)
@given(worlds, worlds)
def test_a_difference_is_judged_as_the_whole_is(one: World, other: World) -> None:
    before, after = assets(one), assets(other)
    held, whole, part = found({}, before), found({}, after), found(before, after)
    assert part <= whole
    assert whole <= part | held  # nothing that is new is missed
