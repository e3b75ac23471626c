"""Values do not go blank, and numbers do not jump, without somebody saying so."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.base.diagnostics import Diagnostic, Severity
from lehr.model.asset import AssetId, make_asset
from lehr.model.declared import TYPE
from lehr.sdk.validator import Blank, Jump, Limits
from tests.unit.validate.proposing import JOB, check, job, jobs, letter, missing, note


def moved(before: dict[str, Any], after: dict[str, Any], limits: Limits | None = None) -> list[Diagnostic]:
    return check([job("a", **before)], [job("a", **after)], limits)


# --- blank ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "filled", "empty"),
    [
        ("region", "eu", ""),
        ("region", "eu", " \n"),
        ("region", "eu", None),
        ("command", ["serve"], []),
        ("labels", {"team": "web"}, {}),
        ("quota", 100, None),
        ("quota", 0.5, None),
    ],
)
def test_one_field_that_goes_blank_in_one_asset_is_a_warning(field: str, filled: Any, empty: Any) -> None:
    (found,) = moved({field: filled}, {field: empty})
    assert (found.code, found.severity, found.subject) == ("VAL024", Severity.WARNING, "a")
    assert not missing(found, f"`/{field}`", "shop@1")


def test_a_field_that_goes_blank_in_many_assets_is_one_error() -> None:
    (found,) = check(jobs(300, region="eu"), jobs(300, region=""))
    assert (found.code, found.severity, found.subject) == ("VAL024", Severity.ERROR, JOB)
    assert not missing(found, "`/region`", "`j0009` and 290 more")
    few = Limits(blank=Blank(percent=10, floor=1))
    after = [*jobs(2, region=""), *jobs(300, region="eu")[2:]]
    assert [item.severity for item in check(jobs(300, region="eu"), after, few)] == [Severity.WARNING]


def test_what_is_deep_inside_is_seen_and_lists_are_compared_by_place() -> None:
    before = {"backends": [{"host": "a"}, {"host": "b"}]}
    (found,) = moved(before, {"backends": [{"host": "a"}, {"host": ""}]})
    assert found.code == "VAL024"
    assert not missing(found, "`/backends/*/host`")
    assert moved(before, {"backends": [{"host": "a"}]}) == []


def test_an_entry_of_a_map_may_go_and_a_field_of_a_declared_type_may_not() -> None:
    assert moved({"labels": {"a": "x", "b": "y"}}, {"labels": {"a": "x"}}) == []
    for mail in ("a@shop.example", 100, True):
        (found,) = check([note("n", mail=mail, text="x")], [note("n", text="x")])
        assert (found.code, found.severity) == ("VAL024", Severity.WARNING)


def test_a_field_that_a_new_version_of_the_type_renames_has_not_gone_blank() -> None:
    before = [letter("a", 1, mail="a@shop.example", text="x")]
    assert check(before, [letter("a", 2, address="a@shop.example", text="x")]) == []
    (found,) = check(before, [letter("a", 2, address="", text="x")])
    assert (found.code, found.subject) == ("VAL024", "a")
    assert not missing(found, "`/address`")


def test_other_fields_and_what_is_turned_down_may_be_as_they_like() -> None:
    assert moved({"region": "eu"}, {"region": "us"}) == []
    assert moved({"region": ""}, {"region": "us"}) == []
    assert check([job("a", region="eu")], [job("a", addons=["Turndown"])]) == []


# --- jumps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [(100, 1), (1, 100), (100, 0), (0, 100), (-1, 50), (0.5, 0.01)])
def test_a_number_that_jumps_is_an_error(old: float, new: float) -> None:
    (found,) = moved({"replicas": old}, {"replicas": new})
    assert (found.code, found.severity, found.subject) == ("VAL025", Severity.ERROR, "a")
    assert not missing(found, "`/replicas`", "factor of 10")


@pytest.mark.parametrize(("old", "new"), [(100, 10), (1, 10), (3, 0), (0, 3), (5, 5), (-1, 5)])
def test_a_number_may_move_within_the_factor(old: float, new: float) -> None:
    assert moved({"replicas": old}, {"replicas": new}) == []


def test_numbers_that_tell_things_apart_do_not_jump() -> None:
    assert moved({"port": 80}, {"port": 8080}) == []


def test_the_workspace_says_how_much_is_a_jump_how_bad_it_is_and_where_it_is_none() -> None:
    before, after = {"replicas": 100}, {"replicas": 1}
    assert moved(before, after, Limits(jump=Jump(factor=100))) == []
    (found,) = moved(before, after, Limits(jump=Jump(severity=Severity.WARNING)))
    assert found.severity is Severity.WARNING
    assert moved(before, after, Limits(jump=Jump(ignore=("/replicas",)))) == []
    light, heavy = ({"backends": [{"weight": weight}]} for weight in (1, 100))
    assert len(moved(light, heavy)) == 1
    assert moved(light, heavy, Limits(jump=Jump(ignore=("/backends/*/weight",)))) == []


def test_a_schema_is_no_value() -> None:
    old, new = (
        make_asset(AssetId("type/a"), TYPE, {"schema": {"maximum": maximum, "title": title}}, {})
        for maximum, title in ((1, "x"), (1000, ""))
    )
    assert check([old], [new]) == []


def test_many_jumps_of_one_field_are_one_problem() -> None:
    (found,) = check(jobs(300, replicas=100), jobs(300, replicas=1))
    assert (found.code, found.subject) == ("VAL025", JOB)
    assert not missing(found, "`/replicas`", "290 more")
