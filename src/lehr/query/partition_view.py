"""One partition of a store, read at one moment."""

from __future__ import annotations

from collections.abc import Callable

from lehr.base.errors import LehrError
from lehr.base.moments import seconds_of
from lehr.model.asset import Partition
from lehr.model.incarnation import Incarnation
from lehr.sdk.store import Records, Store, StoredIntent

Inert = Callable[[str], bool]
"""Whether assets of a type have no production. Only called when needed."""

_LONGEST = 40
"""Maximum number of digits of an incarnation number."""


class NoIncarnationError(LehrError):
    """The request is valid, but the incarnation does not exist."""


class Reading:
    """The input of queries.

    Attributes:
        now: wall-clock seconds; ages count from it, and it decides which controls are active.
        inert: see `Inert`. The first call may be slow, because it imports all types.
    """

    def __init__(self, store: Store, partition: Partition, now: float, inert: Inert) -> None:
        self.store = store
        self.partition = partition
        self.now = now
        self.inert = inert

    @property
    def intent(self) -> StoredIntent:
        return self.store.intent

    @property
    def records(self) -> Records:
        return self.store.records

    def newest(self) -> Incarnation | None:
        """The newest incarnation; None before the first."""
        return self.intent.newest(self.partition)

    def incarnation(self, text: str) -> Incarnation:
        """The incarnation that `text` names: `3`, `hello@3`, `latest`, `previous`, or a time in ISO 8601.

        A time (`2026-01-31T12:00Z`; without a zone, in UTC) names the newest incarnation at that time.

        Raises:
            NoIncarnationError: it does not exist.
            PrunedError: it can no longer be read.
            LehrError: the name is not valid.
        """
        newest = self.newest()
        if newest is None:
            raise NoIncarnationError(
                f"partition {self.partition} has no incarnation yet",
                code="QRY108",
                fix="`lehr status` shows the result of the last attempt to publish",
            )
        sequence = self._sequence(text, newest.sequence)
        known = 0 < sequence <= newest.sequence
        found = self.intent.incarnation(self.partition, sequence) if known else None
        if found is None:
            raise NoIncarnationError(
                f"there is no incarnation {self.partition}@{str(sequence)[:_LONGEST]}",
                code="QRY109",
                why=f"the newest is {newest.sequence}",
                fix="see `lehr get incarnations`",
            )
        self.intent.require_kept(self.partition, sequence)
        return found

    def _sequence(self, text: str, newest: int) -> int:
        name, marked, number = text.rpartition("@")
        if marked and name != self.partition:
            fix = f"write {self.partition}@{number}"
            raise NoIncarnationError(
                f"{text} does not belong to partition {self.partition}", code="QRY110", fix=fix
            )
        if number == "latest":
            return newest
        if number == "previous":
            return newest - 1
        if number.isascii() and number.isdecimal():
            return int(number[:_LONGEST])
        moment = _moment(number)
        if moment is not None:
            return self._as_of(moment)
        raise LehrError(
            f"{text[:80]!r} is not a valid name of an incarnation",
            code="QRY111",
            fix=f"write 3, {self.partition}@3, latest, previous, or a time such as 2026-01-31T12:00Z",
        )

    def in_force(self, moment: float) -> int:
        """Sequence of the newest incarnation at a time (wall-clock seconds), also a pruned one; 0: none."""
        newest = self.newest()
        low, high = 0, 0 if newest is None else newest.sequence
        while low < high:
            middle = (low + high + 1) // 2
            header = self.intent.incarnation(self.partition, middle)
            if header is not None and header.created_at <= moment:
                low = middle
            else:
                high = middle - 1
        return low

    def _as_of(self, moment: float) -> int:
        low = self.in_force(moment)
        if not low:
            raise NoIncarnationError(
                f"{self.partition} had no incarnation at that time yet",
                code="QRY112",
                fix="name a later time",
            )
        return low


def choose_partition(known: list[Partition], wanted: str | None) -> Partition:
    """The `wanted` partition, or the only one.

    Raises:
        LehrError: there is no such partition, or several to choose from.
    """
    if wanted is not None:
        if wanted not in known:
            names = ", ".join(known) or "none"
            raise LehrError(
                f"there is no partition {wanted}", code="QRY113", why=f"known partitions: {names}"
            )
        return Partition(wanted)
    if not known:
        raise LehrError(
            "nothing published yet",
            code="QRY114",
            why="the state has no partition",
            fix="check the output of `lehr run`, or run `lehr validate`",
        )
    if len(known) > 1:
        raise LehrError(
            "the partition is ambiguous",
            code="QRY115",
            why=f"the state has partitions {', '.join(known)}",
            fix="name one with --partition",
        )
    return known[0]


def _moment(text: str) -> float | None:
    """Wall-clock seconds of a time in ISO 8601; None if it is not valid."""
    try:
        return seconds_of(text)
    except (ValueError, OverflowError):
        return None
