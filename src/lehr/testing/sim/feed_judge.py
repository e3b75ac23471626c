"""Whether the feed has every change once, in the order of the commits, and decisions can be made again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lehr.base.errors import LehrError
from lehr.enforce.turn_inputs import decide_again
from lehr.model.asset import Partition
from lehr.model.feed import ChangeKind, FeedEntry
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Result
from lehr.model.writes import (
    Admit,
    Finish,
    LiftControl,
    Prune,
    Publish,
    RecordDecision,
    Reschedule,
    SetControl,
    Write,
    WriteReleases,
)
from lehr.sdk.store import Records
from lehr.sdk.watch import FeedGoneError

_Named = tuple[ChangeKind, str, str]
"""Kind, asset and record of a change; the number of a decision is left out."""


class FeedJudge:
    """A reader of the feed that knows what was written. Reports what breaks I12: nothing written is lost.

    Attributes:
        replayed: decisions that were decided again.
    """

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        """`broken` is called with the rule and what breaks it."""
        self._broken = broken
        self.replayed = 0
        self._position = 0
        self._decision = 0
        self._open: dict[str, str] = {}  # the asset of each open operation
        self._releases: dict[str, str] = {}  # and of each release that was not withdrawn

    def committed(
        self, partition: Partition, records: Records, writes: Sequence[Write], answers: Sequence[Any]
    ) -> None:
        """These writes have become durable, and `records` shows them."""
        expected = [
            change
            for write, answer in zip(writes, answers, strict=True)
            for change in self._changes(write, answer)
        ]
        try:
            found = records.feed(partition, self._position)
        except LehrError as error:
            self._broken("I12", f"the feed cannot be read after {self._position}: {error}")
            return
        changes = [self._named(item, change) for item in found for change in item.changes]
        for item in found:
            self._decided_again(partition, records, item)
        if changes != expected or len(found) != bool(expected):
            self._broken("I12", f"the feed has {changes} in {len(found)} entries, and not {expected}")
        self._position += len(found)
        if any(isinstance(write, Prune) for write in writes):
            self._begins(records, partition)

    def _named(self, entry: FeedEntry, change: Any) -> _Named:
        self._position_follows(entry)
        if change.kind is not ChangeKind.DECISION:
            return change.kind, change.asset, change.record
        if int(change.record) <= self._decision:
            self._broken("I12", f"decision {change.record} follows {self._decision} in the feed")
        self._decision = int(change.record)
        return change.kind, change.asset, ""

    def _decided_again(self, partition: Partition, records: Records, entry: FeedEntry) -> None:
        """I8: each decision can be explained by running `step` again on what was recorded with it."""
        for change in entry.changes:
            if change.kind is not ChangeKind.DECISION:
                continue
            recorded = records.decision(partition, int(change.record))
            if recorded is None or not recorded[1]:
                self._broken("I8", f"decision {change.record} on {change.asset} has no inputs")
                continue
            decision, inputs = recorded
            again = decide_again(decision, inputs)
            self.replayed += 1
            if again != decision:
                self._broken("I8", f"{decision} is decided as {again} from its inputs")

    def _position_follows(self, entry: FeedEntry) -> None:
        if entry.position != self._position + 1:
            self._broken("I12", f"entry {entry.position} of the feed follows {self._position}")

    def _begins(self, records: Records, partition: Partition) -> None:
        """A reader from the beginning gets all entries, or an error."""
        try:
            first = records.feed(partition, 0, 1)
        except FeedGoneError:
            return
        if [item.position for item in first] != [1][: self._position]:
            self._broken("I12", "the beginning of the feed was pruned, and readers get no error")

    def _changes(self, write: Write, answer: object) -> Iterator[_Named]:
        match write:
            case Publish() if isinstance(answer, Incarnation):
                yield ChangeKind.INCARNATION, "", str(answer.sequence)
            case Admit() if answer is None:
                self._open[write.operation.id] = write.operation.asset
                yield ChangeKind.OPERATION_STARTED, write.operation.asset, write.operation.id
                if write.decision is not None:
                    yield ChangeKind.DECISION, write.decision.asset, ""
            case Finish() if answer is None and write.operation in self._open:
                yield from self._ended(write)
            case RecordDecision():
                yield ChangeKind.DECISION, write.decision.asset, ""
            case Reschedule():
                yield ChangeKind.RESCHEDULED, write.key.id, ""
            case SetControl() if answer is None:
                yield ChangeKind.CONTROL_SET, "", write.control.id
            case WriteReleases() if answer is None:
                yield from self._released(write)
            case LiftControl() if answer:
                yield ChangeKind.CONTROL_LIFTED, "", write.id

    def _released(self, write: WriteReleases) -> Iterator[_Named]:
        for id in write.withdrawn:
            asset = self._releases.pop(id, None)
            if asset is not None:
                yield ChangeKind.RELEASE_WITHDRAWN, asset, id
        for release in write.releases:
            self._releases[release.id] = release.asset
            yield ChangeKind.RELEASED, release.asset, release.id
        for item in write.evidence:
            yield ChangeKind.ROLLOUT, item.policy, item.rollout

    def _ended(self, write: Finish) -> Iterator[_Named]:
        asset = self._open[write.operation]
        if write.outcome.result is Result.UNKNOWN:
            yield ChangeKind.OPERATION_UNKNOWN, asset, write.operation
        else:
            del self._open[write.operation]
            yield ChangeKind.OPERATION_ENDED, asset, write.operation
