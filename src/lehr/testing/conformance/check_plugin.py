"""The rules of `lehr.sdk.check`, for any check plugin.

A test lists subjects that wait, that are allowed and that the check has no word on, and holds
each of them to every rule:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    @pytest.mark.parametrize("subject", SUBJECTS)
    def test_keeps_the_contract(rule, subject):
        asyncio.run(rule(subject))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import msgspec

from lehr.model.decision import Verdict
from lehr.sdk.check import CheckPlugin, CheckRequest
from lehr.testing.checks import FixedCheckReader

_REASON = re.compile(r"[A-Z][A-Za-z0-9]*")


@dataclass(frozen=True)
class Subject:
    """A check plugin, the push that it is asked about, and all that it can look at.

    Attributes:
        make: makes the plugin.
        allows: True if every verdict must allow, False if one must wait, None if there must be
            none because the check does not apply.
        governed: False for a check that governing assets and controls do not configure.
    """

    make: Callable[[], CheckPlugin]
    request: CheckRequest
    reader: FixedCheckReader
    allows: bool | None
    governed: bool = True

    async def verdicts(self) -> list[Verdict]:
        """What a new plugin says."""
        return await self.make().check(self.request, self.reader)


Rule = Callable[[Subject], Coroutine[Any, Any, None]]


async def answers_as_expected(subject: Subject) -> None:
    """It allows, waits or says nothing, as the subject declares."""
    verdicts = await subject.verdicts()
    answer = all(verdict.allow for verdict in verdicts) if verdicts else None
    _hold(answer == subject.allows, f"the answer is {subject.allows}, not {answer}: {verdicts}")


async def changes_nothing(subject: Subject) -> None:
    """What it looks at is the same afterwards."""
    before = subject.reader.contents()
    await subject.verdicts()
    _hold(subject.reader.contents() == before, "a check changes nothing")


async def can_be_repeated(subject: Subject) -> None:
    """Asked again, or anew after a restart, it says the same: it keeps no state that matters."""
    plugin = subject.make()
    first = await plugin.check(subject.request, subject.reader)
    second = await plugin.check(subject.request, subject.reader)
    _hold(first == second, f"a check says the same twice, not {first} and {second}")
    _hold(first == await subject.verdicts(), "a new instance says what the old one said")


async def verdicts_carry_its_name(subject: Subject) -> None:
    """Each names the check, and each names another limit."""
    name = subject.make().name
    names = [verdict.check for verdict in await subject.verdicts()]
    _hold(all(item == name or item.startswith(f"{name}/") for item in names), f"{names} begin with {name}")
    _hold(len(set(names)) == len(names), f"each verdict is another limit's, not {names}")


async def waiting_explains_itself(subject: Subject) -> None:
    """A verdict that waits says why and what would unblock it, each in one line."""
    for verdict in await subject.verdicts():
        _hold(bool(_REASON.fullmatch(verdict.reason)), f"the reason {verdict.reason!r} is CamelCase")
        texts = (verdict.message, verdict.unblock)
        _hold(not any("\n" in text for text in texts), f"{texts} are one line each")
        if not verdict.allow:
            _hold(verdict.reason != "Allowed", "a verdict that waits has a reason of its own")
            _hold(all(texts), f"a verdict that waits has a message and an unblock, not {texts}")


async def until_is_in_the_future(subject: Subject) -> None:
    """`until` lies ahead, and before it the answer does not change by itself."""
    now = subject.request.now
    for verdict in await subject.verdicts():
        if verdict.allow or verdict.until is None:
            continue
        _hold(verdict.until > now, f"until {verdict.until} is after {now}")
        halfway = msgspec.structs.replace(subject.request, now=(now + verdict.until) / 2)
        then = await subject.make().check(halfway, subject.reader)
        same = [item for item in then if item.check == verdict.check]
        _hold(len(same) == 1 and not same[0].allow, f"{verdict.check} still waits before {verdict.until}")
        _hold(same[0].message == verdict.message, "a message holds no running numbers")


async def reservations_come_with_permission(subject: Subject) -> None:
    """Only a verdict that allows sets something aside; only one that waits waits for assets."""
    for verdict in await subject.verdicts():
        _hold(verdict.allow or not verdict.reservations, "a verdict that waits sets nothing aside")
        _hold(not (verdict.allow and verdict.wait_for), "a verdict that allows waits for nothing")
        for item in verdict.reservations:
            _hold(bool(item.key) and item.limit >= 1, f"{item} names a limit of at least 1")
            _hold(item.window is None or item.window > 0, f"the window of {item} is longer than nothing")


async def is_governed_by_the_governing_incarnation(subject: Subject) -> None:
    """Without its governing assets and controls it has no word, even if it had one just before."""
    if not subject.governed:
        return
    plugin = subject.make()
    await plugin.check(subject.request, subject.reader)
    left = await plugin.check(subject.request, subject.reader.ungoverned())
    _hold(not left, f"with nothing that governs it, there is no verdict, not {left}")


RULES: tuple[Rule, ...] = (
    answers_as_expected,
    changes_nothing,
    can_be_repeated,
    verdicts_carry_its_name,
    waiting_explains_itself,
    until_is_in_the_future,
    reservations_come_with_permission,
    is_governed_by_the_governing_incarnation,
)


def _hold(condition: bool, rule: str) -> None:
    if not condition:
        raise AssertionError(rule)
