"""Reports the findings of validators of plugins, which were asked before."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.errors import LehrError, StalledError
from lehr.sdk.asked_validator import Answered, Finding
from lehr.sdk.validator import WhenDown, code_of
from lehr.validate.disappearance import former_file
from lehr.validate.proposal import DeltaProposal

NO_ANSWER = "VAL080"


def found_by_plugins(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL080: every validator of a plugin that must judge a change has answered; and what each has found."""
    for item in proposal.answered:
        if isinstance(item.answer, LehrError):
            yield _unanswered(item, item.answer)
        else:
            yield from (_found(proposal, item.validator, finding) for finding in item.answer)


def _unanswered(item: Answered, error: LehrError) -> Diagnostic:
    """An error that is retried; a warning if the deployment allows it and the plugin is down.

    Where asking again is useless, the validator would never judge anything.
    """
    refused = item.when_down is WhenDown.REFUSE or isinstance(error, StalledError)
    code = f" ({error.code})" if error.code else ""
    return Diagnostic(
        code=NO_ANSWER,
        what=f"the validator `{item.validator}` has not judged the change: {error.what}{code}",
        why=error.why,
        fix=f"{error.fix or 'see `lehr plugin list`'}; Lehr retries automatically"
        if refused
        else "review the change: it is published without this validator",
        subject=item.validator,
        severity=Severity.ERROR if refused else Severity.WARNING,
    )


def _found(proposal: DeltaProposal, validator: str, finding: Finding) -> Diagnostic:
    return Diagnostic(
        code=code_of(validator, finding.code),
        what=finding.what,
        why=finding.why,
        fix=finding.fix,
        subject=finding.asset or validator,
        at=_place(proposal, finding),
        severity=finding.severity,
    )


def _place(proposal: DeltaProposal, finding: Finding) -> Position | None:
    if finding.asset is None:
        return None
    asset = proposal.asset(finding.asset)
    if asset is not None:
        return proposal.place(asset, finding.pointer)
    before = proposal.before(finding.asset)
    return None if before is None else former_file(before)
