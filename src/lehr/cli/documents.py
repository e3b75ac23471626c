"""Values as plain data for `-o json|yaml`, where `lehr.base.moments.plain` alone does not do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lehr.base.moments import plain, rfc3339
from lehr.model.control import Control
from lehr.model.decision import Decision
from lehr.model.incarnation import Incarnation
from lehr.query.explain import NumberedDecision
from lehr.query.explanation import control_document, decision_document
from lehr.query.run_state import RunState

if TYPE_CHECKING:
    from lehr.rollouts.status import RolloutStatus


def of_incarnation(incarnation: Incarnation) -> dict[str, Any]:
    """The header of an incarnation."""
    return {"name": incarnation.name, **plain(incarnation)}


def of_control(control: Control) -> dict[str, Any]:
    """A control; its selector as written on the command line."""
    return dict(plain(control_document(control)))


def of_rollout(status: RolloutStatus) -> dict[str, Any]:
    """The status of a policy's rollouts, without its units and earlier rollouts."""
    return dict(plain(status.summary))


def of_run_state(run: RunState) -> dict[str, Any]:
    """The `lehr run` of a state, without the time of the query."""
    document = dict(plain(run))
    del document["now"]
    return document


def of_report(report: dict[str, Any]) -> dict[str, Any]:
    """A `lehr run`'s report about itself; `of_run_state` has the rest."""
    pushes = [{**push, "since": rfc3339(push["since"])} for push in report["pushes"]]
    return {**{name: value for name, value in report.items() if name != "state"}, "pushes": pushes}


def of_decision(number: int, decision: Decision) -> dict[str, Any]:
    """A decision with its number in the store."""
    return dict(plain(decision_document(NumberedDecision(number, decision))))
