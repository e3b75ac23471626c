"""A version that is needed can be reached."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.base.diagnostics import Diagnostic
from lehr.model.addons import ADDONS, DEPENDS_ON, DependsOn, Rule, VersionNeed
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.types import Registry
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor
from lehr.validate.dependencies import needed_version_is_never_reached, rule_is_not_understood
from tests.unit.validate.proposing import missing

REGISTRY = Registry((), ADDONS)


def schema(version: object) -> Asset:
    return make_asset(AssetId("schema"), "test.Schema", {"version": version}, {})


def job(at_least: str) -> Asset:
    addon = DependsOn(versions=[VersionNeed("schema", at_least)])
    return make_asset(AssetId("job"), "test.Job", {}, {DEPENDS_ON: addon})


def check(before: Iterable[Asset], after: Iterable[Asset]) -> list[Diagnostic]:
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    predecessor = MappingPredecessor(old, REGISTRY)
    proposal = DeltaProposal(Partition("test"), REGISTRY, Limits(), changes, predecessor)
    return list(needed_version_is_never_reached(proposal))


def test_a_version_that_intent_gives_will_be_reached() -> None:
    assert check([], [schema(2), job("2")]) == []
    assert check([], [schema("2.1"), job("2")]) == []


def test_a_version_above_the_one_given_never_is() -> None:
    (found,) = check([], [schema(1), job("2")])
    assert (found.code, found.subject) == ("VAL005", "job")
    assert not missing(found, "version 2", "`schema`", "gets 1")


def test_it_is_found_when_only_the_version_given_falls() -> None:
    (found,) = check([schema(2), job("2")], [schema(1), job("2")])
    assert found.code == "VAL005"


def test_what_has_no_version_in_intent_is_left_to_production() -> None:
    assert check([], [make_asset(AssetId("schema"), "test.Schema", {}, {}), job("2")]) == []


def test_a_rule_that_cannot_be_understood_is_refused() -> None:
    def app(allow: str) -> Asset:
        return make_asset(
            AssetId("app"), "test.Job", {}, {DEPENDS_ON: DependsOn(rules=[Rule("schema", allow)])}
        )

    old, new = app("theirs.empty"), app("theirs.empty ||")
    for asset, expected in ((old, []), (new, ["VAL006"])):
        change = AssetChange(asset.id, None, asset)
        predecessor = MappingPredecessor({}, REGISTRY)
        proposal = DeltaProposal(Partition("test"), REGISTRY, Limits(), [change], predecessor)
        assert [found.code for view in proposal.views() for found in rule_is_not_understood(view)] == expected
