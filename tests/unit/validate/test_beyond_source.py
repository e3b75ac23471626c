"""Errors that depend on more than the source are known as such."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import errors
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.model.asset import AssetId, Partition
from lehr.model.incarnation import AssetChange
from lehr.sdk.claims import Conflict, Holder
from lehr.sdk.validator import BEYOND_SOURCE, DatabaseRule, Limits
from lehr.validate import DeltaProposal, MappingPredecessor, validate
from tests.unit.validate.proposing import JOB, REGISTRY, job

RULE = DatabaseRule("regions", "sqlite:x.sqlite", "SELECT name FROM region", JOB, "/region")


def conflict(protected: str = "") -> Conflict:
    holder = Holder(Partition("blog"), "/s", AssetId("b"))
    return Conflict(AssetId("a"), "file:/x", "path:/x", holder, protected)


@pytest.mark.parametrize(
    ("answer", "conflicts"),
    [
        (frozenset({"eu"}), ()),
        (TransientError("the server does not answer"), ()),
        (StalledError("no such table"), ()),
        (frozenset({"mars"}), (conflict(),)),
        (frozenset({"mars"}), (conflict("the state folder /s"),)),
    ],
)
def test_errors_that_answers_or_conflicts_alone_make_are_beyond_the_source(
    answer: frozenset[str] | LehrError, conflicts: tuple[Conflict, ...]
) -> None:
    found = errors(
        validate(
            DeltaProposal(
                Partition("shop"),
                REGISTRY,
                Limits(databases=(RULE,)),
                [AssetChange(AssetId("a"), None, job("a", region="mars"))],
                MappingPredecessor({}, REGISTRY),
                answers={RULE: answer},
                conflicts=conflicts,
            )
        )
    )
    assert found
    assert {item.code for item in found} <= BEYOND_SOURCE
