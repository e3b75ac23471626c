"""The conformance suite of checks finds what it claims to find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from lehr.base.errors import TransientError
from lehr.model.addons import ADDONS
from lehr.model.asset import AssetId, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import NO_DIFF
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.types import AssetType, Registry
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from lehr.testing.checks import FixedCheckReader, check_request
from lehr.testing.conformance import check_plugin as suite
from lehr.testing.conformance.check_plugin import RULES, Rule, Subject
from lehr.testing.virtual import EPOCH

ASSET = make_asset(AssetId("web"), "lehr.File", None, {})


class Limit(msgspec.Struct, frozen=True):
    most: int


class Good(CheckPlugin):
    """Lets so many pushes start in a minute, once `db` has nothing to do; who overrides it may go."""

    name = "limit"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        found = []
        for asset in read.governing("test.Limit"):
            limit = read.payload(asset, Limit)
            found.append(await self.verdict(f"{self.name}/{asset.id}", limit, request, read))
        return found

    async def verdict(self, name: str, limit: Limit, request: CheckRequest, read: CheckReader) -> Verdict:
        for control in read.controls():
            if control.kind is ControlKind.OVERRIDE:
                return Verdict(name, True, Reason.OVERRIDDEN, overridden=control.id)
        if await read.diff(AssetId("db")) != NO_DIFF:
            message, unblock = "db differs", "push db first"
            return Verdict(name, False, "Differs", message, unblock, wait_for=(AssetId("db"),))
        reservation = Reservation(name, limit.most, 60.0)
        used, until = read.usage(reservation)
        if used >= limit.most:
            return Verdict(name, False, Reason.LIMIT_REACHED, "no push is left", "wait for a minute", until)
        return Verdict(name, True, reservations=(reservation,))


class ForgetsWhatItKnew(Good):
    """Counts in its memory."""

    pushes = 0

    async def verdict(self, name: str, limit: Limit, request: CheckRequest, read: CheckReader) -> Verdict:
        self.pushes += 1
        found = await super().verdict(name, limit, request, read)
        return msgspec.structs.replace(found, message=f"push {self.pushes}")


class LiftsControls(Good):
    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        found = await super().check(request, read)
        assert isinstance(read, FixedCheckReader)
        read._controls = ()
        return found


class Mixes(Good):
    """Keeps what it is asked by in itself, over an await."""

    reader: CheckReader

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        self.reader = read
        await asyncio.sleep(0)
        return await super().check(request, self.reader)


class NoAnswerIsYes(Good):
    async def verdict(self, name: str, limit: Limit, request: CheckRequest, read: CheckReader) -> Verdict:
        try:
            return await super().verdict(name, limit, request, read)
        except TransientError:
            return Verdict(name, True)


class NoAnswerIsSilence(Good):
    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        try:
            return await super().check(request, read)
        except RuntimeError:
            return []


class KnowsItsLimits(Good):
    """Goes on with the configuration that it saw first."""

    limits: tuple[Verdict, ...] = ()

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        self.limits = self.limits or tuple(await super().check(request, read))
        return list(self.limits)


class Contradicts(Good):
    async def verdict(self, name: str, limit: Limit, request: CheckRequest, read: CheckReader) -> Verdict:
        found = await super().verdict(name, limit, request, read)
        return Verdict(name, not found.allow, "Contrary", "m", "u")


def saying(**fields: Any) -> type[Good]:
    """A check whose verdicts have these fields."""

    class Saying(Good):
        async def verdict(self, name: str, limit: Limit, request: CheckRequest, read: CheckReader) -> Verdict:
            found = await super().verdict(name, limit, request, read)
            said = {key: value(request) if callable(value) else value for key, value in fields.items()}
            return msgspec.structs.replace(found, **said)

    return Saying


class LetsGoEarly(Good):
    """Says when, and is ready before."""

    async def verdict(self, name: str, limit: Limit, request: CheckRequest, read: CheckReader) -> Verdict:
        found = await super().verdict(name, limit, request, read)
        return found if found.allow or request.now == EPOCH else Verdict(name, True)


class SaysItTwice(Good):
    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return 2 * await super().check(request, read)


def override(**fields: Any) -> Control:
    said = {"selector": Selector(ids=("web",)), "reason": "r", "actor": "a", "at": 0.0, **fields}
    return Control(id="c1", kind=ControlKind.OVERRIDE, partition=Partition("test"), **said)


def subject(make: Callable[[], CheckPlugin], case: str = "reached") -> Subject:
    limit = make_asset(AssetId("gentle"), "test.Limit", Limit(1), {})
    seen: dict[str, tuple[bool | None, dict[str, Any]]] = {
        "free": (True, {"diffs": {AssetId("db"): NO_DIFF}}),
        "reached": (False, {"diffs": {AssetId("db"): NO_DIFF}, "usages": {"limit/gentle": (1, EPOCH + 60)}}),
        "differs": (False, {}),
        "overridden": (True, {"controls": [override()]}),
        "ungoverned": (None, {"governing": []}),
    }
    allows, given = seen[case]
    registry = Registry([AssetType("test.Limit", Limit, governs=True)], ADDONS)
    reader = FixedCheckReader(registry, **{"governing": [limit], **given})
    return Subject(make, check_request(ASSET), reader, allows)


CASES = ("free", "reached", "differs", "overridden", "ungoverned")

BREAKS: list[tuple[Rule, str, type[Good]]] = [
    (suite.answers_as_expected, "free", Contradicts),
    (suite.changes_nothing, "overridden", LiftsControls),
    (suite.can_be_repeated, "reached", ForgetsWhatItKnew),
    (suite.asked_at_once_it_answers_apart, "free", Mixes),
    (suite.no_answer_is_no_permission, "free", NoAnswerIsYes),
    (suite.no_answer_is_no_permission, "free", NoAnswerIsSilence),
    (suite.verdicts_can_be_stored, "reached", saying(message=b"bytes")),
    (suite.verdicts_carry_its_name, "reached", saying(check="other/gentle")),
    (suite.verdicts_carry_its_name, "reached", saying(check="limits")),
    (suite.verdicts_carry_its_name, "reached", SaysItTwice),
    (suite.waiting_explains_itself, "reached", saying(message="")),
    (suite.waiting_explains_itself, "reached", saying(unblock="")),
    (suite.waiting_explains_itself, "reached", saying(message="two\nlines")),
    (suite.waiting_explains_itself, "reached", saying(reason="not camel case")),
    (suite.waiting_explains_itself, "reached", saying(reason=Reason.ALLOWED)),
    (suite.until_is_in_the_future, "reached", saying(until=lambda request: request.now)),
    (suite.until_is_in_the_future, "reached", saying(until=EPOCH - 60)),
    (
        suite.until_is_in_the_future,
        "reached",
        saying(message=lambda request: f"{EPOCH + 60 - request.now:g} seconds to go"),
    ),
    (suite.until_is_in_the_future, "reached", LetsGoEarly),
    (suite.reservations_come_with_permission, "reached", saying(reservations=(Reservation("k", 1),))),
    (suite.reservations_come_with_permission, "free", saying(reservations=(Reservation("k", 0),))),
    (suite.reservations_come_with_permission, "free", saying(reservations=(Reservation("", 1),))),
    (suite.reservations_come_with_permission, "free", saying(reservations=(Reservation("k", 1, 0.0),))),
    (suite.reservations_come_with_permission, "free", saying(wait_for=(AssetId("db"),))),
    (suite.it_waits_for_others, "differs", saying(wait_for=(ASSET.id,))),
    (suite.it_waits_for_others, "differs", saying(wait_for=(AssetId("db"), AssetId("db")))),
    (suite.it_waits_for_others, "differs", saying(wait_for=(AssetId("/"),))),
    (suite.overrides_are_words_of_people, "overridden", saying(overridden="c2")),
    (suite.overrides_are_words_of_people, "reached", saying(overridden="c1")),
    (suite.is_governed_by_the_governing_incarnation, "reached", KnowsItsLimits),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_check_keeps_every_rule(rule: Rule, case: str) -> None:
    asyncio.run(rule(subject(Good, case)))


@pytest.mark.parametrize(
    ("rule", "case", "broken"), BREAKS, ids=lambda value: getattr(value, "__name__", value)
)
def test_a_check_that_breaks_a_rule_is_caught_by_it(rule: Rule, case: str, broken: type[Good]) -> None:
    with pytest.raises(AssertionError, match=f"^{rule.__name__}: "):
        asyncio.run(rule(subject(broken, case)))


def test_every_rule_of_checks_has_a_check_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BREAKS} == set(RULES)


def test_an_override_that_has_run_out_or_is_for_another_asset_counts_for_nothing() -> None:
    for control in (override(expires_at=EPOCH), override(selector=Selector(ids=("other",)))):
        held = subject(Good, "overridden")
        held.reader._controls = (control,)
        with pytest.raises(AssertionError, match="c1 is one of"):
            asyncio.run(suite.overrides_are_words_of_people(held))
