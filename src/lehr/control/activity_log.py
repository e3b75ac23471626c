"""The lines of the log of `lehr run` about what it did, from what it has committed. Pure.

The first event of each cause has a line at once. Those that follow are counted: at the end of each minute, a
cause has one line with their number, and a cause without any is forgotten. So ten thousand assets that fail
in the same way take as many lines as one, and the next cause is still seen at once.

The feed of the partition has the same events, and `lehr events` shows them one by one. It is not read here:
it names records, and reading them again would cost more than committing them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lehr.base.clock import Clock, iso
from lehr.base.text import writable
from lehr.model.asset import AssetId
from lehr.model.decision import Decision, Status
from lehr.model.evidence import Evidence, Failed, WentBack
from lehr.model.operation import Operation, Purpose, Result
from lehr.model.writes import Admit, Audit, Finish, RecordDecision, Refused, Reschedule, Write, WriteReleases
from lehr.rollouts.story import in_words

MINUTE = 60.0
"""Seconds between two lines of a cause."""

_MOST_CAUSES = 500
"""Of more causes, further ones are counted together: checks of users make up reasons of their own."""

_MOST_CHARACTERS = 1000


class Level(enum.StrEnum):
    """How important a line is."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogLine(msgspec.Struct, frozen=True):
    """One line.

    Attributes:
        at: wall-clock seconds.
        event: what kind of thing happened (`push`, `drift`, `failed`); stable, for programs.
        fields: further facts for programs; `message` has those that people need.
    """

    at: float
    level: Level
    event: str
    message: str
    fields: dict[str, Any] = {}


class Cause(msgspec.Struct, frozen=True):
    """Events of the same cause are counted together.

    Attributes:
        type: of the asset; empty if it is not known.
        reason: a `Reason`, one of a check's own, or the purpose of a push.
        check: the check that gave the reason, if one did.
    """

    event: str
    type: str = ""
    reason: str = ""
    check: str = ""

    def __str__(self) -> str:
        return ", ".join(part for part in (self.type, self.reason, self.check) if part) or "other causes"


class _Tally:
    """Events of a cause since its last line, and the last of them."""

    __slots__ = ("count", "last")

    def __init__(self) -> None:
        self.count = 0
        self.last: LogLine | None = None


_EVENTS: dict[Status, tuple[str, Level]] = {
    Status.WAITING: ("waiting", Level.INFO),
    Status.HELD: ("held", Level.INFO),
    Status.RETRYING: ("failed", Level.WARNING),
    Status.STALLED: ("stalled", Level.ERROR),
    Status.UNKNOWN: ("unknown", Level.WARNING),
}
"""Event and importance of a turn that ends with this status."""

_FAILING = (Status.RETRYING, Status.STALLED, Status.UNKNOWN)


