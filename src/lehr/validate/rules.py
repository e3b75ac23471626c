"""Rules of dependencies can be understood."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.cel import compile_condition
from lehr.base.diagnostics import Diagnostic
from lehr.model.addons import DEPENDS_ON, RULE_VARIABLES, DependsOn
from lehr.validate.proposal import DeltaProposal


def rule_is_not_understood(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL006: every rule compiles. Whether it answers is known only when it is asked."""
    for change in proposal.changes():
        if change.after is None:
            continue
        addon = proposal.registry.addon(change.after, DEPENDS_ON, DependsOn)
        for place, rule in enumerate(addon.rules if addon is not None else ()):
            try:
                compile_condition(rule.allow, RULE_VARIABLES)
            except ValueError as error:
                yield Diagnostic(
                    code="VAL006",
                    what=f"the rule of `{change.id}` on `{rule.asset}` cannot be understood",
                    why=str(error),
                    fix="write it in CEL over `mine` and `theirs`: theirs.empty || mine.capacity > 0",
                    subject=change.id,
                    at=proposal.place(change.after, f"/addons/{DEPENDS_ON}/rules/{place}/allow"),
                )
