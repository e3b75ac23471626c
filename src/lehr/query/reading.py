"""One partition of a store, read at one moment."""

from __future__ import annotations

from collections.abc import Callable

from lehr.base.errors import LehrError
from lehr.model.asset import Partition
from lehr.model.incarnation import Incarnation
from lehr.store import Records, Store, StoredIntent

Inert = Callable[[str], bool]
"""Whether assets of a type have no production. Asked only when needed."""


class Reading:
    """What queries look at.

    Attributes:
        now: wall-clock seconds; ages are counted from it, and controls stand or do not stand at it.
        inert: see `Inert`. It may be slow at the first call: knowing all types means to import them.
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
        """The incarnation that `text` names: `3`, `hello@3`, `latest` or `previous`.

        Raises:
            LehrError: there is none, it was pruned, or the name cannot be understood.
        """
        newest = self.newest()
        if newest is None:
            raise LehrError(
                f"partition {self.partition} has no incarnation yet",
                fix="see `lehr status` for what became of the last attempt to publish",
            )
        sequence = _sequence(text, self.partition, newest.sequence)
        found = self.intent.incarnation(self.partition, sequence)
        if found is None:
            raise LehrError(
                f"there is no incarnation {self.partition}@{sequence}",
                why=f"they go from 1 to {newest.sequence}",
                fix="see `lehr get incarnations`",
            )
        self.intent.require_kept(self.partition, sequence)
        return found


def choose_partition(known: list[Partition], wanted: str | None) -> Partition:
    """The partition that is meant: the one that is `wanted`, or the only one there is.

    Raises:
        LehrError: there is no such partition, or several to choose from.
    """
    if wanted is not None:
        if wanted not in known:
            names = ", ".join(known) or "none"
            raise LehrError(f"there is no partition {wanted}", why=f"known partitions: {names}")
        return Partition(wanted)
    if not known:
        raise LehrError(
            "nothing was published yet",
            why="the state has no partition",
            fix="see what `lehr run` says, or try `lehr validate`",
        )
    if len(known) > 1:
        raise LehrError(
            "it is not clear which partition is meant",
            why=f"the state has {', '.join(known)}",
            fix="name one with --partition",
        )
    return known[0]


def _sequence(text: str, partition: Partition, newest: int) -> int:
    name, marked, number = text.rpartition("@")
    if marked and name != partition:
        raise LehrError(f"{text} is not of partition {partition}", fix=f"write {partition}@{number}")
    if number == "latest":
        return newest
    if number == "previous":
        return newest - 1
    if number.isdecimal():
        return int(number)
    raise LehrError(f"{text!r} names no incarnation", fix=f"write 3, {partition}@3, latest or previous")
