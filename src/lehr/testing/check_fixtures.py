"""Cases for checks of plugins in other processes, as their authors write them in a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from lehr.base.clock import SystemClock
from lehr.model.addons import ADDONS
from lehr.model.diff import NO_DIFF
from lehr.model.types import Registry
from lehr.plugins.remote.check import RemoteCheck
from lehr.plugins.remote.connection import Connection
from lehr.testing.checks import SOME_DIFF, FixedCheckReader, check_request
from lehr.testing.conformance.check_plugin import RULES, Subject
from lehr.testing.plugin_cases import CasesUnderTest, fixture_asset, grouped
from lehr.testing.plugin_fixtures import FixtureAsset, SubjectRule, rules_of

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


def checks_under_test(
    arguments: Sequence[str], fixtures: CheckFixtures
) -> CasesUnderTest[CheckCase, Subject]:
    """A plugin's program, and cases for its checks.

    Args:
        arguments: program and arguments.
    """
    cases = grouped(fixtures.cases, lambda case: case.check)
    return CasesUnderTest(arguments, fixtures.environment, "check", cases, _subject)


def _subject(case: CheckCase, connection: Connection) -> Subject:
    others = [fixture_asset(other) for other in case.others]
    reader = FixedCheckReader(
        Registry((), ADDONS),
        governing=map(fixture_asset, case.governing),
        assets=others,
        diffs={other.id: SOME_DIFF if other.id in case.differing else NO_DIFF for other in others},
    )
    clock = SystemClock()
    return Subject(
        lambda: RemoteCheck(case.check, connection, clock),
        check_request(fixture_asset(case.asset)),
        reader,
        case.allows,
        case.governed,
    )


def check_rules(names: Sequence[str]) -> list[SubjectRule[Subject]]:
    """The rules of these names; all for none."""
    return rules_of(RULES, names)
