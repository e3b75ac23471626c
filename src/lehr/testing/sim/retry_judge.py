"""Judges how pushes that failed are tried again: neither too soon nor too late, and not in vain."""

from __future__ import annotations

from collections import Counter

from lehr.base.clock import Clock
from lehr.base.digest import Digest
from lehr.model.decision import Decision
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.model.reason import Reason
from lehr.model.writes import Finish
from lehr.testing.sim.production import Production
from lehr.testing.sim.wanted_content import WantedContent
from lehr.testing.sim.witness import Witness

_ROUNDING = 0.01
_LEAST_PAUSE = 0.5
_LONGEST_PAUSE = 150.0


class RetryJudge:
    """Invariants I7 to I10 of pushes that did not succeed."""

    def __init__(
        self, witness: Witness, production: Production, clock: Clock, contents: WantedContent
    ) -> None:
        self._witness = witness
        self._broken = witness.broken
        self._production = production
        self._clock = clock
        self._contents = contents
        self._failures: Counter[tuple[str, str, str]] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._told_until: dict[str, float] = {}
        self._failed_at: dict[tuple[str, str, str], float] = {}
        self._pardoned: dict[str, float] = {}
        self._excused: set[str] = set()
        self._stalled: dict[str, tuple[Digest, Digest, Goal]] = {}
        self._released_at: dict[str, tuple[object, ...]] = {}

    def forget(self) -> None:
        """Something has changed that may let failed pushes be tried again immediately."""
        self._failures.clear()
        self._stalled.clear()

    def pardon(self) -> None:
        """A person asks that failed pushes be tried again immediately, including those yet to fail."""
        self.forget()
        self._pardoned = dict.fromkeys({*self._witness.decisions, *self._witness.assets()}, self._clock.now())

    def matched(self, entry: LedgerEntry) -> None:
        """An asset was found as intended without a push: its failures are over."""
        self._failures = Counter({key: n for key, n in self._failures.items() if key[0] != entry.asset})

    def admitted(self, operation: Operation) -> None:
        """A push is admitted."""
        if self._witness.releases.governs(operation.asset):
            self._released_at[operation.id] = self._holds
        self._check_stall_holds(operation)
        if not self._witness.jumped:
            self._pauses(operation)

    def recorded(self, decision: Decision) -> None:
        """A decision was recorded."""
        self._comes_in_time(decision)
        self._stalls(decision)
        if decision.condition.status.settled:
            self._in_a_row.pop(decision.asset, None)
            for key in [key for key in self._failures if key[0] == decision.asset]:
                del self._failures[key]

    def finished(self, operation: Operation, write: Finish) -> None:
        """A push has ended, and how is known."""
        result = write.outcome.result
        held = self._released_at.pop(operation.id, None)
        if held == self._holds:
            self._stops_for_unreleased(operation, write.outcome.message)
        key = (operation.asset, operation.content_digest, str(operation.goal))
        self._in_a_row[operation.asset] += result in (Result.FAILED, Result.STALLED)
        self._told_until[operation.asset] = write.outcome.retry_at or 0.0
        pardoned = operation.asset in self._pardoned
        if pardoned:
            self._excused.add(operation.asset)
            if write.at >= self._pardoned[operation.asset]:  # and not one that was over, and written late
                del self._pardoned[operation.asset]
        overtaken = write.outcome.message == "superseded" or self._overtaken(operation)
        # Its first release may come during the admission, where equal contents are not recognised.
        governs = self._witness.releases.governs(operation.asset)
        overtaken = overtaken or (governs if held is None else held != self._holds)
        left_behind = self._left_behind(operation)
        if result is not Result.FAILED or overtaken or pardoned or left_behind:
            self._failures.pop(key, None)
            return
        self._failures[key] += 1
        self._failed_at[key] = write.at

    def _check_stall_holds(self, operation: Operation) -> None:
        """I8: a diff reported to need a person or a change is not pushed without one."""
        pushed = operation.diff_digest, operation.content_digest, operation.goal
        if self._stalled.pop(operation.asset, None) == pushed:
            self._broken("I8", f"{operation.asset} is reported as stalled, and is pushed without a change")

    def _stalls(self, decision: Decision) -> None:
        condition, content = decision.condition, decision.evidence.get("content_digest")
        stalled = self._stalled.get(decision.asset)
        # Content that stalled may be pushed again once the asset had its turn with other content.
        if condition.status.settled or (stalled is not None and content not in (None, stalled[1])):
            self._stalled.pop(decision.asset, None)
        if decision.asset in self._excused:
            self._excused.discard(decision.asset)  # The retry that was asked for during its push comes next.
            return
        pushes = (
            condition.reason in (Reason.PUSH_STALLED, Reason.PUSHED_STILL_DIFFERENT)
            and not condition.automatic
        )
        if pushes and decision.diff is not None and content is not None:
            self._stalled[decision.asset] = decision.diff.digest(), content, decision.goal

    def _pauses(self, operation: Operation) -> None:
        """I9: a failing push is tried ever less often. A push of other content in between starts over."""
        key = (operation.asset, operation.content_digest, str(operation.goal))
        for other in [other for other in self._failures if other[0] == operation.asset and other != key]:
            del self._failures[other]
        times = self._failures[key]
        if not times:
            return
        pause = min(_LEAST_PAUSE * 2 ** (times - 1), _LONGEST_PAUSE)
        waited = operation.started_at - self._failed_at[key]
        if waited < pause - _ROUNDING:
            self._broken(
                "I9", f"{operation.asset} failed {times} times, and is tried again after {waited:.2f} s"
            )

    @property
    def _holds(self) -> tuple[object, ...]:
        """The releases and controls that keep assets from newer content now."""
        return self._witness.releases.version, frozenset(self._witness.controls)

    def _stops_for_unreleased(self, operation: Operation, message: str) -> None:
        """I10: newer content stops a push of released content only once it is released as well."""
        newest = max(self._witness.incarnations, default=0)
        content = self._contents.incarnation(operation.asset, newest)
        if message == "superseded" and content == operation.content:
            self._broken("I10", f"a push of {operation.asset} stops for content that is not released to it")

    def _left_behind(self, operation: Operation) -> bool:
        """Whether another process took over, found the push still running, and continues without its outcome.

        The push may end between that answer and the write.
        """
        late = operation.epoch < self._witness.lease.epoch
        return late and operation.id in self._production.found_running

    def _overtaken(self, operation: Operation) -> bool:
        """Whether newer content arrived since, which gets its turn immediately; it may be the same again."""
        incarnations, id = self._witness.incarnations, operation.asset
        newer = (incarnations[sequence] for sequence in incarnations if sequence > operation.governing)
        began = self._witness.assets(operation.governing).get(id)
        return any((found := item.assets.get(id)) is None or found != began for item in newer)

    def _comes_in_time(self, decision: Decision) -> None:
        """I7: an asset that has failed only a few times is tried again soon."""
        condition = decision.condition
        if condition.reason != Reason.PUSH_FAILED or condition.next_at is None or self._witness.jumped:
            return
        times = self._in_a_row[decision.asset]
        latest = max(decision.at + 2.0 ** (times - 1), self._told_until.get(decision.asset, 0.0))
        if condition.next_at > latest + _ROUNDING:
            waits = condition.next_at - decision.at
            self._broken("I7", f"{decision.asset} failed {times} times, and is tried again in {waits:.1f} s")
