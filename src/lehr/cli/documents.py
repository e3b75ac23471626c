"""Values of the model as plain data for `-o json|yaml`: times in RFC 3339, nothing left out."""

from __future__ import annotations

from typing import Any

from lehr.base.moments import plain, rfc3339
from lehr.model.control import Control
from lehr.model.decision import Decision, Verdict
from lehr.model.incarnation import Incarnation
from lehr.model.operation import LedgerEntry, Operation
from lehr.query.asset_rows import Row
from lehr.query.run_state import RunState
from lehr.query.wait_conditions import HeldBack


def of_row(row: Row) -> dict[str, Any]:
    """An asset and its status."""
    return dict(plain(row))


def of_incarnation(incarnation: Incarnation) -> dict[str, Any]:
    """The header of an incarnation."""
    return {"name": incarnation.name, **plain(incarnation)}


def of_operation(operation: Operation) -> dict[str, Any]:
    """A push."""
    return dict(plain(operation))


def of_ledger(entry: LedgerEntry) -> dict[str, Any]:
    """The state last applied or adopted."""
    return dict(plain(entry))


def of_control(control: Control) -> dict[str, Any]:
    """A control; its selector as written on the command line."""
    return {**plain(control), "selector": str(control.selector)}


def of_held_back(held: HeldBack) -> dict[str, Any]:
    """An asset that a pin holds back."""
    return dict(plain(held))


def of_run_state(run: RunState) -> dict[str, Any]:
    """The `lehr run` of a state; when it was asked is left out."""
    document = dict(plain(run))
    del document["now"]
    return document


def of_report(report: dict[str, Any]) -> dict[str, Any]:
    """A `lehr run`'s report about itself; `of_run_state` has the rest."""
    pushes = [{**push, "since": rfc3339(push["since"])} for push in report["pushes"]]
    return {**{name: value for name, value in report.items() if name != "state"}, "pushes": pushes}


def of_verdict(verdict: Verdict) -> dict[str, Any]:
    """Verdict of one check."""
    return dict(plain(verdict))


def of_decision(number: int, decision: Decision) -> dict[str, Any]:
    """A decision with its number in the store."""
    return {"number": number, **plain(decision)}
