"""What is due when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lehr.enforce.agenda import Agenda

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
    assert len(agenda._heap) < 5000
    assert list(agenda.pop(1e9)) == ["a"]
