"""Compares what was observed with intent, and computes the effects of a push. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.base.digest import digest_bytes, short
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal, bounded
from lehr.plugins.http_resource.compare import Difference, differences, shown
from lehr.plugins.http_resource.fields import MISSING, at
from lehr.plugins.workflow.payload import Workflow
from lehr.sdk.secrets import Hidden

_MOST_CHANGES = 30
_MOST_PATH = 200


def compared(workflow: Workflow, observed: Mapping[str, Any] | None, goal: Goal, hidden: Hidden) -> Diff:
    """The diff that the plugin reports.

    Args:
        observed: None if there is nothing.
        goal: PRESENT or ABSENT.
    """
    removal = workflow.remove
    absent = goal is Goal.ABSENT and (removal is None or removal.intended is None)
    if absent:
        found = [] if observed is None else [Change("observed", None, "present")]
        return _with_effects(found, workflow, goal, observed)
    intended = workflow.intended if goal is Goal.PRESENT or removal is None else removal.intended or {}
    changes = [] if observed is not None else [Change("observed", "present", None)]
    changes += [_change(item, hidden) for item in differences(intended, dict(observed or {}))]
    return _with_effects(changes, workflow, goal, observed)


def _with_effects(
    changes: list[Change], workflow: Workflow, goal: Goal, observed: Mapping[str, Any] | None
) -> Diff:
    if not changes:
        return NO_DIFF
    before = MISSING if workflow.version is None else at(observed, workflow.version)
    after = (
        MISSING
        if workflow.version is None or goal is not Goal.PRESENT
        else at(workflow.intended, workflow.version)
    )
    effects = Effects(
        version_from=before if isinstance(before, str) else None,
        version_to=after if isinstance(after, str) else None,
        destructive=workflow.destructive and goal is Goal.PRESENT,
        disruptive=workflow.disruptive,
    )
    return Diff(bounded(changes, "more", _MOST_CHANGES), effects)


def _change(item: Difference, hidden: Hidden) -> Change:
    before, after = shown(item.observed, hidden), shown(item.intended)
    if before == after or (before is None and item.observed is None):
        before = "null" if item.observed is None else f"{before} (another value)"
    return Change(_path(item.pointer), after, before)


def _path(pointer: str) -> str:
    path = pointer.removeprefix("/")
    if path.isprintable() and len(path) <= _MOST_PATH and path == path.strip("/"):
        return path
    return f"{path[:_MOST_PATH].strip('/')}... ({short(digest_bytes(path.encode(errors='replace')))})"
