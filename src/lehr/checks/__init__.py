"""The checks that ship with Lehr: may this push start *now*?

In: the requested push, and what a `CheckReader` shows: governing assets, controls, the diffs of other assets,
the use of limits, what monitoring has found. Out: verdicts, each of which allows the push or states what it
waits for.

| module | check | configured by |
|---|---|---|
| `freeze` | nothing is pushed while a freeze is active | `lehr.Freeze` assets, `lehr freeze` |
| `calendar` | pushes start in weekly windows of a time zone | `lehr.Calendar` assets |
| `monitor` | nothing is pushed while a query is out of bounds or an alert fires | `lehr.Monitor` assets |
| `depends_on` | dependencies first | the addon `lehr.DependsOn` |
| `rate_limit` | a number of pushes per period, by group | `lehr.RateLimit` assets |

`push_times` has calendars and freezes as closed times, for forecasts.

Architecture invariants: no I/O except the time zone database, no clock, no state except caches; a check
changes nothing. The configuration of a check is read at the governing incarnation only.
"""

from __future__ import annotations

from lehr.checks.calendar import CALENDAR_TYPE, CalendarCheck
from lehr.checks.depends_on import DependsOnCheck
from lehr.checks.freeze import FREEZE_TYPE, FreezeCheck
from lehr.checks.monitor import MONITOR_TYPE, MonitorCheck
from lehr.checks.rate_limit import RATE_LIMIT_TYPE, RateLimitCheck
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin

CHECKS: tuple[type[CheckPlugin], ...] = (
    FreezeCheck,
    CalendarCheck,
    MonitorCheck,
    DependsOnCheck,
    RateLimitCheck,
)
"""Constructors of all checks, in the order in which their verdicts are shown: controls first, then time, then
production, then other assets, then limits that other pushes have used up."""

TYPES: tuple[AssetType, ...] = (FREEZE_TYPE, CALENDAR_TYPE, MONITOR_TYPE, RATE_LIMIT_TYPE)
"""Types of the assets that configure checks."""
