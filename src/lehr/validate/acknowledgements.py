"""Acknowledgements, which override guards deliberately."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.model.incarnation import Acknowledgement
from lehr.sdk.validator import ACKNOWLEDGEABLE
from lehr.validate.guards import WORKSPACE_FILE
from lehr.validate.proposal import DeltaProposal


def acknowledgement_is_spent(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL013, a warning: an acknowledgement is for the change that follows the newest incarnation."""
    for item in proposal.limits.acknowledge:
        if item.after != proposal.base and proposal.sizes_before:
            yield Diagnostic(
                code="VAL013",
                what=f"the acknowledgement of {item.code} for `{item.subject}` does not hold",
                why=f"it is for a change that follows {item.after}, and the newest is {proposal.base}",
                fix="delete it; if the new change is intended, check it and acknowledge it again",
                subject=item.subject,
                at=Position(WORKSPACE_FILE),
                severity=Severity.WARNING,
            )


def acknowledge(
    proposal: DeltaProposal, found: Iterable[Diagnostic]
) -> tuple[list[Diagnostic], tuple[Acknowledgement, ...]]:
    """`found`, with acknowledged errors as warnings, and the acknowledgements that this needed.

    The remaining errors of guards explain how to acknowledge them.
    """
    diagnostics: list[Diagnostic] = []
    used: dict[Acknowledgement, None] = {}
    for item in found:
        held = _acknowledgement(proposal, item)
        if item.severity is not Severity.ERROR or item.code not in ACKNOWLEDGEABLE:
            diagnostics.append(item)
        elif held is None:
            diagnostics.append(replace(item, fix=f"{item.fix}; if it is intended, {_way(proposal, item)}"))
        else:
            used[held] = None
            why = f"{item.why}; acknowledged in {WORKSPACE_FILE}: {held.reason}"
            diagnostics.append(replace(item, severity=Severity.WARNING, why=why, fix=""))
    return diagnostics, tuple(used)


def _acknowledgement(proposal: DeltaProposal, item: Diagnostic) -> Acknowledgement | None:
    for held in proposal.limits.acknowledge:
        if held.code == item.code and held.after == proposal.base and fnmatchcase(item.subject, held.subject):
            return held
    return None


def _way(proposal: DeltaProposal, item: Diagnostic) -> str:
    entry = f"{{code: {item.code}, subject: {item.subject}, after: {proposal.base}, reason: WHY}}"
    return f"write `acknowledge: [{entry}]` in {WORKSPACE_FILE}, in the same change"
