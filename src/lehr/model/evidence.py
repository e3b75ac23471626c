"""Evidence of rollouts: what happened to one, in the order in which the store wrote it."""

from __future__ import annotations

import enum
from typing import Annotated

import msgspec

from lehr.base.digest import Digest
from lehr.base.moments import Moment
from lehr.model.asset import AssetId, Partition

Exposure = Annotated[float, msgspec.Meta(ge=0)]
"""Seconds for which something was good under observation."""


class RolloutEnd(enum.StrEnum):
    """How a rollout ended.

    COMPLETED: every unit has the content, and it is good everywhere. FAILED: it was not good. REVERTED: no
    unit wants the content any longer. SUPERSEDED: newer content came before any unit had it, or was
    requested by a person. ABORTED: a person stopped it. ROLLED_BACK: a person had it rolled back.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    REVERTED = "reverted"
    SUPERSEDED = "superseded"
    ABORTED = "aborted"
    ROLLED_BACK = "rolled-back"


class RolloutCommand(enum.StrEnum):
    """A person's command about a rollout.

    PAUSE, RESUME: no further unit is updated in between. PROMOTE: what is updated counts as validated, once.
    ABORT: it ends, and what is updated stays. ROLLBACK: it ends, and what is updated goes back. RESTART: it
    ends, and one to the newest content begins. RETRY: content that failed may be tried again.
    """

    PAUSE = "pause"
    RESUME = "resume"
    PROMOTE = "promote"
    ABORT = "abort"
    ROLLBACK = "rollback"
    RESTART = "restart"
    RETRY = "retry"


class Begun(msgspec.Struct, frozen=True, tag="begun", tag_field="fact"):
    """It began, to the content of incarnation `target`.

    Attributes:
        emergency: the reason of the emergency that began it; empty if none did.
    """

    target: int
    emergency: str = ""


class Updated(msgspec.Struct, frozen=True, tag="updated", tag_field="fact"):
    """Units were released to the target, in the same write.

    Attributes:
        before: the incarnation whose content each asset had until then; 0 for one that had none.
        wave: the wave under way, from 1; 0 if the selection has none.
    """

    units: tuple[str, ...]
    before: dict[AssetId, int]
    wave: int = 0


class Selected(msgspec.Struct, frozen=True, tag="selected", tag_field="fact"):
    """A selection of a user's own named units to update, within the limits of the policy.

    Attributes:
        service: its name.
        update: in its order. They are updated in the same write.
        notes: its remarks.
    """

    service: str
    update: tuple[str, ...]
    notes: tuple[str, ...] = ()


class Withdrawn(msgspec.Struct, frozen=True, tag="withdrawn", tag_field="fact"):
    """Releases of units of which no push had begun were withdrawn, in the same write."""

    units: tuple[str, ...]


class MetricLook(msgspec.Struct, frozen=True, array_like=True):
    """The finding of a metric of a unit.

    Attributes:
        good: None if that is not known, as without an answer.
        value: what the source answered, of the series that is furthest from good.
        why: it is not good.
    """

    good: bool | None
    value: float | bool | None = None
    why: str = ""


class UnitLook(msgspec.Struct, frozen=True, array_like=True):
    """How a unit was when it was looked at.

    Attributes:
        good: None while it is not known, as before its push has ended.
        exposure: seconds for which it was good so far.
        watched: seconds for which it was looked at so far.
        bad_in_a_row: looks in a row at which it was bad.
        why: it is not good.
        settled: seconds since its pushes have ended, by the looks at it; None before.
        metrics: what was found for each metric, at the last look at which they were measured.
    """

    good: bool | None
    exposure: Exposure = 0.0
    watched: Exposure = 0.0
    bad_in_a_row: int = 0
    why: str = ""
    settled: Exposure | None = None
    metrics: dict[str, MetricLook] = {}


class CounterSample(msgspec.Struct, frozen=True, array_like=True):
    """The counters of one replica.

    Attributes:
        canary: whether its unit has the new content.
        replica: a name that no other replica of the unit has.
        values: since the replica began to count, by the name of the counter. Absent where they are not known.
    """

    canary: bool
    unit: str
    replica: str
    values: dict[str, float]


class Looked(msgspec.Struct, frozen=True, tag="looked", tag_field="fact"):
    """Units under observation were looked at."""

    units: dict[str, UnitLook]


class Counted(msgspec.Struct, frozen=True, tag="counted", tag_field="fact"):
    """The counters of a cohort, and of units that do not have the content yet, were read.

    Attributes:
        cohort: units that were updated in one wave; the first is 1.
        at: seconds that increase from one to the next, by a clock that does not jump.
        missing: why the counters of some units are not known.
    """

    cohort: int
    at: Exposure
    samples: tuple[CounterSample, ...]
    missing: str = ""


class Validated(msgspec.Struct, frozen=True, tag="validated", tag_field="fact"):
    """Units are good with the content."""

    units: tuple[str, ...]


class Failed(msgspec.Struct, frozen=True, tag="failed", tag_field="fact"):
    """A unit was not good with the content: no further unit is updated."""

    unit: str
    why: str


class WentBack(msgspec.Struct, frozen=True, tag="went-back", tag_field="fact"):
    """Units were released to the content that they had before, in the same write."""

    units: tuple[str, ...]
    why: str


class Commanded(msgspec.Struct, frozen=True, tag="commanded", tag_field="fact"):
    """A person gave a command."""

    command: RolloutCommand
    actor: str
    reason: str


class Moments(msgspec.Struct, frozen=True):
    """A range of moments, in wall-clock seconds; None for unknown."""

    early: Moment | None = None
    late: Moment | None = None


class Expected(msgspec.Struct, frozen=True):
    """The forecast of a unit, or of all units of a wave.

    Attributes:
        wave: its number, from 1.
        units: how many there are.
        updated: when the last push ends.
        validated: when they are known to be good.
    """

    wave: int
    units: int
    updated: Moments
    validated: Moments


class ForecastMade(msgspec.Struct, frozen=True, tag="forecast", tag_field="fact"):
    """A forecast was made, shortly after it began.

    Attributes:
        ends: when the last wave is over.
        units: those of a large rollout are left out.
        unknown: why a time is unknown; empty if none is.
    """

    ends: Moments
    waves: tuple[Expected, ...]
    units: dict[str, Expected] = {}
    unknown: str = ""


class Ended(msgspec.Struct, frozen=True, tag="ended", tag_field="fact"):
    """It ended.

    Attributes:
        quarantined: content key of each asset that would have had new content. No rollout begins with that
            content again automatically.
        passed: content key of each asset that got new content and was good with it, if the policy trusts
            such content.
    """

    how: RolloutEnd
    why: str = ""
    quarantined: dict[AssetId, Digest] = {}
    passed: dict[AssetId, Digest] = {}


Fact = (
    Begun
    | Selected
    | Updated
    | Withdrawn
    | Looked
    | Counted
    | Validated
    | Failed
    | WentBack
    | Commanded
    | ForecastMade
    | Ended
)


class Evidence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fact about one rollout.

    Attributes:
        number: given by the store, ascending; 0 before it is written. Its order counts, not `at`.
        policy: id of the asset that governs the rollout.
        rollout: its id.
        at: wall-clock seconds.
    """

    number: int = 0
    partition: Partition
    policy: AssetId
    rollout: str
    at: Moment
    fact: Fact
