"""Target selection: waves proceed only on evidence, and every unit that is not updated has a reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lehr.rollouts import Selection, TargetSelection, Unit, Wave, select
from lehr.rollouts.units import count_of

NOW = 1000.0
CANARY = TargetSelection(waves=(Wave(units=1, soak_seconds=60.0), Wave()))
STAGES = TargetSelection(waves=(Wave(where={"stage": "dev"}), Wave(where={"stage": "prod"})))


def units(*ids: str, **fields: Any) -> list[Unit]:
    return [Unit(id=id, **fields) for id in ids]


def passed(unit: Unit, exposure: float = 3600.0) -> Unit:
    return replace(unit, updated_at=NOW - 10, validated_at=NOW - 5, exposure_seconds=exposure)


def finish(selection: TargetSelection, found: list[Unit]) -> tuple[list[tuple[str, ...]], Selection]:
    """Updates units as they are selected, and lets each pass; the steps, and the last answer."""
    steps: list[tuple[str, ...]] = []
    while (answer := select(selection, found, NOW)).update:
        steps.append(answer.update)
        found = [passed(unit) if unit.id in answer.update else unit for unit in found]
    return steps, answer


def test_by_default_all_units_are_updated_at_once() -> None:
    steps, answer = finish(TargetSelection(), units("b", "a"))
    assert steps == [("a", "b")]
    assert (answer.done, answer.hold, answer.wave) == (True, "", 0)


def test_one_goes_first_and_then_the_rest() -> None:
    assert finish(CANARY, units("a", "b", "c"))[0] == [("a",), ("b", "c")]


def test_waves_grow() -> None:
    growing = TargetSelection(waves=(Wave(units="1%"), Wave(units="10%"), Wave(units="50%"), Wave()))
    steps, answer = finish(growing, units(*(f"u{number:03}" for number in range(200))))
    assert [len(step) for step in steps] == [2, 18, 80, 100]
    assert answer.done


def test_stages_follow_their_labels() -> None:
    found = [*units("p", labels={"stage": "prod"}), *units("d", labels={"stage": "dev"})]
    assert finish(STAGES, found)[0] == [("d",), ("p",)]


def test_units_are_ordered_by_an_expression() -> None:
    one_by_one = TargetSelection(order="-labels.size.size()", at_most=1)
    found = [Unit(id=id, labels={"size": size}) for id, size in (("a", "x"), ("b", "xxx"), ("c", "xx"))]
    assert finish(one_by_one, found)[0] == [("b",), ("c",), ("a",)]


@pytest.mark.parametrize(
    ("order", "why"),
    [
        ("labels.size", "has no value for a"),
        ("[1]", "neither a number nor a text"),
        ("id == 'a' ? dyn(1) : dyn('x')", "a number for some units and a text for others"),
        ("id +", "1:5: it ends where more is expected"),
    ],
)
def test_an_order_without_an_answer_is_an_error(order: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        select(TargetSelection(order=order), units("a", "b"), NOW)


def test_a_wave_lasts_until_its_units_are_validated_and_soaked() -> None:
    first, *rest = units("a", "b")
    updated = replace(first, updated_at=NOW)
    answer = select(CANARY, [updated, *rest], NOW)
    assert (answer.update, answer.wave, answer.ask_again_at) == ((), 1, None)
    assert answer.others["b"] == "it is in wave 2, and wave 1 is under way"
    soaking = select(CANARY, [passed(first, 20.0), *rest], NOW)
    assert (soaking.update, soaking.ask_again_at) == ((), NOW + 40.0)
    assert select(CANARY, [passed(first, 60.0), *rest], NOW).update == ("b",)


def test_at_most_so_many_are_unvalidated() -> None:
    limited = TargetSelection(at_most="50%")
    found = units("a", "b", "c", "d")
    answer = select(limited, found, NOW)
    assert answer.update == ("a", "b")
    assert answer.others["c"] == "at most 50% may be updated and not validated at the same time"
    updated = [replace(unit, updated_at=NOW) if unit.id in "ab" else unit for unit in found]
    assert select(limited, updated, NOW).update == ()
    assert select(limited, [passed(updated[0]), *updated[1:]], NOW).update == ("c",)


def test_a_unit_that_cannot_be_pushed_is_not_the_canary_and_joins_later() -> None:
    found = [*units("a", held="it is pinned"), *units("b", "c")]
    steps, answer = finish(CANARY, found)
    assert steps == [("b",), ("c",)]
    assert (answer.done, answer.others["a"]) == (True, "it is pinned")
    free = [replace(unit, held="") if unit.id == "a" else passed(unit) for unit in found]
    assert select(CANARY, free, NOW).update == ("a",)


def test_a_wave_whose_label_nothing_has_holds_and_names_it() -> None:
    misspelled = TargetSelection(waves=(Wave(where={"stage": "dve"}), Wave()))
    answer = select(misspelled, units("a", labels={"stage": "dev"}), NOW)
    assert (answer.update, answer.done) == ((), False)
    assert answer.hold == "wave 1 takes units with stage=dve, and there are none"


@pytest.mark.parametrize("units_of_wave", [None, 1])
def test_a_wave_that_can_push_nothing_holds(units_of_wave: int | None) -> None:
    selection = TargetSelection(waves=(Wave(where={"stage": "dev"}, units=units_of_wave), Wave()))
    found = [*units("d", labels={"stage": "dev"}, held="it is pinned"), *units("p")]
    answer = select(selection, found, NOW)
    assert (answer.update, answer.done) == ((), False)
    assert answer.hold == "no unit that wave 1 takes can be pushed now: d (it is pinned)"


def test_units_that_no_wave_takes_are_named() -> None:
    steps, answer = finish(STAGES, [*units("d", labels={"stage": "dev"}), *units("x")])
    assert steps == [("d",)]
    assert answer.hold == "wave 2 takes units with stage=prod, and there are none"
    both = [*units("d", labels={"stage": "dev"}), *units("p", labels={"stage": "prod"}), *units("x")]
    steps, answer = finish(STAGES, both)
    assert steps == [("d",), ("p",)]
    assert (answer.done, answer.hold, answer.others["x"]) == (False, "no wave takes x", "no wave takes it")


def test_a_unit_that_joins_does_not_become_a_second_canary() -> None:
    watched = replace(Unit(id="b"), updated_at=NOW)
    answer = select(CANARY, [watched, *units("a", "c")], NOW)
    assert (answer.update, answer.wave) == ((), 1)


def test_one_unit_has_no_canary() -> None:
    answer = select(CANARY, units("a"), NOW)
    assert answer.update == ("a",)
    assert answer.notes == ("no canary is possible: there is only one unit, so it is judged absolutely",)
    held = [*units("a"), *units("b", held="it is pinned")]
    assert select(CANARY, held, NOW).notes == (), "what is held runs what it had, and can be compared with"
    assert finish(CANARY, units("a"))[0] == [("a",)]


def test_a_last_wave_without_controls_is_named() -> None:
    found = [passed(Unit(id="a")), *units("b")]
    answer = select(CANARY, found, NOW)
    assert answer.notes == ("after wave 2, no unit is left to compare with: it is judged absolutely",)
    assert select(CANARY, [*found, *units("c", held="it is pinned")], NOW).notes == ()


def test_a_unit_that_does_not_pass_within_its_deadline_holds_the_rollout() -> None:
    late = replace(CANARY, deadline_seconds=100.0, at_most=2)
    found = [replace(Unit(id="a"), updated_at=NOW), *units("b")]
    assert select(late, found, NOW).ask_again_at == NOW + 160.0
    assert select(late, found, NOW + 159.0).hold == ""
    answer = select(late, found, NOW + 160.0)
    assert (answer.update, answer.overdue, answer.done) == ((), ("a",), False)
    assert answer.hold == "a did not pass within the deadline of wave 1"
    paused = [replace(found[0], paused_seconds=50.0), *found[1:]]
    assert select(late, paused, NOW + 160.0).ask_again_at == NOW + 210.0
    again = [passed(found[0]), *found[1:]]
    assert select(late, again, NOW + 900.0).update == ("b",)


def test_while_a_unit_is_overdue_no_other_is_updated() -> None:
    late = TargetSelection(deadline_seconds=100.0, at_most=2)
    found = [replace(Unit(id="a"), updated_at=NOW - 100.0), *units("b", "c")]
    assert select(late, found, NOW - 1.0).update == ("b",)
    answer = select(late, found, NOW)
    assert (answer.update, answer.overdue) == ((), ("a",))
    assert answer.others["b"] == "a did not pass within the deadline of wave 1"
    assert answer.ask_again_at is None


def test_new_units_follow_the_first_pass() -> None:
    later = replace(CANARY, new="after_first_pass")
    found = [*units("a", new=True), *units("b", "c")]
    assert finish(later, found)[0] == [("b",), ("a", "c")]
    assert finish(CANARY, found)[0] == [("a",), ("b", "c")]


def test_where_all_units_are_new_none_of_them_waits_for_another() -> None:
    later = replace(CANARY, new="after_first_pass")
    assert finish(later, units("a", "b", new=True))[0] == [("a",), ("b",)]


def test_without_units_there_is_nothing_to_wait_for() -> None:
    answer = select(CANARY, [], NOW)
    assert (answer.update, answer.done) == ((), False)
    assert answer.hold == "wave 1 takes all units, and there are none"


def test_a_share_is_at_least_one_unit() -> None:
    assert [count_of(amount, 7) for amount in (None, 3, 9, "1%", "50%", "100%", "200%")] == [
        *(7, 3, 7),
        *(1, 4, 7, 7),
    ]


UNITS = st.lists(
    st.builds(
        Unit,
        id=st.sampled_from([f"u{number}" for number in range(12)]),
        labels=st.sampled_from([{}, {"stage": "dev"}, {"stage": "prod"}]),
        updated_at=st.none() | st.floats(0, NOW),
        exposure_seconds=st.floats(0, 100),
        held=st.sampled_from(["", "", "it is pinned"]),
        new=st.booleans(),
    ).map(lambda unit: replace(unit, validated_at=unit.updated_at if unit.exposure_seconds > 30 else None)),
    unique_by=lambda unit: unit.id,
)
AMOUNTS = st.none() | st.integers(1, 5) | st.sampled_from(["10%", "50%"])
SELECTIONS = st.builds(
    TargetSelection,
    waves=st.lists(
        st.builds(
            Wave,
            where=st.sampled_from([{}, {"stage": "dev"}, {"stage": "prod"}]),
            units=AMOUNTS,
            soak_seconds=st.sampled_from([0.0, 50.0]),
        ),
        min_size=1,
        max_size=4,
    ).map(tuple),
    at_most=AMOUNTS,
    new=st.sampled_from(["in_wave", "after_first_pass"]),
)


@given(SELECTIONS, UNITS, st.randoms())
def test_whatever_is_asked(selection: TargetSelection, found: list[Unit], chance: Any) -> None:
    answer = select(selection, found, NOW)
    known = {unit.id: unit for unit in found}
    assert {*answer.update, *answer.others} == known.keys()
    assert not {*answer.update} & answer.others.keys()
    assert all(not known[id].updated and not known[id].held for id in answer.update)
    unvalidated = sum(unit.updated and not unit.validated for unit in found)
    if answer.update:
        assert unvalidated + len(answer.update) <= count_of(selection.at_most, len(found))
    assert not (answer.update and (answer.hold or answer.done))
    assert not (answer.done and answer.hold)
    shuffled = list(found)
    chance.shuffle(shuffled)
    assert select(selection, shuffled, NOW) == answer


@given(SELECTIONS, UNITS)
def test_a_rollout_ends_or_names_what_holds_it(selection: TargetSelection, found: list[Unit]) -> None:
    fresh = [replace(unit, updated_at=None, validated_at=None, exposure_seconds=0.0) for unit in found]
    _, answer = finish(selection, fresh)
    assert answer.done or answer.hold


@given(SELECTIONS, UNITS)
def test_no_wave_begins_before_the_one_before_it_is_over(
    selection: TargetSelection, found: list[Unit]
) -> None:
    answer = select(selection, found, NOW)
    if not answer.update:
        return
    for wave in selection.waves[: answer.wave - 1]:
        soaked = [unit for unit in found if unit.updated and wave.takes(unit)]
        assert soaked, "a wave that has updated nothing does not open the next one"


@pytest.mark.parametrize("amount", ["0%", "0.0%", "00%", "9" * 12 + "%"])
def test_an_amount_is_more_than_nothing_and_a_number(amount: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"waves": [{"units": amount}]}, TargetSelection)


@pytest.mark.parametrize("amount", ["1%", "0.5%", "10.25%", "100%", "007%"])
def test_shares_may_have_fractions(amount: str) -> None:
    assert msgspec.convert({"at_most": amount}, TargetSelection).at_most == amount


def test_an_order_that_is_not_a_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="neither a number nor a text"):
        select(TargetSelection(order="0.0 / 0.0"), units("a", "b"), NOW)
