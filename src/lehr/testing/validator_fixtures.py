"""Holds validators of plugins in other processes to the rules of validators, with cases in a file.

In: how to start the plugin, and its author's cases. Out: the result of each rule for each validator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated

import msgspec

from lehr.base.clock import SystemClock
from lehr.base.diagnostics import Severity
from lehr.base.errors import LehrError
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.declared import ReferenceField, TypeDeclaration, schema_of
from lehr.model.incarnation import AssetChange
from lehr.model.types import AssetType, Registry
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.validator import RemoteValidator
from lehr.sdk.validator import Limits
from lehr.testing.conformance.validator import RULES, Expected, Rule, Subject
from lehr.testing.plugin_fixtures import FixtureAsset, Result, connection_to, description_of
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


class ValidatorsUnderTest:
    """A plugin's program, and cases for its validators.

    Args:
        arguments: program and arguments.
    """

    def __init__(self, arguments: Sequence[str], fixtures: ValidatorFixtures) -> None:
        self._arguments = tuple(arguments)
        self._fixtures = fixtures

    async def results(self, rules: Sequence[Rule]) -> AsyncIterator[Result]:
        """The result of each rule, for each validator: in all its cases, or the first that breaks it.

        Raises:
            LehrError: the plugin cannot be described, or does not answer a validator of the cases.
        """
        description = await description_of(self._arguments, self._fixtures.environment)
        validators = dict.fromkeys(case.validator for case in self._fixtures.cases)
        if missing := sorted(validators.keys() - set(description.validators)):
            raise LehrError(
                f"the plugin does not answer the validator {', '.join(missing)}",
                code="TST124",
                why=f"it answers {', '.join(description.validators) or 'none'}",
                fix="correct `validator` in validators.yaml, or Describe in the plugin",
            )
        for validator in validators:
            cases = [case for case in self._fixtures.cases if case.validator == validator]
            for rule in rules:
                yield await self._result(rule, validator, cases)

    async def _result(self, rule: Rule, validator: str, cases: Sequence[ValidatorCase]) -> Result:
        clock, log, broken = SystemClock(), list[str](), ""
        started = clock.monotonic()
        connection = connection_to(self._arguments, self._fixtures.environment, log.append)
        try:
            for case in cases:
                broken = await self._broken(rule, case, connection)
                if broken:
                    break
        finally:
            await connection.close()
        about = (rule.__doc__ or "").partition("\n")[0]
        kept = tuple(log[-20:]) if broken else ()
        return Result(f"{validator}/{rule.__name__}", about, clock.monotonic() - started, broken, kept)

    async def _broken(self, rule: Rule, case: ValidatorCase, connection: Connection) -> str:
        """How a case breaks a rule; empty if it does not."""
        try:
            await rule(self._subject(case, connection))
        except AssertionError as error:
            return f"{case.name}: {str(error).removeprefix(f'{rule.__name__}: ')}"
        return ""

    def _subject(self, case: ValidatorCase, connection: Connection) -> Subject:
        changes = list(map(_change, case.changes))
        before = [change.before for change in changes if change.before is not None]
        registry = self._registry()
        known = {asset.id: asset for asset in [*map(_asset, case.others), *before]}
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

    def _registry(self) -> Registry:
        types = [
            AssetType(name, schema_of(TypeDeclaration({}, dict.fromkeys(pointers, ReferenceField()))))
            for name, pointers in self._fixtures.references.items()
        ]
        return Registry(types, ADDONS)


def _change(fixture: FixtureChange) -> AssetChange:
    before, after = (None if asset is None else _asset(asset) for asset in (fixture.before, fixture.after))
    known = after or before
    assert known is not None
    return AssetChange(known.id, before, after)


def _asset(fixture: FixtureAsset) -> Asset:
    return make_asset(AssetId(fixture.id), fixture.type, fixture.payload, fixture.addons)


def validator_rules(names: Sequence[str]) -> list[Rule]:
    """The rules of these names; all for none."""
    known: Mapping[str, Rule] = {rule.__name__: rule for rule in RULES}
    return [known[name] for name in names if name in known] if names else list(RULES)
