"""Assertions of the kind "sometimes": rare paths that a set of runs must take, or it proves little.

A path is known by what was written when it was taken, so that the program needs no marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from lehr.model.operation import Result
from lehr.model.writes import (
    Admit,
    Adopt,
    Finish,
    Prune,
    Pruned,
    Publish,
    RecordAttempt,
    RecordDecision,
    Refused,
    SetControl,
    TakeLease,
    Write,
)

RARE_PATHS: Mapping[str, str] = {
    "condition ApprovalNeeded": "a destructive change waits for a person",
    "condition DependencyDiffers": "a push waits for a dependency",
    "condition DiffFailed": "production could not be looked at",
    "condition DiffStalled": "production cannot be compared until a person fixes it",
    "condition Frozen": "a freeze holds a push",
    "condition LetGo": "intent let an asset go, and it stays in production",
    "condition LimitReached": "a limit was used up when admission decided",
    "condition ObserveOnly": "a difference is only reported",
    "condition OutcomeUnknown": "nothing is touched while an outcome is not known",
    "condition Paused": "a person stopped all turns",
    "condition Pinned": "an asset stays at older content",
    "condition PinnedToNothing": "the incarnation of a pin does not have the asset",
    "condition PushFailed": "a push failed, and is tried again",
    "condition PushStalled": "a push failed for good",
    "condition PushedStillDifferent": "a push ended well and left a difference",
    "condition RateLimited": "a rate limit holds a push",
    "condition Removed": "a turndown has ended",
    "condition ConcurrencyLimit": "a plugin has no place for a push",
    "condition StillReferenced": "a turndown waits for those that refer to the asset",
    "condition StoreUnavailable": "the store could not be written when a push wanted to start",
    "condition TurndownStands": "a turndown waits until it is old enough",
    "refused ControlsChanged": "a person spoke between a turn's beginning and its admission",
    "refused GovernanceChanged": "a freeze or limit came between a turn's beginning and its admission",
    "refused Overtaken": "new content came between a turn's beginning and its admission",
    "refused DependencyChanged": "a dependency's content changed after a turn's beginning",
    "refused DependencyBusy": "a push of a dependency was admitted after a turn's beginning",
    "refused LimitReached": "two turns saw the last free share",
    "push done": "a push ended well",
    "push failed": "a push failed",
    "push stalled": "a push failed for good",
    "push unknown": "it is unknown how a push ended",
    "unknown found applied": "an unknown outcome turned out to be a success",
    "unknown found not applied": "an unknown outcome turned out to be a failure",
    "production adopted": "production was found as intended, without a push",
    "publication published": "a revision became an incarnation",
    "publication refused": "a revision was refused",
    "publication unreadable": "the source could not be read",
    "history pruned": "incarnations that were not needed any more were removed",
    "records pruned": "decisions or pushes that were not needed any more were removed",
    "refused Pruned": "a pin named an incarnation that had been pruned",
    "refused LeaseHeld": "a control plane stood by while another one had the lease",
    "lease lost": "a control plane ended, because another one on its machine had taken over",
}
"""Names, and their meaning."""

_FOUND = {
    "found applied after its outcome was unknown": "unknown found applied",
    "found not applied after its outcome was unknown": "unknown found not applied",
}


def paths_of(write: Write, answer: object) -> Iterator[str]:
    """Names of the paths that a write, and the store's answer, reveal."""
    match write:
        case Admit() | Publish() | SetControl() | TakeLease() if isinstance(answer, Refused):
            yield f"refused {answer.reason}"
        case RecordDecision():
            yield f"condition {write.decision.condition.reason}"
        case RecordAttempt():
            yield f"publication {write.attempt.publication}"
        case Publish():
            yield "publication published"
        case Finish():
            yield f"push {write.outcome.result}"
            found = _FOUND.get(write.outcome.message)
            if found is not None and write.outcome.result is not Result.UNKNOWN:
                yield found
        case Adopt():
            yield "production adopted"
        case Prune() if isinstance(answer, Pruned):
            if answer.incarnations:
                yield "history pruned"
            if answer.decisions or answer.operations:
                yield "records pruned"


def never(reached: Mapping[str, int]) -> list[str]:
    """Rare paths that were not taken, in the order of their list."""
    return [name for name in RARE_PATHS if not reached.get(name)]


def total(runs: Iterator[Mapping[str, int]]) -> Counter[str]:
    """How often each path was taken over all runs."""
    return sum(map(Counter, runs), Counter[str]())
