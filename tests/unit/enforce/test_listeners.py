"""Who wants to hear of whom."""

from __future__ import annotations

from lehr.enforce.listeners import Listeners


def test_listeners_hear_of_their_subjects_until_they_leave() -> None:
    waiting: Listeners[str, str] = Listeners()
    waiting.join("b", ["x", "y"])
    waiting.join("a", ["x"])
    assert waiting.of("x") == ["a", "b"]
    assert waiting.of("y") == ["b"]
    waiting.leave("b", ["x", "never joined"])
    assert waiting.of("x") == ["a"]
    assert waiting.of("y") == ["b"]


def test_joining_twice_is_hearing_once() -> None:
    waiting: Listeners[str, str] = Listeners()
    waiting.join("a", ["x"])
    waiting.join("a", ["x"])
    assert waiting.of("x") == ["a"]
    waiting.leave("a", ["x"])
    assert waiting.of("x") == []


def test_subjects_that_nobody_listens_to_are_forgotten() -> None:
    waiting: Listeners[int, int] = Listeners()
    for number in range(1000):
        waiting.join(1, [number])
        waiting.leave(1, [number])
    assert not waiting._listeners
