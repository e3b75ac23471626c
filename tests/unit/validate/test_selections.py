"""A selector that selects nothing is worth a warning: when it is new, and when its last asset goes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.checks import TYPES
from lehr.checks.rate_limit import RateLimit
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.policy import POLICY, POLICY_TYPE, Policy
from lehr.model.types import AssetType, Registry
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate
from tests.unit.validate.proposing import JOB, Job, job

REGISTRY = Registry((AssetType(JOB, Job), *TYPES, POLICY_TYPE), ADDONS)
WEB, DB = job("web"), job("db")


def limit(**select: Any) -> Asset:
    payload = msgspec.convert({"select": select, "pushes": 1, "per": "1m"}, RateLimit)
    return make_asset(AssetId("gentle"), "lehr.RateLimit", payload, {}, Position("assets/gentle.yaml", 1, 1))


def policy(**select: Any) -> Asset:
    rules = [{"name": "small", "require": "true", "message": "no"}]
    payload = msgspec.convert({"match": {"select": select}, "rules": rules}, Policy)
    return make_asset(AssetId("small"), POLICY, payload, {})


def warned(before: Iterable[Asset], after: Iterable[Asset]) -> list[Diagnostic]:
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    predecessor = MappingPredecessor(old, REGISTRY)
    proposal = DeltaProposal(Partition("shop"), REGISTRY, Limits(), changes, predecessor)
    return [item for item in validate(proposal) if item.code == "VAL008"]


@pytest.mark.parametrize("word", [limit(ids=["wep"]), policy(ids=["wep"]), limit(labels={"team": "web"})])
def test_a_new_selector_that_selects_nothing_is_a_warning(word: Asset) -> None:
    (found,) = warned([WEB, DB], [WEB, DB, word])
    assert (found.subject, found.severity) == (word.id, Severity.WARNING)
    assert not warned([WEB, DB, word], [WEB, job("db", port=81), word]), "it is said once"


def test_a_selector_that_loses_its_last_asset_is_a_warning() -> None:
    word = limit(ids=["web*"])
    assert not warned([WEB, DB], [WEB, DB, word])
    assert not warned([WEB, job("web2"), word], [job("web2"), word])
    assert not warned([WEB, word], [job("web2"), word])
    (found,) = warned([WEB, DB, word], [DB, word])
    assert found.subject == "gentle"


def test_a_selector_that_is_changed_is_judged_anew_and_everything_is_never_nothing() -> None:
    assert warned([WEB, limit(ids=["web"])], [WEB, limit(ids=["wep"])])
    assert not warned([WEB, limit(ids=["wep"])], [WEB, limit(ids=["web"])])
    assert not warned([], [limit(all=True)])
