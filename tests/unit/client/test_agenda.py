"""What is due when."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from lehr.client.agenda import Agenda
from lehr.testing.virtual import VirtualClock, run

times = st.integers(0, 20).map(float)
changes = st.lists(st.tuples(st.sampled_from("abcde"), times | st.none()), max_size=60)


def test_items_come_in_the_order_of_their_times() -> None:
    agenda: Agenda[str] = Agenda()
    for item, due in (("b", 2.0), ("c", 3.0), ("a", 1.0)):
        agenda.set(item, due)
    assert agenda.next_due() == 1.0
    assert list(agenda.pop(2.0)) == ["a", "b"]
    assert agenda.next_due() == 3.0


def test_nothing_is_due_before_its_time() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.set("a", 2.0)
    assert list(agenda.pop(1.9)) == []
    assert list(agenda.pop(2.0)) == ["a"]
    assert agenda.next_due() is None


def test_equal_times_go_first_in_first_out() -> None:
    agenda: Agenda[str] = Agenda()
    for item in "cab":
        agenda.set(item, 1.0)
    assert list(agenda.pop(1.0)) == ["c", "a", "b"]


def test_another_time_forgets_the_first_also_when_it_is_later() -> None:
    agenda: Agenda[str] = Agenda()
    agenda.set("a", 1.0)
    agenda.set("a", 5.0)
    assert list(agenda.pop(4.0)) == []
    agenda.set("a", 2.0)
    assert list(agenda.pop(9.0)) == ["a"]
    assert list(agenda.pop(9.0)) == [], "it is due once"


@given(changes)
def test_it_agrees_with_a_dictionary(made: list[tuple[str, float | None]]) -> None:
    agenda: Agenda[str] = Agenda()
    expected: dict[str, float] = {}
    for item, due in made:
        if due is None:
            agenda.discard(item)
            expected.pop(item, None)
        else:
            agenda.set(item, due)
            expected[item] = due
        assert agenda.next_due() == min(expected.values(), default=None)
    assert sorted(agenda.pop(10.0)) == sorted(item for item, due in expected.items() if due <= 10.0)
    assert agenda.next_due() == min((due for due in expected.values() if due > 10.0), default=None)


def test_times_that_are_set_again_and_again_do_not_pile_up() -> None:
    agenda: Agenda[str] = Agenda()
    for number in range(20_000):
        agenda.set("a", float(number))
    assert len(agenda._at) < 5000
    assert list(agenda.pop(1e9)) == ["a"]


def test_who_waits_is_woken_by_what_is_set_meanwhile_and_by_nothing_that_was_taken_back() -> None:
    async def main() -> list[tuple[list[str], float]]:
        agenda: Agenda[str] = Agenda()
        clock, seen = VirtualClock(), list[tuple[list[str], float]]()

        async def wait() -> None:
            while len(seen) < 3:
                seen.append((await agenda.wait(clock), clock.monotonic()))

        waiting = asyncio.create_task(wait())
        await clock.sleep(1.0)
        agenda.set("late", 50.0)
        await clock.sleep(1.0)
        agenda.set("soon", 10.0)
        agenda.set("never", 5.0)
        await clock.sleep(1.0)
        agenda.discard("never")
        agenda.set("between", 7.0)
        await waiting
        return seen

    assert run(main, seed=1) == [(["between"], 7.0), (["soon"], 10.0), (["late"], 50.0)]


def test_of_very_many_that_are_due_together_some_are_taken_at_once_and_none_is_lost() -> None:
    async def main() -> list[int]:
        agenda: Agenda[int] = Agenda()
        for item in range(2500):
            agenda.set(item, 1.0)
        clock = VirtualClock()
        taken = [await agenda.wait(clock) for _ in range(3)]
        assert [len(items) for items in taken] == [1000, 1000, 500]
        return [item for items in taken for item in items]

    assert run(main, seed=1) == list(range(2500))
