"""Whom policies are about is told of an asset on its way as of one that is whole."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.compiled_policies.policy import Matching, Unclear, values_of
from lehr.model.asset import AssetId, make_asset
from lehr.model.policy import Policy
from lehr.model.selector import Selector

LABELS = "lehr.Labels"
SELECTORS: list[dict[str, Any]] = [
    {"all": True},
    {"ids": ["web/*", "db"]},
    {"types": ["team.*"]},
    {"labels": {"env": "x"}},
    {"ids": ["web/*"], "types": ["team.A"], "labels": {"env": "x", "tier": "y"}},
]
ASSETS = [
    make_asset(AssetId(id), type, {}, addons)
    for id in ("web/a", "db", "other")
    for type in ("team.A", "team.B", "else.C")
    for addons in ({}, {LABELS: {"labels": {"env": "x"}}}, {LABELS: {"labels": {"env": "x", "tier": "y"}}})
]


@pytest.mark.parametrize("select", SELECTORS, ids=str)
def test_assets_are_selected_as_everywhere_else(select: dict[str, Any]) -> None:
    unclear: list[Unclear] = []
    rules = [{"name": "r", "require": "true", "message": "m"}]
    matching = Matching(msgspec.convert({"match": {"select": select}, "rules": rules}, Policy), unclear)
    selector = msgspec.convert(select, Selector)
    assert unclear == []
    for asset in ASSETS:
        assert matching.matches(values_of(asset)) == selector.matches(asset)
        assert matching.may_concern(asset) or not selector.matches(asset)


def test_labels_that_are_none_yet_select_nothing() -> None:
    match = {"select": {"labels": {"env": "x"}}}
    rules = [{"name": "r", "require": "true", "message": "m"}]
    matching = Matching(msgspec.convert({"match": match, "rules": rules}, Policy), [])
    for addon in (None, 1, {"labels": 2}, {}):
        assert not matching.matches({"id": "a", "type": "T", "payload": {}, "addons": {LABELS: addon}})
