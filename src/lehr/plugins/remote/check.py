"""Checks of plugins in other processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from weakref import WeakKeyDictionary

from lehr.base.clock import Clock
from lehr.base.errors import LehrError, NeedError, StalledError, TransientError, WaitingError
from lehr.base.text import writable
from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.decision import Verdict
from lehr.model.reason import Reason
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.asking import blaming
from lehr.plugins.remote.channel import CHECK
from lehr.plugins.remote.check_wire import (
    asset_message,
    control_message,
    diff_message,
    failed_fact,
    history_message,
    push_message,
    question_of,
    referrer_message,
    reservation_of,
    usage_message,
    verdicts_of,
)
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.wire import GarbageError, Shown, error_of
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

_SECONDS = 10.0
_RETRY_SECONDS = 10.0
_MOST_ROUNDS = 100
_MOST_QUESTIONS = 2_000

_marks = itertools.count()
"""Numbers requests, so that a verdict about another push is noticed."""


class RemoteCheck(CheckPlugin):
    """A check that a plugin answers. Without an answer, or with one that makes no sense, the push waits.

    Args:
        name: of the check, for the plugin and in verdicts.
        governs: whether assets of a type configure checks. There are none of another type to be read as
            governing assets, and a check that found none would let everything go.
        types: of the assets whose pushes it judges; none for all.
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        clock: Clock,
        governs: Callable[[str], bool] = lambda type: True,
        types: Collection[str] = (),
    ) -> None:
        self.name = name  # type: ignore[misc]
        self._connection = connection
        self._clock = clock
        self._governs = governs
        self._types = frozenset(types)
        self._unfinished: WeakKeyDictionary[CheckReader, _Inquiry] = WeakKeyDictionary()

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        """Ask until the plugin needs nothing more.

        Raises:
            NeedError: something has to be read first. The next call with `read` continues where this one
                ended: what the plugin may ask for is bounded for each push, not for each call.
        """
        if self._types and request.asset.type not in self._types:
            return []
        inquiry = self._unfinished.pop(read, None) or _Inquiry(self.name, request, self._governs)
        try:
            with blaming(self._connection.name):
                return await self._asked(inquiry, read)
        except NeedError:
            self._unfinished[read] = inquiry
            raise
        except LehrError as error:
            return [self._waiting(error, request.now)]

    async def _asked(self, inquiry: _Inquiry, read: CheckReader) -> list[Verdict]:
        while True:
            await inquiry.look_up(read)
            opened = await self._connection.ready()
            started = self._clock.monotonic()
            answer = await self._connection.call(CHECK, inquiry.sealed(), inquiry.seconds, opened)
            inquiry.seconds -= self._clock.monotonic() - started
            verdicts = inquiry.answered(answer, self._connection.hidden_in(opened).shown)
            if verdicts is not None:
                return verdicts
            if inquiry.seconds <= 0:
                raise TransientError(
                    f"the plugin {self._connection.name} has not reached a verdict in time",
                    code="PLG151",
                    why=f"it has {_SECONDS:g} seconds for all its questions",
                )

    def _waiting(self, error: LehrError, now: float) -> Verdict:
        until = now + _RETRY_SECONDS
        if isinstance(error, WaitingError):
            until = max(until, error.until)
        code = f" ({error.code})" if error.code else ""
        return Verdict(
            self.name,
            allow=False,
            reason=Reason.CHECK_FAILED,
            message=f"the check has no answer: {error.what}{f': {error.why}' if error.why else ''}{code}",
            unblock=error.fix or "see `lehr plugin list`; Lehr asks the check again automatically",
            until=until,
        )


