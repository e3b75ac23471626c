"""The smallest set that is enough: found by trying, smaller ones first."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from lehr.dry_run.smallest_set import MOST, MOST_QUESTIONS, Search, smallest_set


def search(things: str, *enough: str, most: int = MOST, questions: int = MOST_QUESTIONS) -> Search[str]:
    """Search `things` for the first of the sets in `enough`."""
    sets = [frozenset(item) for item in enough]

    async def is_enough(chosen: tuple[str, ...]) -> bool:
        return frozenset(chosen) in sets

    return asyncio.run(smallest_set(things, is_enough, most=most, questions=questions))


def test_nothing_may_be_enough() -> None:
    assert search("ab", "") == Search((), complete=True)
    assert search("", "") == Search((), complete=True)


def test_a_smaller_set_is_found_before_a_larger_one() -> None:
    assert search("abc", "ab", "c") == Search(("c",), complete=True)


def test_earlier_things_are_found_before_later_ones() -> None:
    assert search("abc", "bc", "ac") == Search(("a", "c"), complete=True)


def test_a_thing_that_is_harmful_with_another_is_found_alone() -> None:
    # `ab` is not enough, although `a` is.
    assert search("ab", "a") == Search(("a",), complete=True)


def test_a_larger_set_is_not_looked_for() -> None:
    assert search("abcde", "abcde") == Search(None, complete=True)
    assert search("abcde", "abcd") == Search(tuple("abcd"), complete=True)
    assert search("abc", "abc", most=2) == Search(None, complete=True)


def test_the_search_ends_after_so_many_questions() -> None:
    assert search("abcdefgh", "efgh") == Search(None, complete=False)
    assert search("ab", "ab", questions=3) == Search(None, complete=False)
    assert search("ab", "ab", questions=4) == Search(("a", "b"), complete=True)


def test_with_six_things_every_set_is_asked_about() -> None:
    assert search("abcdef", "cdef") == Search(tuple("cdef"), complete=True)
    assert search("abcdef") == Search(None, complete=True)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_found_is_the_smallest(seed: int) -> None:
    draw = random.Random(seed)
    things = "abcdef"
    every = ["".join(some) for size in range(5) for some in itertools.combinations(things, size)]
    enough = draw.sample(every, draw.randrange(4))
    found = search(things, *enough).found
    assert (found is None) is (not enough)
    if found is not None:
        assert len(found) == min(map(len, enough))
        assert "".join(found) in enough
