"""Checks values in intent against databases."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.base.errors import LehrError, StalledError
from lehr.model.types import values_at
from lehr.sdk.validator import WhenDown
from lehr.validate.guards import WORKSPACE_FILE
from lehr.validate.proposal import AssetView, DeltaProposal

NOT_ASKED = "VAL051"


def unknown_to_database(view: AssetView) -> Iterator[Diagnostic]:
    """VAL050: a database knows every value that it must know."""
    asset = view.change.after
    rules = [rule for rule in view.limits.databases if asset is not None and rule.type == asset.type]
    if asset is None or not rules:
        return
    payload = asset.document()["payload"]
    for rule in rules:
        answer = view.answers.get(rule)
        if not isinstance(answer, frozenset):
            continue
        for pointer, value in values_at(payload, rule.field, "/payload"):
            if value is None or str(value) in answer:
                continue
            close = difflib.get_close_matches(str(value), answer, n=1)
            hint = f"did you mean `{close[0]}`? Or" if close else "fix the value, or"
            yield Diagnostic(
                code="VAL050",
                what=f"`{pointer}` of `{asset.id}` is `{value}`, which {rule.name} does not know",
                why=f"the query of that rule in {WORKSPACE_FILE} gives {len(answer)} other values",
                fix=f"{hint} add the value there first",
                subject=asset.id,
                at=view.place(asset, pointer),
            )


def database_is_not_asked(proposal: DeltaProposal) -> Iterator[Diagnostic]:
    """VAL051: every database that must judge a change has answered.

    A warning if the rule allows it and the database is down. A database that is up and refuses the rule's
    query would never judge anything.
    """
    for rule, answer in proposal.answers.items():
        if isinstance(answer, LehrError):
            refused = rule.when_down is WhenDown.REFUSE or isinstance(answer, StalledError)
            yield Diagnostic(
                code=NOT_ASKED,
                what=f"the rule `{rule.name}` cannot be checked: {answer.what}",
                why=answer.why,
                fix=(answer.fix or "see that the database answers; Lehr retries automatically")
                if refused
                else "review the change: it is published without this check",
                subject=rule.name,
                at=Position(WORKSPACE_FILE),
                severity=Severity.ERROR if refused else Severity.WARNING,
            )
