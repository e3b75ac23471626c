"""The validators that every candidate has to pass, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.validate.claims import claimed_twice
from lehr.validate.dependencies import depends_in_circle, depends_on_turned_down
from lehr.validate.disappearance import disappeared, let_go_is_present, type_changed
from lehr.validate.proposal import DeltaProposal
from lehr.validate.references import reference_missing, reference_of_wrong_type
from lehr.validate.rules import rule_is_not_understood
from lehr.validate.shrinking import emptied, shrinks_too_much
from lehr.validate.versions import needed_version_is_never_reached

VALIDATORS: tuple[Callable[[DeltaProposal], Iterator[Diagnostic]], ...] = (
    emptied,
    disappeared,
    type_changed,
    shrinks_too_much,
    let_go_is_present,
    reference_missing,
    reference_of_wrong_type,
    depends_in_circle,
    depends_on_turned_down,
    needed_version_is_never_reached,
    rule_is_not_understood,
    claimed_twice,
)


def validate(proposal: DeltaProposal) -> list[Diagnostic]:
    """Everything that `VALIDATORS` find, in their order."""
    return [diagnostic for validator in VALIDATORS for diagnostic in validator(proposal)]
