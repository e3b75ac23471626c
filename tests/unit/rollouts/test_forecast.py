"""Forecasts: the rollout runs forward as it would, and what is not known is unknown."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lehr.rollouts import TargetSelection, Unit, Wave
from lehr.rollouts.forecast import Duration, Forecast, ForecastInputs, Moments, UnitWork, duration, forecast
from lehr.rollouts.forecast_text import forecast_lines
from lehr.rollouts.open_times import ALWAYS_CLOSED, Timeline

NOW = 1_000_000.0
HOUR = 3600.0
CANARY = TargetSelection(waves=(Wave(units=1, soak_seconds=600.0), Wave()))
FIXED = {"file": [10.0], "job": [50.0]}


def works(*ids: str, pushes: tuple[str, ...] = ("file", "job"), **fields: Any) -> tuple[UnitWork, ...]:
    return tuple(UnitWork(Unit(id=id), pushes, **fields) for id in ids)


def made(*, selection: TargetSelection = CANARY, units: Any = None, **more: Any) -> Forecast:
    inputs: dict[str, Any] = {"pushes": FIXED, "validations": [100.0], "now": NOW, **more}
    given = works("a", "b", "c") if units is None else units
    return forecast(ForecastInputs(selection=selection, works=given, **inputs))


def since(found: Moments) -> tuple[float | None, float | None]:
    """In seconds from now."""
    return tuple(None if at is None else at - NOW for at in (found.early, found.late))  # type: ignore[return-value]


def test_waves_follow_each_other_after_push_validation_and_soak() -> None:
    one, rest = (found := made()).waves
    assert (since(one.starts), since(one.ends)) == ((0, 0), (760, 760))
    assert (since(rest.starts), since(rest.ends)) == ((760, 760), (920, 920))
    assert since(found.ends) == (920, 920)
    assert (one.units, one.state, rest.units, rest.state) == (("a",), "ahead", ("b", "c"), "ahead")
    assert not one.unknown


def test_a_range_is_from_the_median_to_the_95th_percentile() -> None:
    sample = [10.0] * 10 + [20.0] * 8 + [90.0, 500.0]
    one, _ = made(pushes={"file": sample, "job": [50.0]}).waves
    assert since(one.ends) == (760, 840)


def test_closed_times_delay_pushes_and_pause_soaks() -> None:
    units = works("a", "b", calendars=("hours",))
    before = made(units=units, calendars={"hours": [(NOW - HOUR, NOW + 100)]})
    assert [since(wave.starts) for wave in before.waves] == [(100, 100), (860, 860)]
    between = made(units=units, calendars={"hours": [(NOW + 5, NOW + 1000)]})
    # The first push has begun, the second waits.
    assert since(between.waves[0].ends) == (1000 + 50 + 100 + 600,) * 2
    during = made(units=units, calendars={"hours": [(NOW + 200, NOW + 1200)]})
    assert since(during.waves[0].ends) == (760 + 1000,) * 2


def test_a_closed_weekend_is_not_a_missed_deadline() -> None:
    short = replace(CANARY, deadline_seconds=200.0)
    found = made(
        selection=short, units=works("a", "b", calendars=("x",)), calendars={"x": [(NOW + 170, NOW + 9000)]}
    )
    assert since(found.ends) == (760 + 8830 + 160,) * 2


def test_a_validation_that_takes_longer_than_its_deadline_holds() -> None:
    short = replace(CANARY, deadline_seconds=50.0)
    one, rest = made(selection=short, validations=[1000.0]).waves
    assert (one.ends, rest.starts) == (Moments(), Moments())
    assert one.unknown == "a did not pass within the deadline of wave 1"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"pushes": {"file": [10.0]}}, "no push was recorded of job"),
        ({"pushes": {"file": [10.0], "job": [math.nan, math.inf, -1.0]}}, "no push was recorded of job"),
        ({"validations": []}, "no validation was recorded"),
        ({"calendars": {"hours": None}}, "closed, because they cannot be read: hours"),
        ({"calendars": {}}, "closed, because they cannot be read: hours"),
        ({"calendars": {"hours": ALWAYS_CLOSED}}, "closed for longer than 14 days: hours"),
        ({"horizon_seconds": 500.0}, "it is later than 0.00578704 days from now"),
    ],
)
def test_what_is_not_known_is_unknown_and_not_zero(more: dict[str, Any], why: str) -> None:
    given = {"calendars": {"hours": ()}, "units": works("a", "b", calendars=("hours",)), **more}
    found = made(**given)
    one, rest = found.waves
    assert (one.ends, rest.starts, rest.ends, found.ends) == (Moments(),) * 4
    assert one.unknown == rest.unknown == why
    assert "unknown" in "\n".join(forecast_lines(found))


def test_what_is_known_before_the_unknown_is_shown() -> None:
    one, _ = made(validations=[]).waves
    assert since(one.starts) == (0, 0)


def test_a_late_end_beyond_the_horizon_is_unknown() -> None:
    one, _ = made(pushes={"file": [10.0, 10.0, 10_000.0], "job": [50.0]}, horizon_seconds=1000.0).waves
    assert since(one.ends) == (760, None)


def test_units_that_cannot_be_pushed_are_skipped_with_their_reasons() -> None:
    pinned = UnitWork(Unit(id="a", held="it is pinned"), ("file",))
    found = made(units=(pinned, *works("b", "c")))
    assert found.skipped == {"a": "it is pinned"}
    assert found.waves[0].units == ("b",)
    assert since(found.ends) == (920, 920)
    assert (
        made(units=(pinned,)).waves[0].unknown
        == "no unit that wave 1 takes can be pushed now: a (it is pinned)"
    )


def test_a_rollout_under_way_continues_where_it_is() -> None:
    soaking = Unit(id="a", updated_at=NOW - 500, validated_at=NOW - 400, exposure_seconds=400.0)
    found = made(units=(UnitWork(soaking, ("file",)), *works("b")))
    one, rest = found.waves
    assert (one.state, since(one.starts), since(one.ends)) == ("under way", (-500, -500), (200, 200))
    assert since(rest.starts) == (200, 200)
    watched = Unit(id="a", updated_at=NOW - 30)
    one, _ = made(units=(UnitWork(watched, ("file",), pushed_at=NOW - 30), *works("b"))).waves
    assert since(one.ends) == (70 + 600,) * 2
    soaked = replace(soaking, exposure_seconds=600.0)
    one, rest = made(units=(UnitWork(soaked, ("file",)), *works("b"))).waves
    assert (one.state, rest.state, since(rest.starts)) == ("over", "ahead", (0, 0))


@pytest.mark.parametrize("step", range(50))
def test_fractions_of_seconds_do_not_keep_a_soak_from_ending(step: int) -> None:
    now = 1_795_000_000.123 + 0.37 * step
    soaking = Unit(
        id="a", updated_at=now - 500, validated_at=now - 400, exposure_seconds=12.1 + 0.0113 * step
    )
    found = made(units=(UnitWork(soaking, ("file",), pushed_at=now - 450), *works("b")), now=now)
    assert found.ends.late is not None
    assert found.ends.late - now == pytest.approx(600 - soaking.exposure_seconds + 160, abs=1e-3)
    late = replace(CANARY, deadline_seconds=50.1 + 0.0117 * step)
    found = made(selection=late, validations=[1000.0], now=now)
    assert found.waves[0].unknown == "a did not pass within the deadline of wave 1"


def test_a_rollout_that_is_done_has_ended() -> None:
    done = Unit(id="a", updated_at=NOW - 5000, validated_at=NOW - 4000, exposure_seconds=4000.0)
    found = made(units=(UnitWork(done),))
    assert [wave.state for wave in found.waves] == ["over", "over"]
    assert since(found.ends) == (0, 0)


def test_a_limit_makes_units_wait_for_each_other() -> None:
    one_by_one = TargetSelection(at_most=1)
    assert since(made(selection=one_by_one).ends) == (480, 480)


ONE_BY_ONE = TargetSelection(at_most=1)


def test_a_closed_unit_takes_no_room_and_joins_once_it_is_open() -> None:
    units = (*works("a", calendars=("late",)), *works("b", "c"))
    found = made(selection=ONE_BY_ONE, units=units, calendars={"late": [(NOW - HOUR, NOW + 100)]})
    assert {unit.id: since(unit.updated)[0] for unit in found.units} == {"a": 220, "b": 60, "c": 380}
    assert (since(found.ends), found.following) == ((480, 480), ())


def test_a_unit_that_is_closed_until_the_rollout_is_over_follows_in_another() -> None:
    units = (*works("a", calendars=("late",)), *works("b", "c"))
    found = made(selection=ONE_BY_ONE, units=units, calendars={"late": [(NOW - HOUR, NOW + HOUR)]})
    assert ([unit.id for unit in found.units], since(found.ends)) == (["b", "c"], (320, 320))
    [later] = found.following
    assert (later.id, later.wave, since(later.validated)) == ("a", 1, (HOUR + 160,) * 2)
    lines = list(forecast_lines(found))
    assert "Closed until the rollout is over, and updated in one after it:" in lines
    assert any("closed units take no place" in item for item in found.assumptions)
    ever = made(selection=ONE_BY_ONE, units=units, calendars={"late": ALWAYS_CLOSED})
    assert since(ever.ends) == (320, 320)
    assert [(item.id, item.wave, item.updated) for item in ever.following] == [("a", 0, Moments())]


def test_another_unit_is_the_canary_while_the_first_is_closed() -> None:
    units = (*works("a", calendars=("late",)), *works("b", "c"))
    found = made(units=units, calendars={"late": [(NOW - HOUR, NOW + 500)]})
    assert [wave.units for wave in found.waves] == [("b",), ("a", "c")]
    assert since(found.ends) == (920, 920)


def test_a_wave_is_under_way_again_once_a_unit_opens_that_it_skipped() -> None:
    def unit(id: str, stage: str, *calendars: str) -> UnitWork:
        return UnitWork(Unit(id=id, labels={"stage": stage}), ("file",), calendars)

    by_stage = TargetSelection(waves=(Wave(where={"stage": "one"}), Wave(soak_seconds=600.0)))
    units = (unit("a", "one", "late"), unit("b", "one"), unit("c", "two"))
    found = made(selection=by_stage, units=units, calendars={"late": [(NOW - HOUR, NOW + 500)]})
    assert [wave.units for wave in found.waves] == [("a", "b"), ("c",)]
    assert [since(wave.starts)[0] for wave in found.waves] == [0, 110]
    assert [since(wave.ends)[0] for wave in found.waves] == [500 + 110, 110 + 110 + 600]


def test_a_unit_that_needs_no_soak_needs_none_after_its_update() -> None:
    trusted = UnitWork(Unit(id="a", exposure_seconds=math.inf), ("file", "job"))
    assert since(made(units=(trusted, *works("b"))).waves[0].ends) == (160, 160)


def test_a_wave_without_units_of_its_own_takes_no_time() -> None:
    growing = TargetSelection(waves=(Wave(units="1%"), Wave(units="10%"), Wave()))
    found = made(selection=growing)
    assert [since(wave.ends) for wave in found.waves] == [(160, 160), (160, 160), (320, 320)]
    assert since(found.waves[1].starts) == (160, 160)
    assert not any(wave.unknown for wave in found.waves)


def test_what_takes_no_time_is_over_at_once() -> None:
    found = made(units=works("a", "b", pushes=()), validations=[0.0])
    assert [since(wave.ends) for wave in found.waves] == [(600, 600), (600, 600)]
    at_once = {"file": [0.0], "job": [0.0]}
    found = made(selection=TargetSelection(at_most=1), validations=[0.0], pushes=at_once)
    assert since(found.ends) == (0, 0)


def test_samples_and_assumptions_are_named() -> None:
    found = made()
    assert found.durations == {name: Duration(count=1, p50=at, p95=at) for name, [at] in FIXED.items()}
    assert "only 1 recorded push of job" in found.assumptions
    assert duration([]) == Duration(count=0)
    assert duration([3.0, 1.0, 2.0]) == Duration(count=3, p50=2.0, p95=3.0)


def test_it_is_shown_as_text_and_as_json() -> None:
    found = made(units=(*works("a", "b"), UnitWork(Unit(id="c", held="it is pinned"))))
    assert list(forecast_lines(found))[:8] == [
        "Forecast of 1970-01-12 13:46:40 (UTC), until 1970-01-26 13:46:40",
        "Wave 1 of all units, ahead: a",
        "  starts: 1970-01-12 13:46:40",
        "  ends:   1970-01-12 13:59:20",
        "Wave 2 of all units, ahead: b, c",
        "  starts: 1970-01-12 13:59:20",
        "  ends:   1970-01-12 14:02:00",
        "Rollout ends: 1970-01-12 14:02:00",
    ]
    assert msgspec.json.decode(msgspec.json.encode(found), type=Forecast) == found


AMOUNTS = st.none() | st.integers(1, 3) | st.just("40%")
SELECTIONS = st.builds(
    TargetSelection,
    waves=st.lists(
        st.builds(Wave, units=AMOUNTS, soak_seconds=st.sampled_from([0.0, 300.0])), min_size=1, max_size=3
    ).map(lambda waves: (*waves, Wave())),
    at_most=AMOUNTS,
)
CLOSED = st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 3000)), max_size=4).map(
    lambda spans: [(NOW + start, NOW + start + length) for start, length in spans]
)


def last_validated(found: Forecast) -> float:
    times = [unit.validated.late for unit in (*found.units, *found.following)]
    assert None not in times
    return max(at for at in times if at is not None)


@given(
    SELECTIONS, CLOSED, st.lists(st.integers(1, 500).map(float), min_size=1, max_size=6), st.integers(1, 6)
)
def test_whatever_is_forecast(
    selection: TargetSelection, closed: Any, sample: list[float], count: int
) -> None:
    units = works(*(f"u{number}" for number in range(count)), pushes=("file",), calendars=("x",))
    found = made(
        selection=selection, units=units, calendars={"x": closed}, pushes={"file": sample}, validations=sample
    )
    before = (NOW, NOW)
    for wave in found.waves:
        times = [wave.starts.early, wave.starts.late, wave.ends.early, wave.ends.late]
        assert None not in times
        assert wave.starts.early <= wave.starts.late  # type: ignore[operator]
        assert wave.starts.early <= wave.ends.early  # type: ignore[operator]
        assert wave.starts.late <= wave.ends.late  # type: ignore[operator]
        assert before <= (wave.starts.early, wave.starts.late)
        before = (wave.ends.early, wave.ends.late)  # type: ignore[assignment]
    assert before == (found.ends.early, found.ends.late)
    openly = made(
        selection=selection, units=units, calendars={"x": ()}, pushes={"file": sample}, validations=sample
    )
    assert last_validated(openly) <= last_validated(found)
    assert {unit.id for unit in (*found.units, *found.following)} == {work.unit.id for work in units}
    assert (
        made(
            selection=selection,
            units=units[::-1],
            calendars={"x": closed},
            pushes={"file": sample},
            validations=sample,
        )
        == found
    )


@given(CLOSED, st.integers(0, 9000), st.integers(0, 9000))
def test_a_timeline_is_that_of_single_seconds(closed: Any, start: int, length: int) -> None:
    line = Timeline(closed)
    begin, end = NOW + start, NOW + start + length

    def is_closed(at: float) -> bool:
        return any(low <= at < high for low, high in closed)

    assert line.opening(begin) == next(
        at for at in range(int(begin), int(begin) + 20_000) if not is_closed(at)
    )
    assert line.closed_between(begin, end) == sum(map(is_closed, range(int(begin), int(end))))
    if length:
        at = line.after_open(begin, length)
        assert at - begin - line.closed_between(begin, at) == length
        assert not is_closed(at - 1)
