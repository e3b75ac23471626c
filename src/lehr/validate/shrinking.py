"""One change takes only so much away."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic, Position
from lehr.validate.dependencies import is_turned_down
from lehr.validate.proposal import DeltaProposal

_WORKSPACE_FILE = "lehr.yaml"


def emptied(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL020: a partition that had assets still has some."""
    if proposal.size_before() and not _size_after(proposal):
        yield Diagnostic(
            code="VAL020",
            what=f"nothing is declared any more; before, there were {proposal.size_before()} assets",
            why="an empty answer is far more often a mistake than a wish",
            fix="look whether files are missing, or the patterns in lehr.yaml match none",
            subject=proposal.partition,
            at=Position(_WORKSPACE_FILE),
        )


def shrinks_too_much(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL021: one change lets go and turns down no more than the limits allow.

    What was turned down before and is gone now was counted when it was turned down.
    """
    limits, before = proposal.limits, proposal.size_before()
    lost = sum(
        1
        for change in proposal.changes()
        if change.before is not None
        and not is_turned_down(change.before)
        and (change.after is None or is_turned_down(change.after))
    )
    if (
        lost <= limits.shrink_floor
        or lost * 100 <= limits.shrink_percent * before
        or not _size_after(proposal)
    ):
        return
    yield Diagnostic(
        code="VAL021",
        what=f"this change takes away {lost} of {before} assets, more than {limits.shrink_percent:g} %",
        why="assets that go all at once, by whichever way, are more often a mistake than a wish",
        fix="make several changes of it; or, if it is meant, raise `shrink: {percent: ...}` in lehr.yaml",
        subject=proposal.partition,
        at=Position(_WORKSPACE_FILE),
    )


def _size_after(proposal: DeltaProposal) -> int:
    added = sum((change.before is None) - (change.after is None) for change in proposal.changes())
    return proposal.size_before() + added
