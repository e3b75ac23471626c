"""From cumulative counters to what happened between two looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lehr.canary.look import Look, ReplicaCounts, Sample


class _Part:
    """Counts of a replica since the last look, during its warm-up or after it."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts: dict[str, float] = {}
        self.seconds = 0.0

    def add(self, grown: Mapping[str, float], seconds: float) -> None:
        counts = self.counts
        for name, value in grown.items():
            counts[name] = counts.get(name, 0.0) + value
        self.seconds += seconds


class _Replica:
    """The last sample of a replica, and what it counted since the last look."""

    __slots__ = ("first", "last", "later", "values", "warmup")

    def __init__(self, sample: Sample) -> None:
        self.first = self.last = sample.time
        self.values = dict(sample.values)
        self.warmup, self.later = _Part(), _Part()

    def taken(self, group: str, name: str) -> Iterator[ReplicaCounts]:
        """The parts of a look."""
        if self.warmup.seconds:
            yield ReplicaCounts(group, name, self.warmup.seconds, self.warmup.counts, warmup=True)
            self.warmup = _Part()
        if self.later.seconds:
            yield ReplicaCounts(group, name, self.later.seconds, self.later.counts)
            self.later = _Part()


class LookRecorder:
    """Collects samples, and turns them into looks.

    A replica's first sample only shows where its counters begin. Intervals that begin during the warm-up are
    recorded apart; those that are longer than the longest gap do not count.
    """

    def __init__(self, warmup: float, longest_gap: float) -> None:
        self._warmup = warmup
        self._longest_gap = longest_gap
        self._replicas: dict[tuple[str, str], _Replica] = {}
        self._restarts = 0

    def add(self, sample: Sample) -> None:
        """Take a sample. One that is not later than its replica's last is ignored."""
        replica = self._replicas.get((sample.group, sample.replica))
        if replica is None:
            self._replicas[sample.group, sample.replica] = _Replica(sample)
            return
        seconds = sample.time - replica.last
        if seconds <= 0:
            return
        before, values = replica.values, sample.values
        grown = {name: value - before[name] for name, value in values.items() if name in before}
        if grown and min(grown.values()) < 0:
            self._restarts += 1
            grown = _since_restart(values, grown)
            before.clear()
        if seconds <= self._longest_gap:
            warm = replica.last >= replica.first + self._warmup
            (replica.later if warm else replica.warmup).add(grown, seconds)
        replica.last = sample.time
        before.update(values)

    def look(self, at: float) -> Look:
        """Take a look: everything that was counted since the previous one."""
        taken = [row for key, replica in self._replicas.items() for row in replica.taken(*key)]
        restarts, self._restarts = self._restarts, 0
        return Look(at, tuple(taken), restarts)


def _since_restart(values: Mapping[str, float], grown: Mapping[str, float]) -> dict[str, float]:
    """The growth of all counters of a replica, of which some went back to zero.

    They belong to one process, so the others have restarted as well, unless they are larger than any that
    did: errors that outnumber the requests since the restart are kept elsewhere.
    """
    most = max(values[name] for name, value in grown.items() if value < 0)
    counted = {name: value for name, value in values.items() if value <= most}
    return {**{name: value for name, value in grown.items() if value >= 0}, **counted}


def looks_of(samples: Iterable[Sample], every: float, warmup: float, longest_gap: float) -> Iterator[Look]:
    """The looks that a live judge would have had: at regular times after the first sample, and at the last.

    Args:
        samples: ordered by time.
        every: seconds between looks.
    """
    recorder = LookRecorder(warmup, longest_gap)
    begun: float | None = None
    number, last = 1, 0.0
    for sample in samples:
        if begun is None:
            begun = sample.time
        while sample.time > begun + number * every:
            yield recorder.look(begun + number * every)
            # Nothing happens while there are no samples: skip to the next.
            number = max(number + 1, int((sample.time - begun) // every))
        recorder.add(sample)
        last = sample.time
    if begun is not None:
        yield recorder.look(last)
