"""Places: bounded, in order, and none is lost when those who wait are cancelled."""

from __future__ import annotations

import asyncio

from lehr.enforce.places import Places
from lehr.testing.virtual import run


async def _waiting(places: Places, got: list[str], name: str) -> None:
    await places.wait()
    got.append(name)


async def _come(places: Places, got: list[str]) -> list[asyncio.Future[None]]:
    """First a, then b."""
    came: list[asyncio.Future[None]] = []
    for name in "ab":
        came.append(asyncio.ensure_future(_waiting(places, got, name)))
        await _settle()
    return came


async def _settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_as_many_are_taken_as_there_are() -> None:
    places = Places(2)
    assert [places.take() for _ in range(3)] == [True, True, False]
    places.give_back()
    assert places.take()


def test_those_who_wait_get_theirs_in_order_and_before_newcomers() -> None:
    async def main() -> None:
        places, got = Places(1), list[str]()
        assert places.take()
        first, second = await _come(places, got)
        assert got == []
        places.give_back()
        assert not places.take(), "it belongs to the one who has waited longest"
        await _settle()
        assert got == ["a"]
        places.give_back()
        await asyncio.gather(first, second)
        assert got == ["a", "b"]
        assert places.free == 0

    run(main, seed=1)


def test_one_who_no_longer_waits_is_passed_over() -> None:
    async def main() -> None:
        places, got = Places(1), list[str]()
        assert places.take()
        first, second = await _come(places, got)
        first.cancel()
        await _settle()
        places.give_back()
        await second
        assert got == ["b"]

    run(main, seed=1)


def test_a_place_handed_to_one_who_is_cancelled_at_that_moment_is_not_lost() -> None:
    async def main() -> None:
        places, got = Places(1), list[str]()
        assert places.take()
        first, second = await _come(places, got)
        places.give_back()
        first.cancel()
        await second
        assert got == ["b"]
        assert first.cancelled()
        places.give_back()
        assert places.free == 1

    run(main, seed=1)
