"""Turns: urgent ones first, and nobody for ever last."""

from __future__ import annotations

import pytest

from lehr.client.turns import TurnQueue


def test_turns_of_a_class_are_taken_first_in_first_out() -> None:
    queue: TurnQueue[int] = TurnQueue()
    for item in range(5):
        queue.add(item, urgent=False)
    assert [queue.take() for _ in range(5)] == [0, 1, 2, 3, 4]
    assert not queue


def test_urgent_turns_go_first() -> None:
    queue: TurnQueue[str] = TurnQueue()
    queue.add("routine", urgent=False)
    queue.add("urgent", urgent=True)
    assert [queue.take(), queue.take()] == ["urgent", "routine"]


def test_neither_class_starves_while_the_other_never_ends() -> None:
    queue: TurnQueue[int] = TurnQueue()
    for number in range(100):
        queue.add(number, urgent=True)
        queue.add(-number - 1, urgent=False)
    taken = [queue.take() for _ in range(80)]
    routine = [place for place, item in enumerate(taken) if item < 0]
    assert len(routine) == 10
    assert routine[0] < 8


def test_a_routine_turn_that_becomes_urgent_goes_first_and_is_taken_once() -> None:
    queue: TurnQueue[int] = TurnQueue()
    for item in range(4):
        queue.add(item, urgent=False)
    queue.add(9, urgent=True)
    queue.hasten(2)
    assert len(queue) == 5
    assert [queue.take() for _ in range(5)] == [9, 2, 0, 1, 3]
    assert not queue


def test_a_turn_that_has_moved_up_may_be_queued_again_behind_all_others() -> None:
    queue: TurnQueue[int] = TurnQueue()
    for item in range(4):
        queue.add(item, urgent=False)
    for _ in range(2):
        queue.hasten(2)
        assert queue.take() == 2
        queue.add(2, urgent=False)
    assert len(queue) == 4
    assert [queue.take() for _ in range(4)] == [0, 1, 3, 2]
    assert not queue


def test_turns_that_have_all_moved_up_leave_nothing_behind() -> None:
    queue: TurnQueue[int] = TurnQueue()
    for item in range(20):
        queue.add(item, urgent=False)
    for item in range(20):
        queue.hasten(item)
    assert list(queue) == list(range(20))
    assert [queue.take() for _ in range(len(queue))] == list(range(20))
    with pytest.raises(IndexError):
        queue.take()


def test_an_empty_queue_gives_nothing() -> None:
    queue: TurnQueue[int] = TurnQueue()
    with pytest.raises(IndexError):
        queue.take()


# --- turns -------------------------------------------------------------------
