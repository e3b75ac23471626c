"""Plans become diffs: every change, no secret, little text."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from lehr.base.digest import canonical
from lehr.model.diff import Diff, Effects
from lehr.plugins.terraform_workspace.plan_changes import Plan, differences, read_plan
from lehr.sdk.secrets import Hidden, SecretValue


def resource(
    actions: list[str], before: Any = None, after: Any = None, *, address: str = "lamp.a", **more: Any
) -> dict[str, Any]:
    of_resource: dict[str, Any] = {
        name: more.pop(name) for name in ("action_reason", "previous_address", "deposed") if name in more
    }
    change = {"actions": actions, "before": before, "after": after, "after_unknown": {}, **more}
    return {"address": address, **of_resource, "change": change}


def plan(*resources: Any, hidden: Hidden | None = None, differs: bool = True, **more: Any) -> Plan:
    document = {"resource_changes": list(resources), "configuration": {"root_module": {}}, **more}
    return read_plan(document, hidden or Hidden(), differs=differs)


def changes(diff: Diff) -> list[tuple[str, Any, Any]]:
    return [(change.path, change.intended, change.observed) for change in diff.changes]


def test_nothing_differs() -> None:
    found = plan(resource(["no-op"], {"a": 1}, {"a": 1}), differs=False)
    assert found.diff == Diff()


def test_a_kind_of_change_that_is_not_known_still_differs() -> None:
    found = plan(differs=True)
    assert changes(found.diff) == [("plan", "applied", "not applied")]
    assert found.diff.effects == Effects()


def test_an_update_shows_the_attributes_that_differ() -> None:
    before = {"id": 1, "tags": {"a": "b", "c/d": "e"}, "list": [1, 2], "gone": {"x": 1}, "null": None}
    after = {"id": 1, "tags": {"a": "c"}, "list": [1, 3], "gone": None, "null": False}
    assert changes(plan(resource(["update"], before, after)).diff) == [
        ("lamp.a/gone", None, {"x": 1}),
        ("lamp.a/list/1", 3, 2),
        ("lamp.a/null", False, None),
        ("lamp.a/tags/a", "c", "b"),
        ("lamp.a/tags/c~1d", None, "e"),
    ]


def test_a_number_is_not_a_truth_value_nor_a_text() -> None:
    found = plan(resource(["update"], {"a": 1, "b": 0, "c": 1}, {"a": True, "b": False, "c": "1"}))
    assert len(found.diff.changes) == 3


@pytest.mark.parametrize(
    ("actions", "effects"),
    [
        (["create"], Effects(capacity=None)),
        (["update"], Effects(capacity=None)),
        (["delete"], Effects(capacity=None, destructive=True)),
        (["delete", "create"], Effects(capacity=None, destructive=True, disruptive=True)),
        (["create", "delete"], Effects(capacity=None, destructive=True, disruptive=True)),
        (["forget"], Effects(capacity=None)),
    ],
    ids=str,
)
def test_deletions_are_destructive(actions: list[str], effects: Effects) -> None:
    before = None if actions == ["create"] else {"a": 1}
    after = None if actions in (["delete"], ["forget"]) else {"a": 2}
    found = plan(resource(actions, before, after))
    assert found.diff.effects == effects
    assert found.diff.changes


def test_deletions_come_first_with_their_reason() -> None:
    found = plan(
        resource(["update"], {"a": 1}, {"a": 2}, address="a.a"),
        resource(["delete"], {"a": 1}, address="z.z", action_reason="delete_because_no_resource_config"),
        resource(["delete"], {"a": 1}, address="z.z", deposed="4711"),
        resource(["delete", "create"], {}, {}, address="y.y", action_reason="replace_because_tainted"),
    )
    assert changes(found.diff) == [
        ("y.y", "deleted and created again, because it is tainted: creating it has failed", "present"),
        ("z.z", None, "present (it is no longer in the module)"),
        ("z.z (deposed 4711)", None, "present"),
        ("a.a/a", 2, 1),
    ]


def test_moves_and_imports_differ() -> None:
    found = plan(
        resource(["no-op"], {}, {}, address="a.new", previous_address="a.old"),
        resource(["no-op"], {}, {}, address="b.b", importing={"id": "i-4711"}),
    )
    assert changes(found.diff) == [("a.new/address", "a.new", "a.old"), ("b.b/import", "i-4711", None)]


@pytest.mark.parametrize(
    ("sensitive", "unknown"),
    [
        ({"after_sensitive": True}, {}),
        ({"before_sensitive": {"p": True}}, {}),
        ({"after_sensitive": {"p": [True]}}, {}),
    ],
    ids=str,
)
def test_sensitive_values_are_not_shown(sensitive: dict[str, Any], unknown: Any) -> None:
    for before, after in (
        ({"p": ["hunter2"]}, {"p": ["hunter3"]}),
        ({"p": ["hunter2"]}, {"p": ["a", "hunter2"]}),
    ):
        found = plan(resource(["update"], before, after, **sensitive))
        assert found.diff.changes
        assert "hunter" not in msgspec.json.encode(found.diff).decode()


def test_a_secret_that_the_module_shows_is_hidden() -> None:
    hidden = Hidden([SecretValue(b"hunter2-hunter2")])
    url = {
        "keys": {"hunter2-hunter2": 1},
        "url": "postgres://a:hunter2-hunter2@b",
        "list": ["hunter2-hunter2", 1],
    }
    found = plan(
        resource(["update"], {"url": "hunter2-hunter2"}, url), resource(["create"], None, url), hidden=hidden
    )
    assert "hunter" not in msgspec.json.encode(found.diff).decode()


def test_unknown_values_are_named() -> None:
    found = plan(
        resource(
            ["update"], {"a": 1, "b": [1, 2]}, {"b": [1, None]}, after_unknown={"a": True, "b": [False, True]}
        )
    )
    assert changes(found.diff) == [
        ("lamp.a/a", "(known after apply)", 1),
        ("lamp.a/b/1", "(known after apply)", 2),
    ]


def test_a_created_resource_shows_what_is_known() -> None:
    created = resource(["create"], None, {"size": 2, "none": None}, after_unknown={"id": True})
    assert changes(plan(created).diff) == [("lamp.a", "present", None), ("lamp.a/size", 2, None)]


def test_outputs_are_those_of_the_state() -> None:
    outputs = {
        "new": {"actions": ["create"], "before": None, "after": 1},
        "old": {"actions": ["update"], "before": 1, "after": 2},
        "same": {"actions": ["no-op"], "before": {"a": 1}, "after": {"a": 1}},
        "secret": {"actions": ["update"], "before": "hunter2", "after": "hunter3", "after_sensitive": True},
        "born": {"actions": ["create"], "before": None, "after": "hunter3", "after_sensitive": True},
        "gone": {"actions": ["delete"], "before": "hunter3", "after": None, "before_sensitive": True},
    }
    found = plan(output_changes=outputs)
    assert found.outputs == {"old": 1, "same": {"a": 1}}
    assert found.sensitive_outputs == {"secret", "born", "gone"}
    assert changes(found.diff) == [
        ("outputs/born", "[secret]", None),
        ("outputs/gone", None, "something else (secret)"),
        ("outputs/new", 1, None),
        ("outputs/old", 2, 1),
        ("outputs/secret", "[secret]", "something else (secret)"),
    ]
    assert found.diff.effects == Effects()


def test_drift_and_checks_are_noted() -> None:
    drift = [
        resource(["update"], {"a": 1, "p": "hunter2"}, {"a": 2, "p": "hunter3"}, after_sensitive={"p": True}),
        resource(["delete"], {"a": 1}, address="lamp.b"),
    ]
    checks = [{"address": {"to_display": "check.health"}, "status": "fail"}]
    found = plan(resource_drift=drift, checks=checks, deferred_changes=[{}])
    assert found.diff.notes == (
        "drift: a, p of lamp.a was changed outside of Terraform",
        "drift: lamp.b was deleted outside of Terraform",
        "the check check.health does not hold",
        "the plan leaves some changes to a later plan",
    )


def test_a_diff_is_short_and_still_identifies_everything() -> None:
    def many(last: str) -> Plan:
        resources = [
            resource(["update"], {"a": "x" * 5000}, {"a": "y" * 5000}, address=f"lamp.a[{n}]")
            for n in range(999)
        ]
        return plan(*resources, resource(["update"], {"a": "x"}, {"a": last}, address="lamp.z"))

    one, other = many("y").diff, many("z").diff
    assert len(msgspec.json.encode(one)) < 16_384
    assert one.changes[-1].path == "more"
    assert one.digest() == many("y").diff.digest() != other.digest()


def test_paths_can_be_read() -> None:
    address = 'module.a["x\ny/' + "z" * 500 + '"].lamp.a'
    for change in plan(resource(["update"], {"a": 1}, {"a": 2}, address=address)).diff.changes:
        assert change.path.isprintable()
        assert len(change.path) < 300
        assert change.path == change.path.strip("/")


@pytest.mark.parametrize(
    "document", [{}, {"configuration": 1}, {"configuration": {}, "resource_changes": 1}], ids=str
)
def test_what_is_not_a_plan_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match="Error"):
        read_plan(document, differs=True)


leaves = (
    some.none() | some.booleans() | some.integers(-2, 2) | some.sampled_from(["", "a", "hunter2-hunter2"])
)


def within(inner: some.SearchStrategy[Any]) -> some.SearchStrategy[Any]:
    return (
        inner | some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from("abc"), inner, max_size=3)
    )


values = within(within(within(leaves)))


@given(values, values)
def test_values_differ_if_there_is_a_difference(after: Any, before: Any) -> None:
    found = list(differences(after, before, False, (False, False), "a"))
    if canonical(after) == canonical(before):
        assert not found
    # Absent and null are the same to Terraform.
    if canonical(without_nulls(after)) != canonical(without_nulls(before)):
        assert found
    assert len({leaf.path for leaf in found}) == len(found)


def without_nulls(value: Any) -> Any:
    """The value without null attributes; an object without attributes is absent."""
    if isinstance(value, dict):
        found = {
            key: inner for key, item in sorted(value.items()) if (inner := without_nulls(item)) is not None
        }
        return found or None
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(values, values)
def test_whatever_is_sensitive_is_hidden(after: Any, before: Any) -> None:
    found = plan(resource(["update"], {"x": before}, {"x": after}, after_sensitive={"x": True}))
    assert "hunter2" not in msgspec.json.encode(found.diff).decode()
