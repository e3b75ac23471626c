"""From cumulative counters to what happened between two looks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lehr.canary.look import Look, ReplicaCounts, Sample


class _Part:
    """Counts of a replica since the last look, all over the same time."""

    __slots__ = ("begin", "counts", "seconds")

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.counts: dict[str, float] = {}
        self.seconds = 0.0

    def add(self, grown: Mapping[str, float], seconds: float) -> None:
        counts = self.counts
        for name, value in grown.items():
            counts[name] = counts.get(name, 0.0) + value
        self.seconds += seconds


class _Replica:
    """The last sample of a replica, and what it counted since the last look.

    Attributes:
        parts: during its warm-up and after it, and for each set of counters that it had.
        counters: how often that set changed.
    """

    __slots__ = ("counters", "first", "last", "parts", "values")

    def __init__(self, sample: Sample) -> None:
        self.first = self.last = sample.time
        self.values = dict(sample.values)
        self.parts: dict[tuple[bool, int], _Part] = {}
        self.counters = 0

    def add(self, grown: Mapping[str, float], seconds: float, warmup: float) -> None:
        """Count an interval that begins at the last sample."""
        key = self.last < self.first + warmup, self.counters
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = _Part(self.last)
        part.add(grown, seconds)

    def begin(self, sample: Sample) -> None:
        """Count from this sample on."""
        self.counters += sample.values.keys() != self.values.keys()
        self.last = sample.time
        self.values = dict(sample.values)

    def taken(self, group: str, name: str) -> Iterator[ReplicaCounts]:
        """The parts of a look."""
        parts, self.parts = self.parts, {}
        for (warmup, _), part in parts.items():
            yield ReplicaCounts(group, name, part.seconds, part.counts, warmup, part.begin)


class LookRecorder:
    """Collects samples, and turns them into looks.

    A replica's first sample only shows where its counters begin. Intervals that begin during the warm-up are
    recorded apart; those that are longer than the longest gap do not count. Nor do those for which a counter
    is missing at one end: what the others counted would be compared with nothing. A sample without a counter
    that the replica had before is left out until that gap has passed.
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
        if seconds <= self._longest_gap:
            if not before.keys() <= values.keys():
                return
            if before.keys() == values.keys():
                replica.add(self._growth(before, values), seconds, self._warmup)
        replica.begin(sample)

    def _growth(self, before: Mapping[str, float], values: Mapping[str, float]) -> Mapping[str, float]:
        grown = {name: value - before[name] for name, value in values.items()}
        if grown and min(grown.values()) < 0:
            self._restarts += 1
            return _since_restart(values, grown)
        return grown

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


def looks_of(
    samples: Iterable[Sample],
    every: float,
    warmup: float,
    longest_gap: float,
    pushed_at: float | None = None,
) -> Iterator[Look]:
    """The looks that a live judge would have had: at regular times after the push, and at the last sample.

    Args:
        samples: ordered by time.
        every: seconds between looks.
        pushed_at: when the canary got its version; None for the first sample. Older ones do not count.
    """
    recorder = LookRecorder(warmup, longest_gap)
    begun = pushed_at
    number, last = 1, pushed_at
    for sample in samples:
        if pushed_at is not None and sample.time < pushed_at:
            continue
        last = sample.time
        if begun is None:
            begun = sample.time
        while sample.time > begun + number * every:
            yield recorder.look(begun + number * every)
            # Nothing happens while there are no samples: skip to the next.
            number = max(number + 1, int((sample.time - begun) // every))
        recorder.add(sample)
    if last is not None:
        yield recorder.look(last)
