"""Validators of plugins in other processes."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.diagnostics import Severity
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.base.text import listed
from lehr.model.asset import AssetId, id_problem
from lehr.model.incarnation import AssetChange
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.asking import blaming
from lehr.plugins.remote.channel import MOST_BYTES, VALIDATE
from lehr.plugins.remote.check_wire import asset_message
from lehr.plugins.remote.connection import Connection
from lehr.plugins.remote.validator_wire import divided, findings_of, referrers_message
from lehr.plugins.remote.wire import GarbageError, Shown, error_of
from lehr.sdk.asked_validator import Finding
from lehr.sdk.validator import Proposal, WhenDown

_SECONDS = 10.0
_MOST_SECONDS = 300.0
_MOST_ROUNDS = 100
_MOST_QUESTIONS = 10_000
_MOST_FINDINGS = 1_000
_MOST_IN_PART = MOST_BYTES // 2  # the rest is for what the plugin asks for

_marks = itertools.count()
"""Numbers requests, so that an answer to another one is noticed."""


class RemoteValidator:
    """An `AskedValidator` that a plugin answers. Without an answer to every part of a change, it has none.

    Args:
        name: of the validator, for the plugin and in messages.
        types: of the assets whose changes it judges; none for all.
    """

    def __init__(
        self,
        name: str,
        connection: Connection,
        clock: Clock,
        types: Collection[str] = (),
        when_down: WhenDown = WhenDown.REFUSE,
    ) -> None:
        self.name = name
        self.when_down = when_down
        self._connection = connection
        self._clock = clock
        self._types = frozenset(types)

    def concerns(self, change: AssetChange) -> bool:
        """Whether it judges this change: by its type, before or after."""
        versions = (asset for asset in (change.before, change.after) if asset is not None)
        return not self._types or any(asset.type in self._types for asset in versions)

    async def ask(self, proposal: Proposal, blocking: Blocking) -> Sequence[Finding] | LehrError:
        """Its findings in all parts, one part after the other.

        If there are more errors than anybody would read, the remaining parts are left out.
        """
        found: list[Finding] = []
        parts = divided(filter(self.concerns, proposal.changes()), _MOST_IN_PART)
        left = _MOST_SECONDS
        while (part := await blocking.run(_next, parts)) is not None:
            inquiry = _Inquiry(self.name, proposal, part)
            seconds = inquiry.seconds = min(_SECONDS, left)
            answer = await self._asked(inquiry, blocking)
            if isinstance(answer, LehrError):
                return answer
            found += answer
            left -= seconds - inquiry.seconds
            if len(found) >= _MOST_FINDINGS and any(item.severity is Severity.ERROR for item in found):
                break
        return found

    async def _asked(self, inquiry: _Inquiry, blocking: Blocking) -> Sequence[Finding] | LehrError:
        """Its findings in one part, from as many calls as it takes."""
        while True:
            # Errors of the proposal are not the plugin's.
            await blocking.run(inquiry.look_up)
            try:
                with blaming(self._connection.name):
                    answer = await self._answer(inquiry)
            except LehrError as error:
                return error
            if answer is not None:
                return answer

    async def _answer(self, inquiry: _Inquiry) -> Sequence[Finding] | None:
        """Its findings; None if it has asked for more."""
        name = self._connection.name
        if inquiry.seconds <= 0:
            raise TransientError(
                f"the plugin {name} has not judged the change in time",
                code="PLG160",
                why=f"it has {_SECONDS:g} seconds for each part of a change, and {_MOST_SECONDS:g} for all",
                fix="have it ask for everything that it needs at once, or select fewer types for it",
            )
        inquiry.require_small(name)
        opened = await self._connection.ready()
        started = self._clock.monotonic()
        try:
            message = await self._connection.call(VALIDATE, inquiry.sealed(), inquiry.seconds, opened)
        finally:
            inquiry.seconds -= self._clock.monotonic() - started
        return inquiry.answered(message, self._connection.hidden_in(opened).shown)


def _next(parts: Iterator[list[m.AssetChange]]) -> list[m.AssetChange] | None:
    return next(parts, None)


class _Inquiry:
    """A part of a change that a validator is asked about.

    Attributes:
        seconds: how long the plugin may still take.
    """

    def __init__(self, validator: str, proposal: Proposal, part: Sequence[m.AssetChange]) -> None:
        self.seconds = _SECONDS
        self._proposal = proposal
        self._message = m.ValidateRequest(
            validator=validator,
            partition=proposal.partition,
            changes=part,
            size_before=proposal.size_before(),
        )
        self._shown_ids = {change.id for change in part}
        self._asked: set[tuple[str, AssetId]] = set()
        self._assets: list[AssetId] = []
        self._referrers: list[AssetId] = []
        self._rounds = 0

    def look_up(self) -> None:
        """Add everything that the plugin has asked for. Reads the proposal."""
        for id in self._assets:
            asset = self._proposal.asset(id) if id_problem(id) is None else None
            self._message.assets.append(m.Asset(id=id) if asset is None else asset_message(asset))
        for id in self._referrers:
            found = self._proposal.mentioned_by(id) if id_problem(id) is None else ()
            message = referrers_message(id, found)
            self._message.referrers.append(message)
            self._shown_ids.update(referrer.asset.id for referrer in message.referrers)
        self._shown_ids.update(self._assets)
        self._assets, self._referrers = [], []

    def require_small(self, plugin: str) -> None:
        """Raises `StalledError` if the request does not fit into a message."""
        size = self._message.ByteSize()
        if size > MOST_BYTES:
            changed = [change.id for change in self._message.changes]
            raise StalledError(
                f"the plugin {plugin} cannot be asked about {listed(changed)}",
                code="PLG161",
                why=f"with what it has asked for, that is {size:,} bytes; {MOST_BYTES:,} are allowed",
                fix="select fewer types in the file of plugins, or make the assets smaller",
            )

    def sealed(self) -> m.ValidateRequest:
        """The request with everything so far."""
        self._message.mark = next(_marks).to_bytes(8, "big")
        return self._message

    def answered(self, answer: m.ValidateResponse, shown: Shown) -> list[Finding] | None:
        """The findings in an answer; None if the plugin needs more.

        Raises:
            LehrError: the plugin's trouble.
            GarbageError: the answer belongs to another request, or makes no sense.
        """
        if answer.mark != self._message.mark:
            raise GarbageError("an answer to another request")
        match answer.WhichOneof("answer"):
            case "problems":
                return findings_of(answer.problems.problems, self._shown_ids, shown)
            case "need":
                self._add(answer.need)
                return None
            case "trouble":
                raise error_of(answer.trouble, shown)
        raise GarbageError("an answer without a result")

    def _add(self, need: m.ValidateNeed) -> None:
        """Take up what was not asked for before."""
        self._rounds += 1
        self._assets = list(self._unasked("asset", need.assets))
        self._referrers = list(self._unasked("referrers", need.referrers))
        if not (self._assets or self._referrers):
            raise GarbageError("it asks for nothing, or only for what it has")
        if self._rounds > _MOST_ROUNDS:
            raise GarbageError(f"it has asked for more {_MOST_ROUNDS} times")
        if len(self._asked) > _MOST_QUESTIONS:
            raise GarbageError(f"it has asked for more than {_MOST_QUESTIONS:,} assets and referrers")

    def _unasked(self, kind: str, ids: Sequence[str]) -> Iterator[AssetId]:
        for id in map(AssetId, ids):
            if (kind, id) not in self._asked:
                self._asked.add((kind, id))
                yield id
