"""The rules of `lehr.sdk.check`, for any check plugin.

In: a check plugin, pushes that it is asked about, and everything that it can look at. Out:
`AssertionError` naming the rule that it breaks. A test lists subjects that wait, that are allowed
and that the check does not judge, and holds each of them to every rule:

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
    @pytest.mark.parametrize("subject", SUBJECTS)
    def test_keeps_the_contract(rule, subject):
        asyncio.run(rule(subject))
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from lehr.base.errors import TransientError
from lehr.model.asset import id_problem
from lehr.model.control import ControlKind
from lehr.model.decision import Verdict
from lehr.model.reason import Reason
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest
from lehr.testing.checks import FixedCheckReader
from lehr.testing.conformance.messages import SentCheck
from lehr.testing.conformance.rules import Rules, hold

T = TypeVar("T")

_REASON = re.compile(r"[A-Z][A-Za-z0-9]*")


@dataclass(frozen=True)
class Subject:
    """A check plugin, the push that it is asked about, and everything that it can look at.

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

    def plugin(self) -> CheckPlugin:
        """A new plugin. Each call of it is sent as messages."""
        return SentCheck(self.make())

    async def verdicts(self) -> list[Verdict]:
        """A new plugin's verdict."""
        return await self.plugin().check(self.request, self.reader)


Rule = Callable[[Subject], Coroutine[Any, Any, None]]

_QUESTIONS = ("governing", "controls", "usage", "diff", "referrers", "metric_history")
_ALSO = {"look_at": "diff"}
"""Other ways to ask the same question."""


class _FailingReader:
    """Passes on every question but one, which it answers with an error."""

    def __init__(self, reader: CheckReader, question: str, error: Exception) -> None:
        self.asked = False
        self._reader = reader
        self._question = question
        self._error = error

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self._reader, name)
        if _ALSO.get(name, name) != self._question:
            return answer

        def fail(*asked: object, **how: object) -> None:
            self.asked = True
            raise self._error

        async def fail_later(*asked: object, **how: object) -> None:
            fail()

        return fail_later if inspect.iscoroutinefunction(answer) else fail


RULES: Rules[Rule] = Rules()


@RULES
async def answers_as_expected(subject: Subject) -> None:
    """It allows, waits or gives no verdict, as the subject declares."""
    verdicts = await subject.verdicts()
    answer = all(verdict.allow for verdict in verdicts) if verdicts else None
    hold(answer == subject.allows, f"the answer is {subject.allows}, not {answer}: {verdicts}")


@RULES
async def changes_nothing(subject: Subject) -> None:
    """The inputs are the same afterwards."""
    before = subject.reader.contents()
    await subject.verdicts()
    hold(subject.reader.contents() == before, "a check changes nothing")


@RULES
async def can_be_repeated(subject: Subject) -> None:
    """Asked again, or after a restart, it answers the same: it keeps no state that matters."""
    plugin = subject.plugin()
    first = await plugin.check(subject.request, subject.reader)
    second = await plugin.check(subject.request, subject.reader)
    hold(first == second, f"a check returns the same twice, not {first} and {second}")
    hold(first == await subject.verdicts(), "a new instance returns the same verdicts as the old one")


@RULES
async def asked_at_once_it_answers_apart(subject: Subject) -> None:
    """One instance serves many assets concurrently: questions in between change no answer."""
    plugin = subject.plugin()
    readers = (subject.reader, subject.reader.ungoverned(), subject.reader)
    alone = [await subject.plugin().check(subject.request, reader) for reader in readers]
    together = await asyncio.gather(*(plugin.check(subject.request, reader) for reader in readers))
    hold(together == alone, f"called concurrently, it returns {alone}, not {together}")


@RULES
async def no_answer_is_no_permission(subject: Subject) -> None:
    """When its inputs cannot be read, it raises or waits; it never allows, and is never silent."""
    for question in _QUESTIONS:
        for error in (TransientError("it cannot be read now"), RuntimeError("a bug")):
            reader: Any = _FailingReader(subject.reader, question, error)
            try:
                verdicts = await subject.plugin().check(subject.request, reader)
            except Exception:  # noqa: S112 - whatever it raises counts as wait
                continue
            waits = any(not verdict.allow for verdict in verdicts)
            hold(
                waits or not reader.asked, f"without an answer to `{question}` it does not return {verdicts}"
            )


