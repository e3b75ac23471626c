"""Values that a database has to know."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Severity
from lehr.base.errors import LehrError, TransientError
from lehr.model.asset import Asset, Partition
from lehr.model.incarnation import AssetChange
from lehr.sdk.validator import DatabaseRule, Limits, WhenDown
from lehr.validate import DeltaProposal, MappingPredecessor, validate
from tests.unit.validate.proposing import JOB, REGISTRY, job, missing, note

RULE = DatabaseRule("regions", "sqlite:x.sqlite", "SELECT name FROM region", JOB, "/region")
DOWN = TransientError("the server does not answer", why="connection refused")


def check(
    assets: Iterable[Asset], answer: frozenset[str] | LehrError, rule: DatabaseRule = RULE
) -> list[Diagnostic]:
    changes = [AssetChange(asset.id, None, asset) for asset in assets]
    predecessor = MappingPredecessor({}, REGISTRY)
    limits = Limits(databases=(rule,))
    return validate(
        DeltaProposal(Partition("shop"), REGISTRY, limits, changes, predecessor, answers={rule: answer})
    )


def test_a_value_that_the_database_does_not_know_is_refused() -> None:
    known = frozenset({"eu-west", "us-east"})
    assert check([job("a", region="eu-west"), job("b"), note("n", region="mars")], known) == []
    (found,) = check([job("a", region="eu-wst")], known)
    assert (found.code, found.subject, found.severity) == ("VAL050", "a", Severity.ERROR)
    assert not missing(found, "`/payload/region`", "`eu-wst`", "regions", "`eu-west`")


def test_every_element_is_judged_and_numbers_as_text() -> None:
    rule = replace(RULE, field="/backends/*/port")
    backends = [{"port": 80}, {"port": 81}, {"host": "x"}]
    (found,) = check([job("a", backends=backends)], frozenset({"80"}), rule)
    assert (found.code, found.subject) == ("VAL050", "a")
    assert not missing(found, "`/payload/backends/1/port`", "`81`")


def test_what_happens_when_the_database_is_down_is_declared() -> None:
    (found,) = check([job("a", region="mars")], DOWN)
    assert (found.code, found.subject, found.severity) == ("VAL051", "regions", Severity.ERROR)
    assert not missing(found, "the server does not answer")
    (found,) = check([job("a", region="mars")], DOWN, replace(RULE, when_down=WhenDown.WARN))
    assert (found.code, found.severity) == ("VAL051", Severity.WARNING)
