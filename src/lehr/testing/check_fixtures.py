"""Holds checks of plugins in other processes to the rules of checks, with cases in a file.

In: how to start the plugin, and its author's cases. Out: the result of each rule for each check.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated

import msgspec

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.model.addons import ADDONS
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import NO_DIFF
from lehr.model.types import Registry
from lehr.plugins.remote.check import RemoteCheck
from lehr.plugins.remote.connection import Connection
from lehr.testing.checks import SOME_DIFF, FixedCheckReader, check_request
from lehr.testing.conformance.check_plugin import RULES, Rule, Subject
from lehr.testing.plugin_fixtures import FixtureAsset, Result, connection_to, description_of

_Name = Annotated[str, msgspec.Meta(min_length=1)]


class CheckCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A push that a check judges, and everything that it can look at.

    Attributes:
        name: of the case, in results.
        asset: that of the push.
        allows: True if the push may start, False if it waits, None if the check does not apply to it.
        governing: assets that configure the check.
        others: further assets.
        differing: ids of those of `others` that differ from intent.
        governed: False for a check that governing assets do not configure.
    """

    name: _Name
    check: _Name
    asset: FixtureAsset
    allows: bool | None
    governing: tuple[FixtureAsset, ...] = ()
    others: tuple[FixtureAsset, ...] = ()
    differing: tuple[str, ...] = ()
    governed: bool = True


class CheckFixtures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cases for the checks of a plugin.

    Attributes:
        environment: variables for the plugin.
    """

    cases: Annotated[tuple[CheckCase, ...], msgspec.Meta(min_length=1)]
    environment: dict[str, str] = {}


class ChecksUnderTest:
    """A plugin's program, and cases for its checks.

    Args:
        arguments: program and arguments.
    """

    def __init__(self, arguments: Sequence[str], fixtures: CheckFixtures) -> None:
        self._arguments = tuple(arguments)
        self._fixtures = fixtures

    async def results(self, rules: Sequence[Rule]) -> AsyncIterator[Result]:
        """The result of each rule, for each check: in all its cases, or in the first that breaks the rule.

        Raises:
            LehrError: the plugin cannot be described, or does not answer a check of the cases.
        """
        description = await description_of(self._arguments, self._fixtures.environment)
        checks = dict.fromkeys(case.check for case in self._fixtures.cases)
        if missing := sorted(checks.keys() - set(description.checks)):
            raise LehrError(
                f"the plugin does not answer the check {', '.join(missing)}",
                code="TST123",
                why=f"it answers {', '.join(description.checks) or 'none'}",
                fix="correct `check` in checks.yaml, or Describe in the plugin",
            )
        for check in checks:
            cases = [case for case in self._fixtures.cases if case.check == check]
            for rule in rules:
                yield await self._result(rule, check, cases)

    async def _result(self, rule: Rule, check: str, cases: Sequence[CheckCase]) -> Result:
        clock, log, broken = SystemClock(), list[str](), ""
        started = clock.monotonic()
        connection = connection_to(self._arguments, self._fixtures.environment, log.append)
        try:
            for case in cases:
                broken = await _broken(rule, case, connection)
                if broken:
                    break
        finally:
            await connection.close()
        about = (rule.__doc__ or "").partition("\n")[0]
        kept = tuple(log[-20:]) if broken else ()
        return Result(f"{check}/{rule.__name__}", about, clock.monotonic() - started, broken, kept)


async def _broken(rule: Rule, case: CheckCase, connection: Connection) -> str:
    """How a case breaks a rule; empty if it does not."""
    try:
        await rule(_subject(case, connection))
    except AssertionError as error:
        return f"{case.name}: {str(error).removeprefix(f'{rule.__name__}: ')}"
    return ""


def _subject(case: CheckCase, connection: Connection) -> Subject:
    others = [_asset(other) for other in case.others]
    reader = FixedCheckReader(
        Registry((), ADDONS),
        governing=map(_asset, case.governing),
        assets=others,
        diffs={other.id: SOME_DIFF if other.id in case.differing else NO_DIFF for other in others},
    )
    clock = SystemClock()
    return Subject(
        lambda: RemoteCheck(case.check, connection, clock),
        check_request(_asset(case.asset)),
        reader,
        case.allows,
        case.governed,
    )


def _asset(fixture: FixtureAsset) -> Asset:
    return make_asset(AssetId(fixture.id), fixture.type, fixture.payload, fixture.addons)


def check_rules(names: Sequence[str]) -> list[Rule]:
    """The rules of these names; all for none."""
    known: Mapping[str, Rule] = {rule.__name__: rule for rule in RULES}
    return [known[name] for name in names if name in known] if names else list(RULES)
