"""The checks that Lehr brings: may this push go *now*?

In: the push that is asked for, and what a `CheckReader` shows: governing assets, controls, the
diffs of other assets, the use of limits. Out: verdicts, each of which allows, or waits and says
for what.

| module | check | configured by |
|---|---|---|
| `freeze` | nothing is pushed while a freeze stands | `lehr.Freeze` assets, `lehr freeze` |
| `calendar` | pushes go in weekly windows of a time zone | `lehr.Calendar` assets |
| `depends_on` | dependencies first | the addon `lehr.DependsOn` |
| `rate_limit` | so many pushes in so long a time, by group | `lehr.RateLimit` assets |

Architecture invariants: no I/O but the time zone database, no clock, no state that matters; a
check changes nothing. The configuration of a check is read at the governing incarnation only.
"""

from __future__ import annotations

from lehr.checks.calendar import CALENDAR_TYPE, CalendarCheck
from lehr.checks.depends_on import DependsOnCheck
from lehr.checks.freeze import FREEZE_TYPE, FreezeCheck
from lehr.checks.rate_limit import RATE_LIMIT_TYPE, RateLimitCheck
from lehr.model.types import AssetType
from lehr.sdk.check import CheckPlugin

CHECKS: tuple[type[CheckPlugin], ...] = (FreezeCheck, CalendarCheck, DependsOnCheck, RateLimitCheck)
"""Constructors of all checks, in the order in which their verdicts are shown: people's words
first, then time, then other assets, then what other pushes have used up."""

TYPES: tuple[AssetType, ...] = (FREEZE_TYPE, CALENDAR_TYPE, RATE_LIMIT_TYPE)
"""Types of the assets that configure them."""
