"""Holds checks or validators of plugins in other processes to their rules, case by case.

In: how to start the plugin, and its author's cases. Out: the result of each rule for each check or validator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from lehr.base.clock import SystemClock
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.plugins.remote.connection import Connection
from lehr.testing.plugin_fixtures import FixtureAsset, Result, SubjectRule, connection_to, description_of


class Case(Protocol):
    """An example of what a check or validator judges, with the expected result."""

    @property
    def name(self) -> str: ...


C = TypeVar("C", bound=Case)
S = TypeVar("S")


class CasesUnderTest(Generic[C, S]):
    """A plugin's program, and cases for its checks or validators.

    Args:
        arguments: program and arguments.
        environment: variables for the plugin.
        kind: `check` or `validator`.
        cases: by the check or validator that they are for.
        subject: makes what the rules test, from a case.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        kind: str,
        cases: Mapping[str, Sequence[C]],
        subject: Callable[[C, Connection], S],
    ) -> None:
        self._arguments = tuple(arguments)
        self._environment = environment
        self._kind = kind
        self._cases = cases
        self._subject = subject

    async def results(self, rules: Sequence[SubjectRule[S]]) -> AsyncIterator[Result]:
        """The result of each rule, for each name: in all its cases, or in the first that breaks the rule.

        Raises:
            LehrError: the plugin cannot be described, or does not answer what a case is for.
        """
        description = await description_of(self._arguments, self._environment)
        answered = description.checks if self._kind == "check" else description.validators
        if missing := sorted(self._cases.keys() - set(answered)):
            raise LehrError(
                f"the plugin does not answer the {self._kind} {', '.join(missing)}",
                code="TST123",
                why=f"it answers {', '.join(answered) or 'none'}",
                fix=f"correct `{self._kind}` in {self._kind}s.yaml, or Describe in the plugin",
            )
        for name, cases in self._cases.items():
            for rule in rules:
                yield await self._result(rule, name, cases)

    async def _result(self, rule: SubjectRule[S], name: str, cases: Sequence[C]) -> Result:
        clock, log, broken = SystemClock(), list[str](), ""
        started = clock.monotonic()
        connection = connection_to(self._arguments, self._environment, log.append)
        try:
            for case in cases:
                broken = await self._broken(rule, case, connection)
                if broken:
                    break
        finally:
            await connection.close()
        about = (rule.__doc__ or "").partition("\n")[0]
        kept = tuple(log[-20:]) if broken else ()
        return Result(f"{name}/{rule.__name__}", about, clock.monotonic() - started, broken, kept)

    async def _broken(self, rule: SubjectRule[S], case: C, connection: Connection) -> str:
        """How a case breaks a rule; empty if it does not."""
        try:
            await rule(self._subject(case, connection))
        except AssertionError as error:
            return f"{case.name}: {str(error).removeprefix(f'{rule.__name__}: ')}"
        return ""


def grouped(cases: Iterable[C], key: Callable[[C], str]) -> dict[str, list[C]]:
    """Cases by the check or validator that they are for, in the order in which they are written."""
    groups: dict[str, list[C]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return groups


def fixture_asset(fixture: FixtureAsset) -> Asset:
    """The asset that a case describes."""
    return make_asset(AssetId(fixture.id), fixture.type, fixture.payload, fixture.addons)