class ActivityLog:
    """Turns what was committed into lines.

    Call `committed` with each commit, and `due` at least once a minute; both return the next lines.
    """

    def __init__(self, clock: Clock, type_of: Callable[[AssetId], str]) -> None:
        """`type_of` names the type of an asset, or nothing if it is not known."""
        self._clock = clock
        self._type_of = type_of
        self._tallies: dict[Cause, _Tally] = {}
        self._began, self._ends = clock.now(), clock.monotonic() + MINUTE
        self._pushes: dict[str, Operation] = {}
        self._failing: dict[AssetId, str] = {}

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> list[LogLine]:
        """The lines of a commit, after those that were due before."""
        lines = self.due()
        for write, answer in zip(writes, answers, strict=True):
            if not isinstance(answer, Refused):
                lines += self._written(write)
        return lines

    def due(self) -> list[LogLine]:
        """The lines of the minute that has ended; none before that."""
        return self.rest() if self._clock.monotonic() >= self._ends else []

    def rest(self) -> list[LogLine]:
        """A line for each cause that was counted since its last line. Another minute begins."""
        began, now = self._began, self._clock.now()
        self._began, self._ends = now, self._clock.monotonic() + MINUTE
        counted = {cause: tally for cause, tally in self._tallies.items() if tally.count}
        self._tallies = {cause: _Tally() for cause in counted}
        return [_count(cause, tally, began, now) for cause, tally in counted.items()]

    def _written(self, write: Write) -> list[LogLine]:
        match write:
            case Admit():
                return self._pushed(write)
            case Finish() if write.outcome.result is not Result.UNKNOWN:
                return self._finished(write)
            case RecordDecision():
                return self._decided(write.decision)
            case Reschedule() if write.condition.status in _FAILING:
                event, level = _EVENTS[write.condition.status]
                cause = Cause(event, self._type_of(write.key.id), write.condition.reason)
                return self._event(cause, level, write.key.id, f"{event}: {write.condition.message}")
            case Audit(entry=entry):
                level = Level.WARNING if entry.result.startswith("refused: ") else Level.INFO
                fields = {"actor": entry.actor, "command": entry.command}
                text = f"{entry.actor}: lehr {entry.given}: {entry.result}"
                return [LogLine(entry.at, level, "command", _cut(text), fields)]
            case WriteReleases(evidence=()):
                counts = f"{len(write.releases)} released, {len(write.withdrawn)} withdrawn"
                return [LogLine(write.at, Level.INFO, "releases", counts)]
            case WriteReleases():
                return [line for item in write.evidence if (line := _rollout(item))]
        return []

    def _pushed(self, write: Admit) -> list[LogLine]:
        push = write.operation
        self._pushes[push.id] = push
        drift = push.purpose is Purpose.REPAIR
        differs = _differs(write.decision)
        text = f"pushing {push.partition}@{push.content}" + (f"; differs: {differs}" if differs else "")
        return self._event(
            Cause("drift" if drift else "push", push.type, push.purpose),
            Level.WARNING if drift else Level.INFO,
            push.asset,
            f"drift: {text}" if drift else text,
            operation=push.id,
            incarnation=f"{push.partition}@{push.content}",
            differs=differs,
        )

    def _finished(self, write: Finish) -> list[LogLine]:
        push = self._pushes.pop(write.operation, None)
        if push is None or write.outcome.result is not Result.DONE:
            return []  # the decision about a failure has its reason
        seconds = max(0.0, write.at - push.started_at)
        text = f"pushed in {seconds:.1f}s" + (f": {write.outcome.message}" if write.outcome.message else "")
        cause = Cause("pushed", push.type, push.purpose)
        return self._event(cause, Level.INFO, push.asset, text, operation=push.id, seconds=round(seconds, 3))

    def _decided(self, decision: Decision) -> list[LogLine]:
        condition, asset = decision.condition, decision.asset
        if condition.status.settled:
            reason = self._failing.pop(asset, None)
            if reason is None:
                return []
            cause = Cause("recovered", self._type_of(asset), reason)
            return self._event(cause, Level.INFO, asset, f"{condition.status} again after {reason}")
        if condition.status is Status.PUSHING:
            return []  # its admission has a line
        event, level = _EVENTS[condition.status]
        if condition.status in _FAILING:
            self._failing[asset] = condition.reason
        refusals = (item.check for item in decision.verdicts if not item.allow)
        check = next(refusals, "")
        differs = _differs(decision)
        text = f"{event}: {condition.message}" + (f"; differs: {differs}" if differs else "")
        return self._event(
            Cause(event, self._type_of(asset), condition.reason, check),
            level,
            asset,
            text,
            differs=differs,
            unblock=condition.unblock,
        )

    def _event(
        self, cause: Cause, level: Level, asset: AssetId, message: str, **fields: Any
    ) -> list[LogLine]:
        """The line of an event, if it is the first of its cause; otherwise it is counted."""
        shown = {"asset": asset, "type": cause.type, "reason": cause.reason, "check": cause.check, **fields}
        line = LogLine(
            self._clock.now(),
            level,
            cause.event,
            _cut(f"{asset} ({cause}): {message}"),
            {name: value for name, value in shown.items() if value != ""},
        )
        if cause not in self._tallies and len(self._tallies) >= _MOST_CAUSES:
            cause = Cause(cause.event)
        tally = self._tallies.get(cause)
        if tally is None:
            self._tallies[cause] = _Tally()
            return [line]
        tally.count += 1
        tally.last = line
        return []


def _count(cause: Cause, tally: _Tally, began: float, now: float) -> LogLine:
    """The line of a cause at the end of a minute: of one event, that event."""
    last = tally.last
    assert last is not None
    if tally.count == 1:
        return last
    times = f"{tally.count:,} times since {iso(began)}"
    text = f"{cause.event} {times} ({cause}); last: {last.message}"
    return LogLine(now, last.level, cause.event, _cut(text), {**last.fields, "count": tally.count})


def _differs(decision: Decision | None) -> str:
    """What differs, without values: they belong to `lehr why`, which shows more than a log should keep."""
    return "" if decision is None or decision.diff is None else decision.diff.summary()


def _cut(text: str) -> str:
    return writable(text, _MOST_CHARACTERS)


def _rollout(item: Evidence) -> LogLine | None:
    words = in_words(item.fact)
    if not words:
        return None
    bad = isinstance(item.fact, Failed | WentBack)
    fields = {"policy": item.policy, "rollout": item.rollout}
    level = Level.WARNING if bad else Level.INFO
    return LogLine(item.at, level, "rollout", _cut(f"{item.policy} {words}"), fields)