class _Inquiry:
    """One push that a check is asked about.

    Attributes:
        seconds: how long the plugin may still take.
    """

    def __init__(self, check: str, request: CheckRequest, governs: Callable[[str], bool]) -> None:
        self._governs = governs
        self.seconds = _SECONDS
        self._check = check
        self._request = request
        self._message = push_message(check, request)
        self._asked: set[bytes] = set()
        self._open: list[m.CheckQuestion] = []
        self._rounds = 0
        self._overrides: set[str] = set()

    def sealed(self) -> m.CheckRequest:
        """The request with all facts so far."""
        self._message.mark = next(_marks).to_bytes(8, "big")
        return self._message

    def answered(self, answer: m.CheckResponse, shown: Shown) -> list[Verdict] | None:
        """The verdicts in an answer; None if the plugin has questions.

        Raises:
            LehrError: the plugin's trouble.
            GarbageError: the answer belongs to another request, or makes no sense.
        """
        if answer.mark != self._message.mark:
            raise GarbageError("an answer to another request")
        match answer.WhichOneof("answer"):
            case "verdicts":
                messages = answer.verdicts.verdicts
                return verdicts_of(messages, self._check, self._request, self._overrides, shown)
            case "need":
                self._add(answer.need.questions)
                return None
            case "trouble":
                raise error_of(answer.trouble, shown)
        raise GarbageError("an answer without a result")

    def _add(self, questions: Sequence[m.CheckQuestion]) -> None:
        """Take up the questions that were not asked before."""
        self._rounds += 1
        for question in questions:
            self._require_governing(question)
            key = question.SerializeToString(deterministic=True)
            if key not in self._asked:
                self._asked.add(key)
                self._open.append(question)
        if not self._open:
            raise GarbageError("it asks for nothing, or only for what it has")
        if self._rounds > _MOST_ROUNDS:
            raise GarbageError(f"it has asked for more {_MOST_ROUNDS} times")
        if len(self._asked) > _MOST_QUESTIONS:
            raise GarbageError(f"it has asked more than {_MOST_QUESTIONS:,} questions")

    def _require_governing(self, question: m.CheckQuestion) -> None:
        if question.WhichOneof("question") == "governing" and not self._governs(question.governing):
            raise StalledError(
                f"the check asks for governing assets of type {writable(question.governing, 100)!r}",
                code="PLG154",
                why="no installed package declares this type with `governs=True`",
                fix="install its package, or have the check read another asset or addons",
            )

    async def look_up(self, read: CheckReader) -> None:
        """Answer all open questions.

        Raises:
            NeedError: some have to be read first; they stay open.
        """
        diffs = [item.difference for item in self._open if item.WhichOneof("question") == "difference"]
        if len(plain := [AssetId(item.id) for item in diffs if not (item.own or item.settled)]) > 1:
            await read.look_at(plain)
        unread: list[m.CheckQuestion] = []
        missing: NeedError | None = None
        for question in self._open:
            try:
                self._message.facts.append(await self._fact(question, read))
            except NeedError as error:
                unread.append(question)
                missing = error
            except LehrError as error:
                self._message.facts.append(failed_fact(question, error))
        self._open = unread
        if missing is not None:
            raise missing

    async def _fact(self, question: m.CheckQuestion, read: CheckReader) -> m.CheckFact:
        fact = m.CheckFact(question=question)
        match question.WhichOneof("question"):
            case "governing":
                fact.assets.extend(map(asset_message, read.governing(question.governing)))
            case "controls":
                fact.controls.extend(self._controls(read))
            case "usage":
                fact.usage.CopyFrom(usage_message(read.usage(reservation_of(question.usage))))
            case "asset":
                asset = read.asset(AssetId(question.asset))
                fact.assets.append(m.Asset(id=question.asset) if asset is None else asset_message(asset))
            case "difference":
                asked = question.difference
                diff = diff_message(await read.diff(AssetId(asked.id), own=asked.own, settled=asked.settled))
                if diff is not None:
                    fact.difference.CopyFrom(diff)
            case "referrers":
                fact.referrers.extend(map(referrer_message, read.referrers()))
            case "dependencies":
                fact.dependencies.extend(self._dependencies(AssetId(question.dependencies), read))
            case "metric_history":
                fact.metric_history = history_message(await read.metric_history(question_of(question)))
            case _:
                raise GarbageError("a question that is not known")
        return fact

    def _controls(self, read: CheckReader) -> list[m.Control]:
        controls = [(control, self._request.selected(control.selector)) for control in read.controls()]
        self._overrides.update(
            control.id for control, selects in controls if selects and control.kind is ControlKind.OVERRIDE
        )
        return [control_message(control, selects=selects) for control, selects in controls]

    def _dependencies(self, id: AssetId, read: CheckReader) -> Sequence[AssetId]:
        asset = self._request.asset if id == self._request.asset.id else read.asset(id)
        return () if asset is None else read.dependencies(asset)
