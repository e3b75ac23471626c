"""Forecasts of rollouts, from what the store has recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lehr.base.log import Log
from lehr.enforce.governance import Governance
from lehr.model.evidence import ForecastMade
from lehr.rollouts.comparison import kept
from lehr.rollouts.course import Course, Rollout
from lehr.rollouts.emergency import in_effect
from lehr.rollouts.forecast import Forecast, forecast
from lehr.rollouts.forecast_inputs import Known, inputs_of
from lehr.rollouts.members import Member
from lehr.rollouts.policy import Policy
from lehr.rollouts.validation_samples import Validated
from lehr.sdk.calendars import PushTimes
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Records
from lehr.strategist.closed_times import is_overridden
from lehr.strategist.contents import Contents

log = Log()

_MOST_OPERATIONS = 2000
"""So many of the partition's newest pushes are the sample."""

_MOST_SECONDS = 3.0
"""For a forecast that is kept: until it is made, updated units are not looked at."""


def forecast_of(
    policy: Policy,
    course: Course,
    rollout: Rollout,
    members: Sequence[Member],
    contents: Contents,
    records: Records,
    validated: Sequence[Validated],
    calendars: Sequence[PushTimes],
    governance: Governance,
    now: float,
    *,
    hold: str = "",
    check_time: Callable[[], None] = lambda: None,
) -> Forecast:
    """The forecast of a rollout. Blocks while it reads the store.

    Args:
        course: of the policy's rollouts so far.
        members: all assets that the policy governs.
        validated: recorded validations of its units.
        calendars: those in force.
        governance: has the overrides of calendars.
        now: wall-clock seconds.
        hold: why no further unit is updated until a person decides; empty if that is not so.
        check_time: called again and again; it may raise to end this.

    Raises:
        LehrError: the store cannot be read.
        ValueError: the order of the target selection cannot be used.
    """
    operations = records.operations(contents.partition, None, _MOST_OPERATIONS)
    inputs = inputs_of(
        in_effect(policy.payload, course, rollout.target, now),
        rollout,
        members,
        lambda id: contents.asset(id, rollout.target),
        Known(
            operations,
            validated,
            calendars,
            course,
            lambda calendar, asset: is_overridden(calendar, asset, governance, now),
        ),
        now,
        hold,
        check_time,
    )
    return forecast(inputs, check_time)


class ForecastKeeper:
    """Makes one forecast of each rollout, to be kept as evidence. It never fails, and takes bounded time."""

    def __init__(self, runtime: Runtime, contents: Contents) -> None:
        self._runtime = runtime
        self._contents = contents
        self._failed: set[str] = set()
        self._seconds = 0.0

    def take_seconds(self) -> float:
        """The seconds that forecasts took since this was asked last."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def forecast(
        self,
        policy: Policy,
        course: Course,
        members: Callable[[], Sequence[Member]],
        validated: Sequence[Validated],
        governance: Governance,
        now: float,
    ) -> ForecastMade | None:
        """The forecast of the rollout under way; None if it has one, or cannot have one. Blocks.

        Args:
            members: called for all assets that the policy governs.
        """
        rollout = course.running
        if rollout is None or rollout.forecast is not None or rollout.id in self._failed:
            return None
        if in_effect(policy.payload, course, rollout.target, now).selected_by is not None:
            return None
        runtime, began = self._runtime, self._runtime.clock.monotonic()
        try:
            found = forecast_of(
                policy,
                course,
                rollout,
                members(),
                self._contents,
                runtime.store.records,
                validated,
                runtime.calendars(runtime.registry, governance.assets),
                governance,
                now,
                check_time=self._limit(),
            )
            return kept(found)
        except Exception as error:
            log.warning("a rollout has no forecast", policy=policy.id, rollout=rollout.id, error=str(error))
            self._failed.add(rollout.id)
            return None
        finally:
            self._seconds += runtime.clock.monotonic() - began

    def _limit(self) -> Callable[[], None]:
        """A function that raises once the time for a forecast is over."""
        clock = self._runtime.clock
        until = clock.monotonic() + _MOST_SECONDS

        def check_time() -> None:
            if clock.monotonic() > until:
                raise TimeoutError(f"it takes longer than {_MOST_SECONDS:g} s")

        return check_time
