"""Content keys are equal for contents that are the same to production."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.content_key import content_key, same_content


def asset(id: str = "a", value: str = "1", **addons: Any) -> Asset:
    return make_asset(AssetId(id), "t.Thing", {"value": value}, {f"lehr.{k}": v for k, v in addons.items()})


@pytest.mark.parametrize(
    "addons",
    [
        {"Owner": {"team": "web"}},
        {"Labels": {"labels": {"tier": "web"}}},
        {"AffectedClusters": {"clusters": ["eu"]}},
        {"DependsOn": {"assets": ["b"]}},
    ],
)
def test_owner_labels_clusters_and_order_are_not_content(addons: dict[str, Any]) -> None:
    assert asset(**addons).digest != asset().digest
    assert content_key(asset(**addons)) == content_key(asset())
    assert same_content(asset(**addons), asset())


def test_payload_id_and_all_other_addons_are_content() -> None:
    others = [asset(value="2"), asset("b"), asset(Turndown={"reason": "old"}), asset(Unheard={"of": 1})]
    keys = {content_key(other) for other in (asset(), *others)}
    assert len(keys) == 5
    assert not any(same_content(asset(), other) for other in others)


def test_a_key_covers_what_the_plugin_read_in_any_order() -> None:
    reads = [("b", asset("b")), ("c", None)]
    key = content_key(asset(), reads)
    assert key == content_key(asset(), reversed(reads))
    assert key != content_key(asset())
    assert key != content_key(asset(), [("b", asset("b", "2")), ("c", None)])
    assert key != content_key(asset(), [("b", asset("b")), ("c", asset("c"))])
    assert key == content_key(asset(), [("b", asset("b", Owner={"team": "x"})), ("c", None)])


def test_an_asset_that_is_not_there_is_the_same_only_as_one_that_is_not_there() -> None:
    assert same_content(None, None)
    assert not same_content(asset(), None)
    assert not same_content(None, asset())
