"""What policies put on assets: always the same, at rest, and never at random who wins."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.base.diagnostics import Diagnostic, Position
from lehr.compiled_policies.rules import unclear_in
from lehr.generate.policies.mutation_rules import MutationRule, mutation_rules
from lehr.generate.policies.mutations import Mutated, Mutations
from lehr.generate.typing.conversion import convert
from lehr.generate.typing.unset_fields import unset_fields
from lehr.model.asset import AssetId
from lehr.model.policy import POLICY, POLICY_TYPE, Policy
from lehr.model.provenance import Derivation
from lehr.model.types import Registry
from lehr.testing.samples import SERVICE, registry

REGISTRY = Registry((*registry().types.values(), POLICY_TYPE), registry().addons)
HERE = Position("assets/a.yaml", 1, 1)
SERVICES = {"select": {"types": [SERVICE]}}
LABELS = "lehr.Labels"


def policy(*mutate: dict[str, Any], match: dict[str, Any] | None = None, **fields: Any) -> Policy:
    named = [{"name": f"r{number}", **item} for number, item in enumerate(mutate)]
    return msgspec.convert({"match": match or SERVICES, "mutate": named, **fields}, Policy)


def mutations(**policies: Policy) -> Mutations:
    """Those of policies, each in a file of its own, with the pointer in the place of the column."""
    rules: list[MutationRule] = []
    for id in sorted(policies):

        def place(pointer: str, id: str = id) -> Position:
            return Position(f"{id}{pointer}", 7)

        def by(name: str, line: int, id: str = id) -> Derivation:
            return Derivation(f"{id}.yaml:{id}/{name}", line, "asset", SERVICE)

        rules += mutation_rules(AssetId(id), policies[id], by, place)
    return Mutations(rules, REGISTRY)


def applied(
    known: Mutations, payload: dict[str, Any], addons: dict[str, Any] | None = None, type: str = SERVICE
) -> Mutated:
    value = {"id": "a", "type": type, "payload": payload, "addons": addons or {}}
    asset, found = convert(value, REGISTRY, HERE, lambda pointer: HERE)
    assert asset is not None, found
    return known.applied(asset, lambda: unset_fields(value, asset, REGISTRY))


def payload(known: Mutations, written: dict[str, Any], **addons: Any) -> dict[str, Any]:
    asset, problems = applied(known, written, addons)
    assert problems == ()
    held: dict[str, Any] = asset.document()["payload"]
    return held


def problem(known: Mutations, written: dict[str, Any], addons: dict[str, Any] | None = None) -> Diagnostic:
    _, (found,) = applied(known, written, addons)
    return found


THREE = {"default": {"payload": {"replicas": 3}}}
ENV = {"set": {"addons": {LABELS: {"labels": {"env": "prod"}}}}}


def test_a_default_is_put_where_nobody_has_written_anything() -> None:
    assert payload(mutations(p=policy(THREE)), {})["replicas"] == 3


@pytest.mark.parametrize("written", [1, 2, 0])
def test_a_default_never_replaces_what_a_person_wrote_even_if_it_is_what_the_type_says(written: int) -> None:
    assert payload(mutations(p=policy(THREE)), {"replicas": written})["replicas"] == written


def test_what_is_set_replaces_what_is_written() -> None:
    assert (
        payload(mutations(p=policy({"set": {"payload": {"replicas": 3}}})), {"replicas": 1})["replicas"] == 3
    )


def test_mappings_are_gone_into_and_lists_are_put_whole() -> None:
    known = mutations(p=policy(ENV, {"set": {"payload": {"command": ["b"]}}}))
    asset, _ = applied(known, {"command": ["a", "a"]}, {LABELS: {"labels": {"team": "web"}}})
    document = asset.document()
    assert document["addons"][LABELS] == {"labels": {"env": "prod", "team": "web"}}
    assert document["payload"]["command"] == ["b"]


def test_a_default_of_a_label_leaves_the_others_and_the_one_that_is_there() -> None:
    known = mutations(
        p=policy({"default": {"addons": {LABELS: {"labels": {"env": "x", "tier": "{{ id }}"}}}}})
    )
    asset, _ = applied(known, {}, {LABELS: {"labels": {"env": "mine"}}})
    assert asset.document()["addons"][LABELS]["labels"] == {"env": "mine", "tier": "a"}


def test_expressions_within_a_text_are_texts_and_alone_they_are_what_they_answer() -> None:
    known = mutations(
        p=policy(
            {"set": {"payload": {"replicas": "{{ size(payload.command) }}"}}},
            {"set": {"payload": {"owner": "{{ id }} has {{ payload.command }} of {{type}}"}}},
        )
    )
    held = payload(known, {"command": ["x", "y"]})
    assert (held["replicas"], held["owner"]) == (2, 'a has ["x","y"] of sample.Service')


def test_braces_that_are_no_expression_are_an_answer_too() -> None:
    known = mutations(p=policy({"set": {"payload": {"owner": "{{ '{{' }}x}}"}}}))
    assert payload(known, {})["owner"] == "{{x}}"


def test_policies_go_in_the_order_of_their_ids_and_see_what_those_before_have_done() -> None:
    after = policy(THREE, match={"select": {"types": [SERVICE], "labels": {"env": "prod"}}})
    assert payload(mutations(a=policy(ENV), b=after), {})["replicas"] == 3


def test_one_that_asks_for_what_comes_after_it_is_an_error_and_not_half_done() -> None:
    before = policy(THREE, match={"select": {"types": [SERVICE], "labels": {"env": "prod"}}})
    asset, (found,) = applied(mutations(a=before, b=policy(ENV)), {})
    assert (found.code, found.at) == ("GEN042", Position("a/mutate/0/default/payload/replicas", 7))
    assert "order of ids" in found.why
    assert asset.document()["addons"] == {}


def test_what_would_go_on_for_ever_is_an_error() -> None:
    more = policy({"set": {"payload": {"replicas": "{{ payload.replicas + 1 }}"}}})
    found = problem(mutations(p=more), {})
    assert found.code == "GEN042"
    assert all(name in found.what for name in ("`p`", "`r0`", "`a`"))


def test_what_comes_to_rest_after_one_step_is_sound() -> None:
    few = policy({"set": {"payload": {"replicas": 2}}}, match={**SERVICES, "where": "payload.replicas < 2"})
    assert payload(mutations(p=few), {})["replicas"] == 2


@pytest.mark.parametrize("verb", ["set", "default"])
def test_two_policies_that_put_different_values_are_an_error_that_names_both(verb: str) -> None:
    some, other = (policy({verb: {"payload": {"replicas": count}}}) for count in (2, 3))
    found = problem(mutations(a=some, b=other), {})
    assert found.code == "GEN041"
    assert "`/payload/replicas` of `a`" in found.what
    for id, value in (("a", "2"), ("b", "3")):
        [part] = [part for part in found.why.split("; ") if f"({id}/mutate" in part]
        assert f"`{id}`" in part
        assert "`r0`" in part
        assert f"({id}/mutate/0/{verb}/payload/replicas:7)" in part
        assert part.endswith(value)
    assert found.at == Position(f"b/mutate/0/{verb}/payload/replicas", 7)


def test_two_that_say_the_same_are_no_conflict() -> None:
    assert payload(mutations(a=policy(THREE), b=policy(THREE)), {})["replicas"] == 3


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_what_is_set_goes_before_a_default_whatever_the_order(order: str) -> None:
    some = {order[0]: policy(THREE), order[1]: policy({"set": {"payload": {"replicas": 5}}})}
    assert payload(mutations(**some), {})["replicas"] == 5


def test_a_part_and_the_whole_of_it_are_a_conflict() -> None:
    whole = policy({"set": {"addons": {LABELS: {"labels": 1}}}})
    assert problem(mutations(a=policy(ENV), b=whole), {}).code == "GEN041"


def test_a_conflict_that_concerns_nobody_is_none() -> None:
    some = policy(THREE, match={"select": {"ids": ["a"]}})
    other = policy({"default": {"payload": {"replicas": 4}}}, match={"select": {"ids": ["b"]}})
    assert payload(mutations(a=some, b=other), {})["replicas"] == 3


def test_an_exception_is_left_alone() -> None:
    known = mutations(p=policy(THREE, exclude=[{"select": {"ids": ["a"]}, "reason": "it is small"}]))
    asset, problems = applied(known, {})
    assert asset.document()["payload"]["replicas"] == 1
    assert problems == ()


def test_what_does_not_fit_the_type_is_told_at_the_line_of_the_policy() -> None:
    found = problem(mutations(p=policy({"set": {"payload": {"replicas": "many"}}})), {})
    assert (found.code, found.at) == ("GEN007", Position("p/mutate/0/set/payload/replicas", 7))
    assert found.subject == "p"
    assert all(name in found.why for name in ("`p`", "`r0`"))
    asked = problem(mutations(p=policy({"set": {"payload": {"replicas": "{{ id }}"}}})), {})
    assert (asked.code, asked.subject) == ("GEN007", "a")
    assert all(name in asked.why for name in ("`p`", "`r0`", "`a`"))
    unknown = problem(mutations(p=policy({"set": {"payload": {"replica": 3}}})), {})
    assert (unknown.code, unknown.at) == ("GEN007", Position("p/mutate/0/set/payload/replica", 7))
    assert "did you mean `replicas`" in unknown.fix
    addon = problem(mutations(p=policy({"set": {"addons": {"lehr.Label": {"labels": {}}}}})), {})
    assert (addon.code, addon.at) == ("GEN006", Position("p/mutate/0/set/addons/lehr.Label/labels", 7))


def test_a_rule_sees_what_was_there_before_it_and_not_what_it_puts_itself() -> None:
    swapped = {"payload": {"owner": "{{ payload.command[0] }}", "command": ["{{ payload.owner }}"]}}
    swap = policy({"set": swapped}, match={**SERVICES, "where": "payload.owner == 'x'"})
    held = payload(mutations(p=swap), {"owner": "x", "command": ["y"]})
    assert (held["owner"], held["command"]) == ("y", ["x"])


def test_what_an_expression_takes_from_the_asset_is_a_copy() -> None:
    labels = {
        "addons": {LABELS: {"labels": {"a": "1"}}, "lehr.DependsOn": {"assets": "{{ payload.command }}"}}
    }
    known = mutations(
        a=policy({"set": labels}),
        b=policy(
            {"set": {"payload": {"command": ["other"]}}},
            match={**SERVICES, "where": "payload.command != ['other']"},
        ),
    )
    asset, problems = applied(known, {"command": ["x"]})
    assert [item.code for item in problems] == ["GEN042"]  # what `a` takes, `b` changes
    assert asset.document()["payload"]["command"] == ["x"]


def test_all_that_has_no_answer_is_told_at_once() -> None:
    wrong = {"payload": {"owner": "{{ payload.nobody }}", "command": ["{{ payload.nothing }}"]}}
    _, found = applied(mutations(p=policy({"set": wrong})), {})
    assert [item.code for item in found] == ["GEN040", "GEN040"]


def test_what_has_no_answer_puts_nothing() -> None:
    known = mutations(p=policy({"set": {"payload": {"owner": "{{ addons['lehr.Owner'].team }}"}}}))
    found = problem(known, {})
    assert (found.code, found.at) == ("GEN040", Position("p/mutate/0/set/payload/owner", 7))
    assert "lehr.Owner" in found.what
    strange = policy(THREE, match={**SERVICES, "where": "payload.colour == 'red'"})
    assert problem(mutations(p=strange), {}).at == Position("p/match", 7)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("{1: 2}", "keys"),
        ("[1.0 / 0.0]", "not a finite number"),
        ("timestamp('2026-03-29T01:30:00Z')", "plain data"),
        ("{'a': [b'x']}", "plain data"),
        ("type(1)", "plain data"),
    ],
)
def test_answers_that_no_asset_can_hold_are_refused(expression: str, why: str) -> None:
    found = problem(mutations(p=policy({"set": {"payload": {"owner": "{{ " + expression + " }}"}}})), {})
    assert found.code == "GEN040"
    assert why in found.what


def test_what_is_put_is_marked_with_its_policy_and_what_was_there_is_not() -> None:
    known = mutations(p=policy(THREE, ENV))
    asset, _ = applied(known, {"replicas": 1})
    assert [(item.path, item.by.generator, item.by.line) for item in asset.annotated_by] == [
        (f"/addons/{LABELS}/labels/env", "p.yaml:p/r1", 7)
    ]
    same, _ = applied(known, {"replicas": 3}, {LABELS: {"labels": {"env": "prod"}}})
    assert same.annotated_by == ()
    (one,) = applied(mutations(p=policy({"default": {"payload": {"replicas": 1}}})), {})[0].annotated_by
    assert one.path == "/payload/replicas"  # it would stay so with another default of the type


def test_where_an_asset_comes_from_stays() -> None:
    asset, _ = applied(mutations(p=policy(THREE)), {})
    assert (asset.origin, asset.made_by) == (HERE, None)


def test_policies_change_no_policies() -> None:
    known = mutations(p=policy(ENV, match={"select": {"all": True}}))
    asset, _ = applied(known, {"match": SERVICES, "mutate": [{"name": "x", **ENV}]}, type=POLICY)
    assert asset.document()["addons"] == {}


def test_all_that_is_unclear_is_told_at_once() -> None:
    wrong = policy(
        {"set": {"payload": {"owner": "{{ payload. }}", "command": ["{{ ids }}"]}}},
        {"name": "r0", **ENV},
        match={**SERVICES, "where": "1 +"},
        generate=[
            {
                "name": "g",
                "asset": {"id": "{{ id", "type": SERVICE, "addons": {LABELS: {"labels": {"a": "{{ x }}"}}}},
            }
        ],
        rules=[{"name": "g", "require": "payload.", "message": "m"}],
    )
    assert {item.pointer for item in unclear_in(wrong)} == {
        "/match/where",
        "/rules/0/require",
        "/mutate/0/set/payload/owner",
        "/mutate/0/set/payload/command/0",
        "/mutate/1/name",
        "/generate/0/name",
        "/generate/0/asset/addons/lehr.Labels/labels/a",
    }


def test_a_mutation_says_one_of_two_things_and_something() -> None:
    both: tuple[dict[str, Any], ...] = ({}, {**THREE, **ENV}, {"set": {}})
    for wrong in both:
        with pytest.raises(msgspec.ValidationError):
            policy(wrong)
    with pytest.raises(msgspec.ValidationError, match="does nothing"):
        msgspec.convert({"match": SERVICES}, Policy)


def test_types_that_no_policy_is_about_cost_nothing() -> None:
    known = mutations(p=policy(THREE))
    assert known.of_type("sample.Route") == ()
    assert len(known.of_type(SERVICE)) == 1
