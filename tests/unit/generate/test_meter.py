"""How much of its limits a fork may use, call by call and in all."""

from __future__ import annotations

from lehr.generate.outcome.protocol import SandboxLimits
from lehr.generate.sandbox.meter import GRACE_SECONDS, Meter, Overrun

LIMITS = SandboxLimits(cpu_seconds=10, wall_seconds=30.0, calls=1000)


def ended_at(meter: Meter, processor: float, every: float, size: int = 10) -> tuple[Overrun, float]:
    """How and when a fork ends that answers `every` so many seconds, on `processor` processors."""
    at = 0.0
    while True:
        at += every
        for found in (meter.look(at, at * processor), meter.answer(size, at)):
            if found:
                return found, at


def test_one_call_has_its_own_time() -> None:
    for processor, every, expected in ((1.0, 13.0, Overrun.PROCESSOR), (0.1, 31.0, Overrun.TIME)):
        assert ended_at(Meter(LIMITS), processor, every) == (expected, every)
    assert Meter(LIMITS).look(29.0, 10.0 + GRACE_SECONDS) is Overrun.NOTHING


def test_a_frame_every_five_seconds_does_not_buy_time_without_end() -> None:
    found, at = ended_at(Meter(LIMITS), 1.0, 5.0)
    assert found is Overrun.PROCESSOR_IN_ALL
    assert at <= 20.0
    found, at = ended_at(Meter(LIMITS), 0.0, 5.0)
    assert found is Overrun.TIME_IN_ALL
    assert at <= 40.0


def test_who_answers_at_a_good_pace_may_go_on_for_long() -> None:
    meter = Meter(LIMITS)
    for call in range(1, 1001):
        assert meter.look(call * 0.09, call * 0.09) is Overrun.NOTHING
        assert meter.answer(100, call * 0.09) is Overrun.NOTHING
    assert meter.answer(100, 90.0) is Overrun.ANSWERS


def test_what_is_read_and_yielded_earns_time() -> None:
    limits = SandboxLimits(cpu_seconds=10, wall_seconds=30.0, given_bytes=5_000_000)
    assert limits.cpu_seconds_in_all(1, 10_000_000) == 10 + 0.1 + 2 * 15
    assert limits.wall_seconds_in_all(1, 10_000_000) == 3 * limits.cpu_seconds_in_all(1, 10_000_000)


def test_after_the_last_answer_a_fork_has_to_end() -> None:
    meter = Meter(SandboxLimits(cpu_seconds=10, wall_seconds=30.0))
    assert meter.answer(10, 1.0) is Overrun.NOTHING
    assert meter.look(1.0, 1.0) is Overrun.NOTHING
    assert meter.look(30.0, 1.0) is Overrun.NOTHING
    assert meter.look(31.0, 1.0) is Overrun.TIME
