"""No asset is selected by two rollout policies, and emergencies are for incarnations that exist."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from lehr.base.diagnostics import Diagnostic, Position
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.incarnation import AssetChange
from lehr.model.selector import Selector
from lehr.model.types import AssetType, Registry
from lehr.rollouts.policy import ROLLOUT_POLICY_TYPE, Emergency, RolloutPolicy
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate
from tests.unit.validate.proposing import JOB, Job, job

REGISTRY = Registry((AssetType(JOB, Job), ROLLOUT_POLICY_TYPE), ADDONS)
WEB, DB = job("web"), job("db")


def policy(id: str, **select: Any) -> Asset:
    payload = RolloutPolicy(Selector(**select))
    return make_asset(AssetId(id), ROLLOUT_POLICY, payload, {}, Position(f"assets/{id}.yaml", 1, 1))


def found(before: Iterable[Asset], after: Iterable[Asset]) -> list[Diagnostic]:
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    proposal = DeltaProposal(
        Partition("shop"), REGISTRY, Limits(), changes, MappingPredecessor(old, REGISTRY)
    )
    return [item for item in validate(proposal) if item.code in ("VAL064", "VAL065")]


ALL, WEBS = policy("all", all=True), policy("webs", ids=("web*",))


def test_a_new_policy_must_not_select_what_another_one_does() -> None:
    [problem] = found([WEB, DB, ALL], [WEB, DB, ALL, WEBS])
    assert problem.subject == "webs"
    assert problem.what == "all and webs both select web"
    assert str(problem.at).startswith("assets/webs.yaml")


def test_an_asset_must_not_come_under_two_policies() -> None:
    others = policy("others", ids=("*b",))
    [problem] = found([WEB, WEBS, others], [WEB, job("webdb"), WEBS, others])
    assert problem.what == "others and webs both select webdb"


def test_policies_that_select_different_assets_are_fine() -> None:
    assert found([], [WEB, DB, WEBS, policy("dbs", ids=("db*",))]) == []
    assert found([], [WEB, DB, ALL]) == []


def test_everything_means_no_policies() -> None:
    assert found([], [ALL, policy("more", all=True)]) == [], "they select nothing that is governed"


@pytest.mark.parametrize(("target", "codes"), [(1, []), (2, []), (3, ["VAL065"]), (400, ["VAL065"])])
def test_an_emergency_is_for_an_incarnation_that_exists(target: int, codes: list[str]) -> None:
    until = datetime(2026, 1, 31, tzinfo=UTC)
    payload = RolloutPolicy(Selector(all=True), emergency=Emergency(target, "it leaks", until))
    urgent = make_asset(AssetId("urgent"), ROLLOUT_POLICY, payload, {}, Position("assets/u.yaml", 1, 1))
    problems = found([WEB], [WEB, urgent])
    assert [item.code for item in problems] == codes
    if problems:
        assert str(problems[0].at).startswith("assets/u.yaml")
