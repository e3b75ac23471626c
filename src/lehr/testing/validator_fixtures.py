"""Cases for validators of plugins in other processes, as their authors write them in a file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import msgspec

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Severity
from lehr.model.addons import ADDONS
from lehr.model.asset import AssetId, Partition
from lehr.model.declared import ReferenceField, TypeDeclaration, schema_of
from lehr.model.incarnation import AssetChange
from lehr.model.types import AssetType, Registry
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.validator import RemoteValidator
from lehr.sdk.validator import Limits
from lehr.testing.conformance.validator import RULES, Expected, Subject
from lehr.testing.plugin_cases import CasesUnderTest, fixture_asset, grouped
from lehr.testing.plugin_fixtures import FixtureAsset, SubjectRule, rules_of
from lehr.validate import DeltaProposal, MappingPredecessor

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Pointer = Annotated[str, msgspec.Meta(pattern="^(/.*)?$")]


class FixtureChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A changed asset: without `before` it is new, without `after` it is removed."""

    before: FixtureAsset | None = None
    after: FixtureAsset | None = None

    def __post_init__(self) -> None:
        ids = {asset.id for asset in (self.before, self.after) if asset is not None}
        if len(ids) != 1:
            raise ValueError("`before` and `after` are one asset, and at least one of them is given")


class FixtureProblem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem that a validator should find."""

    code: _Name
    asset: str = ""
    pointer: _Pointer = ""
    severity: Severity = Severity.ERROR


class ValidatorCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A change that a validator judges, and everything that it can look up.

    Attributes:
        name: of the case, in results.
        others: assets that have not changed.
        problems: everything that it should find.
    """

    name: _Name
    validator: _Name
    changes: Annotated[tuple[FixtureChange, ...], msgspec.Meta(min_length=1)]
    others: tuple[FixtureAsset, ...] = ()
    problems: tuple[FixtureProblem, ...] = ()


class ValidatorFixtures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cases for the validators of a plugin.

    Attributes:
        references: fields that name other assets, by type, as JSON pointers into payloads.
        environment: variables for the plugin.
    """

    cases: Annotated[tuple[ValidatorCase, ...], msgspec.Meta(min_length=1)]
    references: dict[str, tuple[Annotated[str, msgspec.Meta(pattern="^/")], ...]] = {}
    environment: dict[str, str] = {}


def validators_under_test(
    arguments: Sequence[str], fixtures: ValidatorFixtures
) -> CasesUnderTest[ValidatorCase, Subject]:
    """A plugin's program, and cases for its validators.

    Args:
        arguments: program and arguments.
    """
    registry = _registry(fixtures)
    cases = grouped(fixtures.cases, lambda case: case.validator)
    subject = partial(_subject, registry)
    return CasesUnderTest(arguments, fixtures.environment, "validator", cases, subject)


def _subject(registry: Registry, case: ValidatorCase, connection: Connection) -> Subject:
    changes = list(map(_change, case.changes))
    before = [change.before for change in changes if change.before is not None]
    known = {asset.id: asset for asset in [*map(fixture_asset, case.others), *before]}
    predecessor = MappingPredecessor(known, registry)
    problems = [
        Expected(item.code, item.severity, AssetId(item.asset) if item.asset else None, item.pointer)
        for item in case.problems
    ]
    clock = SystemClock()
    return Subject(
        lambda: RemoteValidator(case.validator, connection, clock),
        DeltaProposal(Partition("test"), registry, Limits(), changes, predecessor),
        problems,
    )


def _registry(fixtures: ValidatorFixtures) -> Registry:
    types = [
        AssetType(name, schema_of(TypeDeclaration({}, dict.fromkeys(pointers, ReferenceField()))))
        for name, pointers in fixtures.references.items()
    ]
    return Registry(types, ADDONS)


def _change(fixture: FixtureChange) -> AssetChange:
    before, after = (
        None if asset is None else fixture_asset(asset) for asset in (fixture.before, fixture.after)
    )
    known = after or before
    assert known is not None
    return AssetChange(known.id, before, after)


def validator_rules(names: Sequence[str]) -> list[SubjectRule[Subject]]:
    """The rules of these names; all for none."""
    return rules_of(RULES, names)
