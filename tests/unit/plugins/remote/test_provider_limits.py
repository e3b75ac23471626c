"""Comparisons of a provider start at its rate and within its concurrency, and delay no other provider."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from lehr.base.errors import WaitingError
from lehr.model.asset import AssetId
from lehr.model.provider import Provider
from lehr.plugins.remote.limits import ROOM, Bucket, Gate, ProviderLimits
from lehr.sdk.provider import ConfiguredProvider
from lehr.testing.virtual import VirtualClock, run

SHARE = 1000


def provider(id: str = "accounts/a", **limits: Any) -> ConfiguredProvider:
    return ConfiguredProvider(AssetId(id), Provider(plugin="lines", **limits))


def gate(clock: VirtualClock, **limits: Any) -> Gate:
    found = ProviderLimits(clock).gate(provider(**limits), 1)
    assert found is not None
    return found


def played(story: Callable[[VirtualClock], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        return await story(VirtualClock())

    return run(main, seed=1)


async def compare(place: Gate, clock: VirtualClock, seconds: float, starts: list[float]) -> None:
    async with place.passed(SHARE):
        starts.append(clock.monotonic())
        await clock.sleep(seconds)


# --- the bucket ------------------------------------------------------------------------


def starts_of(rate: float, calls: int, now: float = 100.0) -> list[float]:
    bucket, found = Bucket(), []
    for _ in range(calls):
        now += bucket.wait(rate, now)
        bucket.take(rate, now)
        found.append(round(now - 100.0, 6))
    return found


def test_one_second_of_calls_start_at_once_and_then_one_after_the_other() -> None:
    assert starts_of(4, 7) == [0, 0, 0, 0, 0.25, 0.5, 0.75]


def test_a_rate_below_one_has_no_burst() -> None:
    assert starts_of(0.5, 3) == [0, 2, 4]


def test_a_bucket_that_rested_is_full_and_not_fuller() -> None:
    bucket = Bucket()
    for now in (0.0, 50.0):
        for _ in range(3):
            assert bucket.wait(3, now) == 0
            bucket.take(3, now)
        assert bucket.wait(3, now) == pytest.approx(1 / 3)


def test_debt_makes_later_calls_wait() -> None:
    bucket = Bucket()
    for _ in range(5):
        bucket.take(1, 10.0)
    assert bucket.wait(1, 10.0) == pytest.approx(5)
    assert bucket.wait(1, 10.0, ahead=2) == pytest.approx(7)


def test_those_ahead_count_although_the_bucket_is_full() -> None:
    assert Bucket().wait(2, 1000.0, ahead=5) == pytest.approx(2)  # two start at once, three follow


# --- the gate --------------------------------------------------------------------------


def test_no_more_run_than_the_concurrency_allows_in_the_order_of_their_arrival() -> None:
    async def story(clock: VirtualClock) -> list[float]:
        place, starts, began = gate(clock, concurrency=2), list[float](), clock.monotonic()
        await asyncio.gather(*(compare(place, clock, 10.0, starts) for _ in range(5)))
        assert place.under_way == place.waiting == 0
        return [start - began for start in starts]

    assert played(story) == [0, 0, 10, 10, 20]


def test_comparisons_that_waited_for_a_place_do_not_start_faster_than_the_rate() -> None:
    """Tokens are taken when a comparison starts. Those of a slow time are not saved up."""

    async def story(clock: VirtualClock) -> list[float]:
        place, starts, began = gate(clock, concurrency=4, rate=1.0), list[float](), clock.monotonic()
        slow = [asyncio.ensure_future(compare(place, clock, 20.0, starts)) for _ in range(4)]
        await clock.sleep(0.5)
        fast = [asyncio.ensure_future(compare(place, clock, 0.0, starts)) for _ in range(4)]
        await asyncio.gather(*slow, *fast)
        return [start - began for start in starts]

    assert played(story) == [0, 1, 2, 3, 20, 21, 22, 23]


def test_a_push_never_waits_and_is_paid_for_by_later_comparisons() -> None:
    async def story(clock: VirtualClock) -> list[float]:
        place, starts, began = gate(clock, rate=1.0), list[float](), clock.monotonic()
        await compare(place, clock, 0.0, starts)
        place.charge()
        place.charge()
        await compare(place, clock, 0.0, starts)
        return [start - began for start in starts]

    assert played(story) == [0, 3]


@pytest.mark.parametrize("limits", [{"concurrency": 1}, {"rate": 0.1}, {"concurrency": 1, "rate": 0.1}])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_comparison_that_is_cancelled_holds_nothing(limits: dict[str, Any], which: int) -> None:
    async def story(clock: VirtualClock) -> None:
        place, starts = gate(clock, **limits), list[float]()
        calls = []
        for _ in range(3):
            calls.append(asyncio.ensure_future(compare(place, clock, 5.0, starts)))
            await clock.sleep(0.5)
        calls[which].cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert place.under_way == place.waiting == 0
        # Only the first of them had started.
        assert len(starts) == (3 if which == 0 else 2)
        await clock.sleep(60.0)
        began = clock.monotonic()
        await compare(place, clock, 0.0, starts)
        assert clock.monotonic() == began

    played(story)


def test_a_failed_comparison_holds_nothing() -> None:
    async def story(clock: VirtualClock) -> None:
        place = gate(clock, concurrency=1)
        for _ in range(3):
            with pytest.raises(ValueError, match="broken"):
                async with place.passed(SHARE):
                    raise ValueError("broken")
        assert place.under_way == 0

    played(story)


def test_a_comparison_that_would_wait_too_long_gets_a_time_of_its_own_to_come_back() -> None:
    async def story(clock: VirtualClock) -> list[float]:
        place, times = gate(clock, rate=0.5), list[float]()
        waiting = [asyncio.ensure_future(compare(place, clock, 0.0, [])) for _ in range(31)]
        while place.waiting < 30:
            await clock.sleep(0)
        for _ in range(3):
            with pytest.raises(WaitingError, match="accounts/a is compared at most") as refused:
                await compare(place, clock, 0.0, [])
            times.append(round(refused.value.until - clock.now()))
        await asyncio.gather(*waiting)
        return times

    assert played(story) == [62, 64, 66]


def test_a_comparison_comes_back_when_no_place_becomes_free() -> None:
    async def story(clock: VirtualClock) -> None:
        place = gate(clock, concurrency=1)
        hanging = asyncio.ensure_future(compare(place, clock, 1000.0, []))
        while not place.under_way:
            await clock.sleep(0)
        with pytest.raises(WaitingError, match="accounts/a is busy") as refused:
            await compare(place, clock, 0.0, [])
        assert refused.value.until > clock.now()
        assert place.waiting == 0
        hanging.cancel()

    played(story)


def test_one_provider_leaves_places_to_wait_to_the_others() -> None:
    async def story(clock: VirtualClock) -> None:
        limits = ProviderLimits(clock)
        slow, other = (limits.gate(provider(id, concurrency=1), 1) for id in ("accounts/a", "accounts/b"))
        assert slow is not None
        assert other is not None
        assert limits.share == ROOM // 2
        crowd = [
            asyncio.ensure_future(_waits(slow, limits.share, clock)) for _ in range(limits.share + 1 + 5)
        ]
        await clock.sleep(1.0)
        refused = [call for call in crowd if call.done() and isinstance(call.exception(), WaitingError)]
        assert len(refused) == 5
        assert slow.waiting == limits.share
        began = clock.monotonic()
        async with other.passed(limits.share):
            assert clock.monotonic() == began
        for call in crowd:
            call.cancel()

    played(story)


async def _waits(place: Gate, share: int, clock: VirtualClock) -> None:
    async with place.passed(share):
        await clock.sleep(50.0)


def test_newer_limits_apply_and_older_ones_do_not_come_back() -> None:
    async def story(clock: VirtualClock) -> list[float]:
        limits, starts, began = ProviderLimits(clock), list[float](), clock.monotonic()
        place = limits.gate(provider(concurrency=1), 3)
        assert place is not None
        first = asyncio.ensure_future(compare(place, clock, 30.0, starts))
        second = asyncio.ensure_future(compare(place, clock, 30.0, starts))
        await clock.sleep(5.0)
        assert limits.gate(provider(concurrency=1), 2) is place  # of a pinned asset
        assert limits.gate(provider(concurrency=2), 4) is place
        assert limits.gate(provider(concurrency=1), 3) is place
        await asyncio.gather(first, second)
        return [start - began for start in starts]

    assert played(story) == [0, 5]


def test_a_provider_without_limits_has_no_gate() -> None:
    async def story(clock: VirtualClock) -> None:
        limits = ProviderLimits(clock)
        assert limits.gate(provider(), 1) is None
        assert limits.gate(provider(rate=1.0), 2) is not None
        lifted = limits.gate(provider(), 3)
        assert lifted is not None
        starts: list[float] = []
        await asyncio.gather(*(compare(lifted, clock, 1.0, starts) for _ in range(50)))
        assert len(set(starts)) == 1

    played(story)
