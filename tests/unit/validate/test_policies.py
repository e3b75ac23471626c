"""Policies that people write."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec
import pytest

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import Acknowledgement, AssetChange
from lehr.model.policy import POLICY, POLICY_TYPE, Policy
from lehr.model.types import AssetType, Registry
from lehr.sdk.validator import Limits
from lehr.validate import DeltaProposal, MappingPredecessor, judge
from tests.unit.validate.proposing import JOB, Job, codes, job, jobs, missing

REGISTRY = Registry((AssetType(JOB, Job), POLICY_TYPE), ADDONS)
JOBS = {"select": {"types": [JOB]}}
TWO = {"name": "two", "require": "payload.replicas >= 2", "message": "{{ id }} has {{payload.replicas}}"}


def policy(*rules: dict[str, Any], id: str = "policies/p", **fields: Any) -> Asset:
    """A policy on jobs, declared in a file of its own."""
    value = msgspec.convert({"match": JOBS, "rules": rules, **fields}, Policy)
    return make_asset(AssetId(id), POLICY, value, {}, Position("assets/policies.yaml", 3, 1))


def proposal(
    before: Iterable[Asset],
    after: Iterable[Asset],
    limits: Limits | None = None,
    predecessor: type[MappingPredecessor] = MappingPredecessor,
) -> DeltaProposal:
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    return DeltaProposal(Partition("shop"), REGISTRY, limits or Limits(), changes, predecessor(old, REGISTRY))


def check(before: Iterable[Asset], after: Iterable[Asset]) -> list[Diagnostic]:
    """What policies find in the candidate `after` on the predecessor `before`."""
    found = judge(proposal(before, after)).diagnostics
    return [item for item in found if item.code.startswith("VAL06")]


def test_what_does_not_hold_is_an_error_that_names_asset_policy_and_rule() -> None:
    (found,) = check([], [policy(TWO), job("a", replicas=1), job("b", replicas=2)])
    assert (found.code, found.subject, found.what) == ("VAL060", "a", "a has 1")
    assert found.severity is Severity.ERROR
    assert found.at == Position("assets/a.yaml", 1, 1)
    assert not missing(found, "`policies/p`", "`two`", "assets/policies.yaml:3:1", "`exclude`")
    assert not missing(found, "`require: payload.replicas >= 2`")


def test_the_value_that_a_rule_is_about_is_pointed_to() -> None:
    asked: list[str] = []

    def locate(asset: Asset, pointer: str) -> Position | None:
        asked.append(pointer)
        return None

    owned = {"name": "owned", "require": "addons['lehr.Owner'].team == 'web'", "message": "whose?"}
    assets = [policy(TWO, owned), job("a", replicas=1), job("b", replicas=1)]
    changes = [AssetChange(asset.id, None, asset) for asset in assets]
    predecessor = MappingPredecessor({}, REGISTRY)
    judge(DeltaProposal(Partition("p"), REGISTRY, Limits(), changes, predecessor, locate))
    assert "/payload/replicas" in asked
    assert "/addons/lehr.Owner/team" in asked
    assert [pointer for pointer in asked if "rules" in pointer] == ["/payload/rules/0", "/payload/rules/1"]


def test_a_warning_is_a_warning() -> None:
    (found,) = check([], [policy({**TWO, "severity": "warning"}), job("a")])
    assert (found.code, found.severity) == ("VAL060", Severity.WARNING)


def test_what_is_not_there_is_no_yes() -> None:
    rule = {"name": "owned", "require": "addons['lehr.Owner'].team != ''", "message": "nobody"}
    (found,) = check([], [policy(rule), job("a")])
    assert (found.code, found.subject) == ("VAL061", "a")
    assert not missing(found, "lehr.Owner")


def test_a_match_without_an_answer_is_an_error_and_no_escape() -> None:
    match = {**JOBS, "where": "payload.colour == 'red'"}
    (found,) = check([], [policy(TWO, match=match), job("a", replicas=5)])
    assert (found.code, found.subject, found.severity) == ("VAL061", "a", Severity.ERROR)
    assert not missing(found, "colour")


def test_an_asset_is_judged_where_both_parts_match_and_nothing_excludes_it() -> None:
    match = {**JOBS, "where": "payload.region == 'eu'"}
    exclude = [
        {"select": {"ids": ["old/*"]}, "reason": "goes in May"},
        {"where": "payload.port == 1", "reason": "needs none"},
    ]
    assets = [job("a", region="eu"), job("b", region="us"), job("old/c", region="eu")]
    assets += [job("d", region="eu", port=1)]
    found = check([], [policy(TWO, match=match, exclude=exclude), *assets])
    assert [item.subject for item in found] == ["a"]


def test_a_condition_holds_of_all_that_match_together() -> None:
    rule = {
        "name": "most",
        "require_of_all": "size(assets) <= 2",
        "message": "{{ size(assets) }} jobs, and there is room for 2",
    }
    assert check([], [policy(rule), *jobs(2)]) == []
    (found,) = check([*jobs(2), policy(rule)], [*jobs(3), policy(rule)])
    assert (found.code, found.subject, found.what) == (
        "VAL060",
        "policies/p",
        "3 jobs, and there is room for 2",
    )
    assert found.at == Position("assets/policies.yaml", 3, 1)
    assert found.fix.startswith("change one of the assets that match")


def test_a_unique_value_belongs_to_one_asset() -> None:
    rule = {"name": "port", "unique": "payload.port", "message": "{{id}} and {{other}}: {{value}}"}
    assets = [job("a", port=1), job("b", port=2), job("c", port=1)]
    (found,) = check([*assets[:2], policy(rule)], [*assets, policy(rule)])
    assert (found.code, found.subject, found.what) == ("VAL060", "c", "c and a: 1")


def test_each_item_of_a_list_is_unique_and_null_is_nothing() -> None:
    rule = {"name": "port", "unique": "payload.command", "message": "{{ other }} has {{ value }}"}
    found = check([], [policy(rule), job("a", command=["x", "y"]), job("b", command=["y", "z"])])
    assert [item.what for item in found] == ["a has y"]
    rule = {"name": "region", "unique": "payload.region", "message": "twice"}
    assert check([], [policy(rule), *jobs(2)]) == []


def test_values_are_the_same_whatever_the_order_of_their_keys() -> None:
    rule = {"name": "labels", "unique": "payload.labels", "message": "twice"}
    one, other = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}
    assert codes(check([], [policy(rule), job("a", labels=one), job("b", labels=other)])) == ["VAL060"]


def test_a_policy_that_has_changed_judges_all_that_it_matches() -> None:
    old = [*jobs(3, replicas=2), policy(TWO)]
    three = {**TWO, "require": "payload.replicas >= 3"}
    assert len(check(old, [*jobs(3, replicas=2), policy(three)])) == 3
    assert check(old, [*jobs(3, replicas=2), policy(TWO, description="better words")]) == []


class Frugal(MappingPredecessor):
    """Gives policies alone."""

    def of_types(self, types: Collection[str]) -> Iterable[Asset]:
        assert set(types) == {POLICY}
        return super().of_types(types)


def test_a_change_of_an_asset_judges_that_one_alone() -> None:
    old = [*jobs(3, replicas=1), policy(TWO)]
    new = [*jobs(2, replicas=1), job("j0002", replicas=0), policy(TWO)]
    assert [item.subject for item in judge(proposal(old, new, predecessor=Frugal)).diagnostics] == ["j0002"]


def test_a_set_is_left_alone_when_nothing_that_matches_changes() -> None:
    rule = {"name": "most", "require_of_all": "size(assets) <= 1", "message": "too many"}
    narrow = policy(rule, match={**JOBS, "where": "payload.region == 'eu'"})
    old = [narrow, *jobs(3, region="eu"), job("x")]
    new = [narrow, *jobs(3, region="eu"), job("x", port=81)]
    assert judge(proposal(old, new, predecessor=Frugal)).diagnostics == []


def test_what_leaves_a_set_has_it_judged_again() -> None:
    rule = {"name": "least", "require_of_all": "size(assets) >= 2", "message": "too few"}
    narrow = policy(rule, match={**JOBS, "where": "payload.region == 'eu'"})
    two, one = [job("a", region="eu"), job("b", region="eu")], [job("a", region="eu"), job("b", region="us")]
    assert codes(check([narrow, *two], [narrow, *one])) == ["VAL060"]


def test_an_exception_for_one_change_is_acknowledged() -> None:
    held = Acknowledgement("VAL060", "a", "shop@1", "until Monday")
    limits = Limits(acknowledge=(held,))
    old = [policy(TWO), job("a", replicas=2)]
    judged = judge(proposal(old, [policy(TWO), job("a", replicas=1)], limits))
    assert [item.severity for item in judged.diagnostics] == [Severity.WARNING]
    assert judged.acknowledged == (held,)


@pytest.mark.parametrize(
    ("rule", "pointer"),
    [
        ({**TWO, "require": "payload.replicas >="}, "/rules/1/require"),
        ({**TWO, "require": "assets == []"}, "/rules/1/require"),
        ({**TWO, "message": "{{ value }}"}, "/rules/1/message"),
        ({"name": "x", "require_of_all": "payload", "message": "m"}, "/rules/1/require_of_all"),
        ({"name": "x", "unique": "(", "message": "m"}, "/rules/1/unique"),
        ({**TWO, "name": "first"}, "/rules/1/name"),
        (
            {
                "name": "pairs",
                "require_of_all": "assets.all(a, assets.exists_one(b, b.payload.port == a.payload.port))",
                "message": "m",
            },
            "/rules/1/require_of_all",
        ),
    ],
)
def test_what_cannot_be_understood_is_refused_where_it_stands(rule: dict[str, Any], pointer: str) -> None:
    (found,) = check([], [policy({**TWO, "name": "first"}, rule)])
    assert (found.code, found.subject) == ("VAL062", "policies/p")
    assert not missing(found, f"`{pointer}`")


def test_a_type_that_there_is_not_is_told_where_it_is_selected() -> None:
    match = {"select": {"types": [JOB, f"{JOB[:-1]}", "other.*", "*"]}}
    exclude = [{"select": {"types": ["other.Job"]}, "reason": "r"}]
    found = check([], [policy({**TWO, "require": "true"}, match=match, exclude=exclude)])
    assert [(item.code, item.severity) for item in found] == [("VAL063", Severity.WARNING)] * 3
    told = " ".join(item.what for item in found)
    assert [f"`{name}`" in told for name in (JOB, JOB[:-1], "other.*", "*", "other.Job")] == [
        False, True, True, False, True
    ]  # fmt: skip
    assert JOB in found[0].fix


def test_a_rule_on_a_set_may_look_into_lists_of_each_asset() -> None:
    all_named = "assets.filter(a, a.id != '').all(a, a.payload.command.all(word, word != ''))"
    rule = {"name": "words", "require_of_all": all_named, "message": "m"}
    assert check([], [policy(rule), job("a", command=["x", "y"])]) == []
    assert codes(check([], [policy(rule), job("a", command=["x", ""])])) == ["VAL060"]


def test_all_that_cannot_be_understood_is_told_at_once() -> None:
    tests = [{"name": "x", "assets": [{}], "breaks": ["tow"]}]
    exclude = [{"where": "]", "reason": "r"}]
    found = check([], [policy({**TWO, "require": "("}, match={"where": "["}, exclude=exclude, tests=tests)])
    assert codes(found) == ["VAL062"] * 4


@pytest.mark.parametrize(
    "fields",
    [
        {"match": {}},
        {"match": {"select": {}}},
        {"rules": []},
        {"rules": [{"name": "x", "message": "m"}]},
        {"rules": [{**TWO, "unique": "id"}]},
        {"exclude": [{"where": "true"}]},
        {"tests": [{"name": "x", "assets": []}]},
    ],
)
def test_a_policy_that_could_be_taken_for_another_is_none(fields: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        policy(TWO, **fields)


def test_a_message_whose_insertion_has_no_answer_is_told_as_it_stands() -> None:
    (found,) = check([], [policy({**TWO, "message": "of {{ payload.colour }}"}), job("a")])
    assert found.what == "of {{ payload.colour }}"


def test_a_long_value_is_cut_in_a_message() -> None:
    (found,) = check([], [policy({**TWO, "message": "{{ payload.region }}"}), job("a", region="x" * 1000)])
    assert found.what == "x" * 199 + "…"


def test_a_policy_may_go_and_judges_no_more() -> None:
    assert REGISTRY.inert(POLICY)
    assert check([policy(TWO), job("a", replicas=2)], [job("a", replicas=1)]) == []
