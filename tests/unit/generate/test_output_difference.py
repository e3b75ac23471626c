"""What differs first between two outputs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Severity
from lehr.generate.engine.verification import difference
from lehr.generate.outcome.output import Addition, Output
from lehr.model.addons import Owner
from lehr.model.asset import AssetId, make_asset
from lehr.model.provenance import Derivation

BY = Derivation("g.py:f", 3, "file", "*", "a")


def output(payload: Any, *others: str, team: str | None = None) -> Output:
    assets = [make_asset(AssetId(id), "t.T", payload, {}, None, BY) for id in ("a", *others)]
    additions = () if team is None else (Addition(AssetId("a"), "lehr.Owner", Owner(team), BY),)
    return Output("inputs", tuple(assets), additions)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"x": 1}, {"x": 2}, ("`a`", "/payload/x", " 1", " 2")),
        ({"x": [1, {"y": 2}]}, {"x": [1, {"y": 3}]}, ("`a`", "/payload/x/1/y", " 2", " 3")),
        ({"x": [1]}, {"x": [1, 2]}, ("`a`", "/payload/x", " [1]", " [1,2]")),
        ({"x": 1}, {}, ("`a`", "/payload/x", " 1", "missing")),
    ],
)
def test_the_first_field_is_named_with_both_values(
    before: Any, after: Any, expected: tuple[str, ...]
) -> None:
    found = difference(output(before), output(after))
    assert found is not None
    assert all(part in found for part in expected)


def test_the_order_of_what_is_yielded_does_not_count() -> None:
    one = output({}, "b", "c")
    assert difference(one, replace(one, assets=one.assets[::-1])) is None


def test_typed_and_plain_values_of_addons_are_equal() -> None:
    typed = output({}, team="x")
    plain = replace(typed, additions=(replace(typed.additions[0], value=msgspec.to_builtins(Owner("x"))),))
    assert difference(typed, plain) is None


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (output({}, "b"), "`b`"),
        (output({}, team="x"), "lehr.Owner"),
        (
            Output("inputs", diagnostics=(Diagnostic(code="GEN022", what="failed", why="KeyError"),)),
            "failed; KeyError",
        ),
        (
            replace(
                output({}), diagnostics=(Diagnostic(code="GEN028", what="p", severity=Severity.WARNING),)
            ),
            "problems",
        ),
        (
            replace(output({}), assets=(replace(output({}).assets[0], made_by=replace(BY, line=4)),)),
            "line",
        ),
    ],
)
def test_whatever_else_differs_is_told(after: Output, expected: str) -> None:
    assert expected in str(difference(output({}), after))


def test_values_of_addons_are_compared_by_field() -> None:
    assert difference(output({}, team="x"), output({}, team="y")) == (
        'of lehr.Owner on `a`, /team is "x" one time, and "y" the other'
    )
