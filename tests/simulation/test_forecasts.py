"""A rollout's forecast is kept when it begins, and is never in its way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NoReturn

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import iso
from lehr.checks.calendar import CALENDAR_TYPE, CalendarCheck
from lehr.checks.push_times import push_times
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.evidence import Evidence, ForecastMade, Updated
from lehr.model.governance import ROLLOUT_POLICY
from lehr.rollouts.course import Rollout, folded
from lehr.rollouts.forecast import Forecast
from lehr.sdk.calendars import Calendars
from lehr.sdk.runtime import Runtime
from lehr.strategist.forecasts import forecast_of
from lehr.strategist.overview import evidence_by_policy
from lehr.strategist.strategist import Strategist
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, THING
from tests.world import Plane, World

NAMES = ("a", "b", "c")
SOAK = 600.0
POLICY = AssetId("waves")


def intent(value: int) -> list[Asset]:
    things = [make_asset(AssetId(name), THING, {"value": str(value)}, {}) for name in NAMES]
    payload = {
        "select": {"ids": list(NAMES)},
        "target_selection": {"waves": [{"units": 1, "soak_seconds": SOAK}, {}]},
    }
    return [*things, make_asset(POLICY, ROLLOUT_POLICY, payload, {})]


def two_rollouts(folder: Path, calendars: Calendars) -> list[list[Evidence]]:
    """The evidence of two rollouts, each from its beginning to its end."""

    async def main() -> None:
        clock = VirtualClock()
        plane = Plane(folder, World(), clock)
        await plane.start()
        await plane.publish(*intent(1))
        runtime = Runtime(
            PARTITION, plane.store, plane.registry, clock, plane.chance, Inline(), calendars=calendars
        )
        task = asyncio.create_task(Strategist(runtime, plane.committer, plane.enforcer).run())
        for value in (2, 3):
            await clock.sleep(2 * SOAK)
            await plane.publish(*intent(value))
        await clock.sleep(2 * SOAK)
        assert set(plane.world.values.values()) == {"3"}
        evidence = evidence_by_policy(plane.store.records, PARTITION)[POLICY]
        for item in evidence:
            if not found or found[-1][0].rollout != item.rollout:
                found.append([])
            found[-1].append(item)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.kill()

    found: list[list[Evidence]] = []
    run(main, seed=1)
    return found[-2:]


def last(evidence: list[Evidence]) -> Rollout:
    rollout = folded(evidence).last
    assert rollout is not None
    return rollout


def test_it_is_kept_after_the_first_release_and_holds(tmp_path: Path) -> None:
    _, second = two_rollouts(tmp_path, push_times)
    facts = [type(item.fact) for item in second]
    assert facts.count(ForecastMade) == 1
    assert facts.index(ForecastMade) > facts.index(Updated)
    rollout = last(second)
    assert rollout.forecast is not None
    assert [wave.units for wave in rollout.forecast.waves] == [1, 2]
    assert rollout.forecast.units.keys() == {"a", "b", "c"}
    assert rollout.ended_at is not None
    early, late = rollout.forecast.ends.early, rollout.forecast.ends.late
    assert early is not None
    assert late is not None
    # A soak ends with a look, and looks come every ten seconds.
    assert early - 1 <= rollout.ended_at <= late + 20
    for unit, at in rollout.validated.items():
        expected = rollout.forecast.units[unit].validated
        assert expected.early is not None
        assert expected.early - 1 <= at <= expected.early + 30


def test_the_same_history_has_the_same_forecast(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    one, other = (two_rollouts(tmp_path / name, push_times) for name in ("one", "other"))
    assert [last(item).forecast for item in one] == [last(item).forecast for item in other]


def test_what_fails_is_logged_once_and_changes_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> NoReturn:
        raise RuntimeError("no such sample")

    for name in ("broken", "whole"):
        (tmp_path / name).mkdir()
    with monkeypatch.context() as patched:
        patched.setattr("lehr.strategist.forecasts.forecast_of", broken)
        without = two_rollouts(tmp_path / "broken", push_times)
    logged = capsys.readouterr().out
    assert logged.count("no such sample") == 3, "one for each rollout, the first of all content included"
    whole = two_rollouts(tmp_path / "whole", push_times)
    for one, other in zip(without, whole, strict=True):
        kept = [item for item in other if not isinstance(item.fact, ForecastMade)]
        assert [(item.at, item.fact) for item in one] == [(item.at, item.fact) for item in kept]


def test_one_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lehr.strategist.forecasts._MOST_SECONDS", -1.0)
    assert [last(item).forecast for item in two_rollouts(tmp_path, push_times)] == [None, None]


SHORT = 120.0
LONGER = 600.0
LONG = ("p", "q", "r")
ONE_BY_ONE: dict[str, Any] = {"waves": [{}], "at_most": 1}
CANARY: dict[str, Any] = {"waves": [{"units": 1, "soak_seconds": SHORT}, {}], "at_most": 2}


def forecast_and_course(
    folder: Path, monkeypatch: pytest.MonkeyPatch, selection: dict[str, Any], closed: dict[str, float]
) -> tuple[Forecast, dict[str, float], list[list[Evidence]]]:
    """The forecast of a rollout while units are closed, when units were validated, and the rollouts.

    Args:
        closed: for how many seconds each unit is closed from the beginning of the rollout.
    """
    forecasts: list[Forecast] = []

    def recorded(*args: Any, **more: Any) -> Forecast:
        forecasts.append(forecast_of(*args, **more))
        return forecasts[-1]

    monkeypatch.setattr("lehr.strategist.forecasts.forecast_of", recorded)

    async def main() -> None:
        clock = VirtualClock()
        plane = Plane(folder, World(), clock, checks=[CalendarCheck()], types=[CALENDAR_TYPE])
        await plane.start()
        policy = make_asset(
            POLICY, ROLLOUT_POLICY, {"select": {"ids": list(LONG)}, "target_selection": selection}, {}
        )

        def things(value: int) -> list[Asset]:
            return [make_asset(AssetId(id), THING, {"value": str(value)}, {}) for id in LONG]

        await plane.publish(*things(1), policy)
        runtime = Runtime(
            PARTITION, plane.store, plane.registry, clock, plane.chance, Inline(), calendars=push_times
        )
        task = asyncio.create_task(Strategist(runtime, plane.committer, plane.enforcer).run())
        await clock.sleep(2 * SHORT)
        await plane.publish(*things(2), policy)
        await clock.sleep(4 * SHORT)
        now = clock.now()
        calendars = [_closed_calendar(id, now, seconds) for id, seconds in closed.items()]
        await plane.publish(*things(3), policy, *calendars)
        await clock.sleep(2 * LONGER)
        assert set(plane.world.values.values()) == {"3"}
        for item in evidence_by_policy(plane.store.records, PARTITION)[POLICY]:
            if item.at >= now:
                if not found or found[-1][0].rollout != item.rollout:
                    found.append([])
                found[-1].append(item)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await plane.kill()

    found: list[list[Evidence]] = []
    run(main, seed=1)
    validated = {unit: at for item in found for unit, at in last(item).validated.items()}
    made_then = [item for item in forecasts if item.made_at >= found[0][0].at]
    return made_then[0], validated, found


def _closed_calendar(id: str, now: float, seconds: float) -> Asset:
    closed = {"from": f"{iso(now - 60)[:16]}Z", "to": f"{iso(now + seconds)[:16]}Z", "reason": "not now"}
    payload = {"select": {"ids": [id]}, "timezone": "UTC", "closed": [closed]}
    return make_asset(AssetId(f"hours-{id}"), CALENDAR_TYPE.name, payload, {})


@pytest.mark.parametrize(
    ("selection", "closed", "rollouts"),
    [
        (ONE_BY_ONE, {"p": LONGER}, 2),
        (ONE_BY_ONE, {"p": LONGER, "q": LONGER}, 2),
        (ONE_BY_ONE, {"p": LONGER, "q": LONGER / 2}, 3),
        (ONE_BY_ONE, {"p": 60.0, "q": 60.0, "r": 60.0}, 1),
        (CANARY, {"p": LONGER}, 2),
        (CANARY, {"p": LONGER, "q": LONGER}, 1),
        (CANARY, {"p": SHORT / 2}, 1),
    ],
)
def test_closed_units_are_forecast_as_they_are_updated(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    selection: dict[str, Any],
    closed: dict[str, float],
    rollouts: int,
) -> None:
    found, validated, courses = forecast_and_course(tmp_path, monkeypatch, selection, closed)
    assert len(courses) == rollouts
    ended = last(courses[0]).ended_at
    assert ended is not None
    assert found.ends.early is not None
    assert found.ends.early - 1 <= ended <= found.ends.early + 30
    assert {item.id for item in found.units} == last(courses[0]).validated.keys()
    for item in (*found.units, *found.following):
        assert item.validated.early is not None, item.id
        # A soak ends with a look, and looks come every ten seconds.
        assert item.validated.early - 1 <= validated[item.id] <= item.validated.early + 40, item.id
    facts = [item.fact for course in courses for item in course]
    updated = {unit: fact.wave for fact in facts if isinstance(fact, Updated) for unit in fact.units}
    assert {item.id: item.wave for item in (*found.units, *found.following)} == updated
