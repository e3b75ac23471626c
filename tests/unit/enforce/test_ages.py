"""Ages grow with monotonic time from when a date is first seen."""

from __future__ import annotations

from lehr.enforce.ages import Ages
from lehr.testing.virtual import VirtualClock, run

DAY = 86_400.0


def test_a_clock_that_jumps_makes_nothing_older_or_younger() -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        ages = Ages(clock)
        at = clock.now() - 100.0
        assert clock.now() - ages.since("fenced", at) == 100.0
        for jump in (2 * DAY, -4 * DAY):
            clock.jump(jump)
            assert round(clock.now() - ages.since("fenced", at), 3) == 100.0
        await clock.sleep(50.0)
        assert round(clock.now() - ages.since("fenced", at), 3) == 150.0

    run(scenario, seed=1)


def test_a_date_that_lies_ahead_begins_when_it_is_first_seen() -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        ages = Ages(clock)
        at = clock.now() + 2 * DAY
        assert ages.since("fenced", at) == clock.now()
        await clock.sleep(50.0)
        assert clock.now() - ages.since("fenced", at) == 50.0

    run(scenario, seed=1)


def test_another_date_is_another_beginning() -> None:
    async def scenario() -> None:
        clock = VirtualClock()
        ages = Ages(clock)
        first = clock.now()
        assert ages.since("fenced", first) == first
        assert ages.since("asked for", first - 10.0) == first - 10.0
        await clock.sleep(50.0)
        assert ages.since("fenced", first + 40.0) == first + 40.0

    run(scenario, seed=1)
