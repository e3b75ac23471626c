"""From cumulative counters to what happened between two looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lehr.canary.look import Look, ReplicaCounts, Sample


class _Replica:
    """The last sample of a replica, and what it counted since the last look."""

    __slots__ = ("counts", "first", "last", "seconds", "values")

    def __init__(self, sample: Sample) -> None:
        self.first = self.last = sample.time
        self.values = dict(sample.values)
        self.counts: dict[str, float] = {}
        self.seconds = 0.0


class LookRecorder:
    """Collects samples, and turns them into looks.

    A replica's first sample only shows where its counters begin. Intervals that begin during the warm-up, or
    that are longer than the longest gap, do not count.
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
            # The counters of a replica belong to one process, so they restart together.
            self._restarts += 1
            grown = dict(values)
            before.clear()
        if replica.last >= replica.first + self._warmup and seconds <= self._longest_gap:
            counts = replica.counts
            for name, value in grown.items():
                counts[name] = counts.get(name, 0.0) + value
            replica.seconds += seconds
        replica.last = sample.time
        before.update(values)

    def look(self, at: float) -> Look:
        """Take a look: everything that was counted since the previous one."""
        taken = []
        for (group, name), replica in self._replicas.items():
            if replica.seconds:
                taken.append(ReplicaCounts(group, name, replica.seconds, replica.counts))
                replica.counts, replica.seconds = {}, 0.0
        restarts, self._restarts = self._restarts, 0
        return Look(at, tuple(taken), restarts)


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
