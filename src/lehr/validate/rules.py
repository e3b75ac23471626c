"""Rules of dependencies can be understood."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic
from lehr.cel import compile_condition
from lehr.model.addons import DEPENDS_ON, RULE_VARIABLES, DependsOn
from lehr.validate.proposal import AssetView


def rule_is_not_understood(view: AssetView) -> Iterator[Diagnostic]:
    """VAL006: every rule compiles. Whether it answers is known only when it is asked."""
    asset = view.change.after
    addon = None if asset is None else view.registry.addon(asset, DEPENDS_ON, DependsOn)
    if asset is None or addon is None:
        return
    for place, rule in enumerate(addon.rules):
        try:
            compile_condition(rule.allow, RULE_VARIABLES)
        except ValueError as error:
            yield Diagnostic(
                code="VAL006",
                what=f"the rule of `{asset.id}` on `{rule.asset}` cannot be understood",
                why=str(error),
                fix="write it in CEL over `mine` and `theirs`: theirs.empty || mine.capacity > 0",
                subject=asset.id,
                at=view.place(asset, f"/addons/{DEPENDS_ON}/rules/{place}/allow"),
            )