@RULES
async def verdicts_can_be_stored(subject: Subject) -> None:
    """Each is the same after JSON, which decisions are kept as."""
    for verdict in await subject.verdicts():
        stored = msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict)
        hold(stored == verdict, f"a verdict is the same after JSON, unlike {verdict}")


@RULES
async def verdicts_carry_its_name(subject: Subject) -> None:
    """Each names the check, and each names another limit."""
    name = subject.plugin().name
    names = [verdict.check for verdict in await subject.verdicts()]
    hold(all(item == name or item.startswith(f"{name}/") for item in names), f"{names} begin with {name}")
    hold(len(set(names)) == len(names), f"each verdict is another limit's, not {names}")


@RULES
async def waiting_explains_itself(subject: Subject) -> None:
    """A verdict that waits gives a reason and what would unblock it, each in one line."""
    for verdict in await subject.verdicts():
        hold(bool(_REASON.fullmatch(verdict.reason)), f"the reason {verdict.reason!r} is CamelCase")
        texts = (verdict.message, verdict.unblock)
        hold(not any("\n" in text for text in texts), f"{texts} are one line each")
        if not verdict.allow:
            hold(verdict.reason != Reason.ALLOWED, "a verdict that waits has a reason of its own")
            hold(all(texts), f"a verdict that waits has a message and an unblock, not {texts}")


@RULES
async def until_is_in_the_future(subject: Subject) -> None:
    """`until` lies ahead, and before it the answer does not change automatically."""
    now = subject.request.now
    for verdict in await subject.verdicts():
        if verdict.allow or verdict.until is None:
            continue
        hold(verdict.until > now, f"until {verdict.until} is after {now}")
        halfway = msgspec.structs.replace(subject.request, now=(now + verdict.until) / 2)
        then = await subject.plugin().check(halfway, subject.reader)
        same = [item for item in then if item.check == verdict.check]
        hold(len(same) == 1 and not same[0].allow, f"{verdict.check} still waits before {verdict.until}")
        hold(same[0].message == verdict.message, "a message holds no running numbers")


@RULES
async def reservations_come_with_permission(subject: Subject) -> None:
    """Only a verdict that allows reserves something; only one that waits waits for assets."""
    for verdict in await subject.verdicts():
        hold(verdict.allow or not verdict.reservations, "a verdict that waits sets nothing aside")
        hold(not (verdict.allow and verdict.wait_for), "a verdict that allows waits for nothing")
        for item in verdict.reservations:
            hold(bool(item.key) and item.limit >= 1, f"{item} names a limit of at least 1")
            hold(item.window is None or item.window > 0, f"the window of {item} is longer than nothing")


@RULES
async def it_waits_for_others(subject: Subject) -> None:
    """`wait_for` names other assets, each once: an asset that waited for itself would wait for ever."""
    for verdict in await subject.verdicts():
        ids = verdict.wait_for
        hold(all(id_problem(id) is None for id in ids), f"{ids} are ids of assets")
        hold(len(set(ids)) == len(ids), f"each of {ids} is named once")
        hold(subject.request.asset.id not in ids, "it does not have an asset wait for itself")


@RULES
async def overrides_are_words_of_people(subject: Subject) -> None:
    """An overridden push is allowed, by an override that is active and selects the asset."""
    standing = {
        control.id
        for control in subject.reader.controls()
        if control.kind is ControlKind.OVERRIDE
        and control.is_active(subject.request.now)
        and control.selector.matches(subject.request.asset)
    }
    for verdict in await subject.verdicts():
        if verdict.overridden is not None:
            hold(verdict.allow, "what is overridden is allowed")
            hold(verdict.overridden in standing, f"{verdict.overridden} is one of {standing}")


@RULES
async def is_governed_by_the_governing_incarnation(subject: Subject) -> None:
    """Without its governing assets and controls it gives no verdict, even if it gave one just before."""
    if not subject.governed:
        return
    plugin = subject.plugin()
    await plugin.check(subject.request, subject.reader)
    left = await plugin.check(subject.request, subject.reader.ungoverned())
    hold(not left, f"with nothing that governs it, there is no verdict, not {left}")
