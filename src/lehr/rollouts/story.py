"""Evidence of rollouts in words, for people. Pure."""

from __future__ import annotations

from lehr.base.clock import iso
from lehr.base.text import listed
from lehr.model.evidence import (
    Begun,
    Commanded,
    Counted,
    Ended,
    Fact,
    Failed,
    ForecastMade,
    Looked,
    Moments,
    RolloutCommand,
    RolloutEnd,
    Selected,
    Updated,
    Validated,
    WentBack,
    Withdrawn,
)

_ENDS = {
    RolloutEnd.COMPLETED: "is completed",
    RolloutEnd.FAILED: "has failed",
    RolloutEnd.REVERTED: "ends, because intent was reverted",
    RolloutEnd.SUPERSEDED: "gives way to other content",
    RolloutEnd.ABORTED: "is aborted",
    RolloutEnd.ROLLED_BACK: "is rolled back",
}


_COMMANDED = {
    RolloutCommand.PAUSE: "paused",
    RolloutCommand.RESUME: "resumed",
    RolloutCommand.PROMOTE: "promoted",
    RolloutCommand.ABORT: "aborted",
    RolloutCommand.ROLLBACK: "sent back",
    RolloutCommand.RESTART: "restarted",
    RolloutCommand.RETRY: "allowed to retry",
}


def in_words(fact: Fact) -> str:
    """The fact, as the end of a sentence that begins with the rollout; empty for a mere look."""
    match fact:
        case Begun():
            begun = f"begins, to incarnation {fact.target}"
            return f"{begun}, in an emergency: {fact.emergency}" if fact.emergency else begun
        case Selected() | Updated() | Withdrawn() | Validated() | WentBack():
            return _about_units(fact)
        case Failed():
            return f"finds {fact.unit} not good: {fact.why}"
        case Commanded():
            told = f"is {_COMMANDED[fact.command]} by {fact.actor}"
            return f"{told}: {fact.reason}" if fact.reason else told
        case Ended():
            return f"{_ENDS[fact.how]}: {fact.why}" if fact.why else _ENDS[fact.how]
        case ForecastMade():
            known = f"is expected to end {_between(fact.ends)}"
            return known if fact.ends.early is not None else f"has no forecast of its end: {fact.unknown}"
        case Looked() | Counted():
            return ""


def _about_units(fact: Selected | Updated | Withdrawn | Validated | WentBack) -> str:
    match fact:
        case Selected():
            notes = f": {'; '.join(fact.notes)}" if fact.notes else ""
            return f"gets {listed(fact.update)} from {fact.service} as the next units{notes}"
        case Updated():
            return f"updates {listed(fact.units)}"
        case Withdrawn():
            return f"withdraws what it released to {listed(fact.units)}"
        case Validated():
            return f"finds {listed(fact.units)} good"
        case WentBack():
            return f"takes {listed(fact.units)} back: {fact.why}"


def _between(found: Moments) -> str:
    early, late = (None if at is None else iso(at) for at in (found.early, found.late))
    if late is None:
        return f"at {early} at the earliest"
    return f"at {early}" if early == late else f"between {early} and {late}"
