"""Faults of pushes of an asset, and of looks at it."""

from __future__ import annotations

import enum

GARBLED = "a mistake: caf\udce9 \ud800 and NUL \0"
"""A message whose text is not UTF-8: it cannot be encoded as it is."""


class PushFault(enum.StrEnum):
    """Outcome of a push.

    Attributes:
        FAIL, STALL: it reports the failure, and has changed nothing.
        APPLIED: it has changed everything, and reports that it failed.
        PARTIAL: it has changed a part, and reports that it failed.
        IDLE: it reports that it is done, and has changed nothing.
        WAIT: it reports when to try again.
        RAISE, NONSENSE: a mistake in the plugin, before anything was changed.
        LOST: it has changed everything, and its answer is lost.
        HANG: it never ends on its own.
        DETACHED: it runs on independently of the coroutine and of the control plane.
    """

    FAIL = "fail"
    STALL = "stall"
    APPLIED = "applied"
    PARTIAL = "partial"
    IDLE = "idle"
    WAIT = "wait"
    RAISE = "raise"
    NONSENSE = "nonsense"
    LOST = "lost"
    HANG = "hang"
    DETACHED = "detached"


class LookFault(enum.StrEnum):
    """Outcome of a look at production.

    Attributes:
        TRANSIENT, STALL: it reports the failure.
        RAISE, NONSENSE: a mistake in the plugin.
        WAIT, PAST: it reports when to try again, in some seconds or before it was asked.
        HANG, SLOW: it takes longer than it may, or almost.
    """

    TRANSIENT = "transient"
    STALL = "stall"
    WAIT = "wait"
    PAST = "past"
    RAISE = "raise"
    NONSENSE = "nonsense"
    HANG = "hang"
    SLOW = "slow"


PASSING_PUSHES = tuple(fault for fault in PushFault if fault not in (PushFault.STALL, PushFault.IDLE))
"""Faults that need neither a person nor new intent once they are over."""

LASTING_PUSHES = (PushFault.FAIL, PushFault.STALL, PushFault.RAISE, PushFault.NONSENSE, PushFault.HANG)
"""Faults after which production can always be looked at, so that no share of a limit is held for ever."""

PASSING_LOOKS = tuple(fault for fault in LookFault if fault is not LookFault.STALL)
