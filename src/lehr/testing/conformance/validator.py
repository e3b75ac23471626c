"""The rules for validators that run in other processes (`lehr.sdk.asked_validator`).

In: a validator, and a change with the problems that it should find. Out: `AssertionError` naming the rule
that it breaks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lehr.base.blocking import Inline
from lehr.base.diagnostics import Severity
from lehr.base.errors import LehrError
from lehr.model.asset import AssetId
from lehr.model.incarnation import AssetChange
from lehr.sdk.asked_validator import AskedValidator, Finding
from lehr.sdk.validator import Proposal
from lehr.testing.conformance.rules import Rules, hold


class Expected(NamedTuple):
    """A problem, without its texts."""

    code: str
    severity: Severity
    asset: AssetId | None
    pointer: str


@dataclass(frozen=True)
class Subject:
    """A validator, and a change that it judges.

    Attributes:
        make: makes the validator.
        problems: everything that it should find.
    """

    make: Callable[[], AskedValidator]
    proposal: Proposal
    problems: Sequence[Expected]

    async def findings(self, validator: AskedValidator, changes: Iterable[AssetChange]) -> list[Finding]:
        """Its findings in some of the changes."""
        answer = await validator.ask(_Part(self.proposal, changes), Inline())
        if isinstance(answer, LehrError):
            raise AssertionError(f"it has no answer: {answer}")
        return list(answer)


Rule = Callable[[Subject], Coroutine[Any, Any, None]]


class _Part:
    """Some of the changes of a proposal. The candidate is the same."""

    def __init__(self, proposal: Proposal, changes: Iterable[AssetChange]) -> None:
        self._proposal = proposal
        self._some = list(changes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proposal, name)

    def changes(self) -> Iterable[AssetChange]:
        return self._some


RULES: Rules[Rule] = Rules()


@RULES
async def finds_what_is_expected(subject: Subject) -> None:
    """It finds exactly the problems that the subject names."""
    found = await subject.findings(subject.make(), subject.proposal.changes())
    actual, expected = Counter(map(_described, found)), Counter(subject.problems)
    missing, more = list((expected - actual).elements()), list((actual - expected).elements())
    hold(not missing, f"it does not find {_listed(missing)}; it finds {_listed(actual.elements())}")
    hold(not more, f"it also finds {_listed(more)}")


@RULES
async def problems_are_explained(subject: Subject) -> None:
    """Each problem has a description, and a way to fix it."""
    for finding in await subject.findings(subject.make(), subject.proposal.changes()):
        hold(bool(finding.what), f"{finding.code} has no description")
        hold(bool(finding.fix), f"{finding.code} has no fix: {finding.what}")


@RULES
async def findings_can_be_repeated(subject: Subject) -> None:
    """Asked again about the same change, it finds the same: it keeps no state that matters."""
    validator = subject.make()
    first = await subject.findings(validator, subject.proposal.changes())
    again = await subject.findings(validator, subject.proposal.changes())
    hold(again == first, f"it finds {first}, and then {again}")


@RULES
async def order_does_not_matter(subject: Subject) -> None:
    """The same changes in another order have the same problems."""
    validator, changes = subject.make(), list(subject.proposal.changes())
    first = await subject.findings(validator, changes)
    reverse = await subject.findings(validator, reversed(changes))
    hold(_sorted(reverse) == _sorted(first), f"it finds {first}, and in reverse order {reverse}")


@RULES
async def changes_can_be_divided(subject: Subject) -> None:
    """Asked about one changed asset at a time, it finds the same, because a large change is divided."""
    validator, changes = subject.make(), list(subject.proposal.changes())
    together = await subject.findings(validator, changes)
    divided = [item for change in changes for item in await subject.findings(validator, [change])]
    hold(_sorted(divided) == _sorted(together), f"it finds {together}, and one at a time {divided}")


def _described(finding: Finding) -> Expected:
    return Expected(finding.code, finding.severity, finding.asset, finding.pointer)


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=repr)


def _listed(problems: Iterable[Expected]) -> str:
    return (
        ", ".join(f"{item.severity} {item.code} of {item.asset}{item.pointer}" for item in problems)
        or "nothing"
    )
