"""The conformance suite of checks catches checks that break its rules."""

import asyncio
from collections.abc import Callable

import pytest

from lehr.model.addons import ADDONS
from lehr.model.asset import AssetId, make_asset
from lehr.model.decision import Reservation, Verdict
from lehr.model.types import Registry
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from lehr.testing.checks import FixedCheckReader, check_request
from lehr.testing.conformance import check_plugin as suite
from lehr.testing.virtual import EPOCH

Says = Callable[[CheckRequest, int], Verdict]


class ScriptedCheck(CheckPlugin):
    """Says what a function of the request and the number of the call makes up."""

    name = "scripted"

    def __init__(self, says: Says) -> None:
        self._says = says
        self._calls = 0

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        self._calls += 1
        return [self._says(request, self._calls)]


def subject(says: Says) -> suite.Subject:
    asset = make_asset(AssetId("web"), "lehr.File", None, {})
    reader = FixedCheckReader(Registry((), ADDONS))
    allows = says(check_request(asset), 1).allow
    return suite.Subject(lambda: ScriptedCheck(says), check_request(asset), reader, allows, governed=False)


def wait(
    name: str = "scripted",
    reason: str = "Why",
    message: str = "m",
    unblock: str = "u",
    until: float | None = None,
) -> Verdict:
    return Verdict(name, False, reason, message, unblock, until)


def test_a_check_that_keeps_the_rules_passes_all_of_them() -> None:
    for rule in suite.RULES:
        asyncio.run(rule(subject(lambda _, __: wait())))


BREAKS: list[tuple[suite.Rule, Says]] = [
    (suite.can_be_repeated, lambda _, calls: wait(message=f"call {calls}")),
    (suite.verdicts_carry_its_name, lambda _, __: wait("other/limit")),
    (suite.waiting_explains_itself, lambda _, __: wait(message="")),
    (suite.waiting_explains_itself, lambda _, __: wait(unblock="")),
    (suite.waiting_explains_itself, lambda _, __: wait(message="two\nlines")),
    (suite.waiting_explains_itself, lambda _, __: wait(reason="not camel case")),
    (suite.waiting_explains_itself, lambda _, __: wait(reason="Allowed")),
    (suite.until_is_in_the_future, lambda request, _: wait(until=request.now)),
    (suite.until_is_in_the_future, lambda _, __: wait(until=EPOCH - 60)),
    (
        suite.until_is_in_the_future,
        lambda request, _: wait(until=EPOCH + 60, message=f"{EPOCH + 60 - request.now:g} seconds to go"),
    ),
    (
        suite.until_is_in_the_future,
        lambda request, _: wait(until=EPOCH + 60) if request.now == EPOCH else Verdict("scripted", True),
    ),
    (
        suite.reservations_come_with_permission,
        lambda _, __: Verdict("scripted", False, reservations=(Reservation("k", 1),)),
    ),
    (
        suite.reservations_come_with_permission,
        lambda _, __: Verdict("scripted", True, reservations=(Reservation("k", 0),)),
    ),
    (
        suite.reservations_come_with_permission,
        lambda _, __: Verdict("scripted", True, wait_for=(AssetId("db"),)),
    ),
]


@pytest.mark.parametrize(("rule", "says"), BREAKS)
def test_a_check_that_breaks_a_rule_is_caught_by_it(rule: suite.Rule, says: Says) -> None:
    with pytest.raises(AssertionError):
        asyncio.run(rule(subject(says)))


def test_a_check_that_is_governed_by_nothing_is_caught() -> None:
    ungoverned = subject(lambda _, __: wait())
    claims = suite.Subject(ungoverned.make, ungoverned.request, ungoverned.reader, False)
    with pytest.raises(AssertionError, match="nothing that governs"):
        asyncio.run(suite.is_governed_by_the_governing_incarnation(claims))


def test_a_check_that_answers_otherwise_than_declared_is_caught() -> None:
    waits = subject(lambda _, __: wait())
    claims = suite.Subject(waits.make, waits.request, waits.reader, allows=True)
    with pytest.raises(AssertionError, match="the answer is True, not False"):
        asyncio.run(suite.answers_as_expected(claims))
