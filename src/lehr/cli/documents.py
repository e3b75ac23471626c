"""Values of the model as plain data for `-o json|yaml`: times in ISO 8601, nothing left out."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.cli.words import moment
from lehr.model.control import Control
from lehr.model.decision import Decision, Verdict
from lehr.model.incarnation import Incarnation
from lehr.model.operation import LedgerEntry, Operation
from lehr.query.run_state import RunState
from lehr.query.selecting import Row
from lehr.query.waiting import HeldBack


def _plain(value: msgspec.Struct, *times: str) -> dict[str, Any]:
    """The fields of `value`, those named in `times` turned from seconds to text."""
    document: dict[str, Any] = msgspec.to_builtins(value)
    for name in times:
        document[name] = moment(document[name])
    return document


def of_row(row: Row) -> dict[str, Any]:
    """An asset and how it stands."""
    return _plain(row, "since", "next_at")


def of_incarnation(incarnation: Incarnation) -> dict[str, Any]:
    """The header of an incarnation."""
    return {"name": incarnation.name, **_plain(incarnation, "created_at")}


def of_operation(operation: Operation) -> dict[str, Any]:
    """A push."""
    return _plain(operation, "started_at", "ended_at")


def of_ledger(entry: LedgerEntry) -> dict[str, Any]:
    """What was last applied or adopted."""
    return _plain(entry, "at")


def of_control(control: Control) -> dict[str, Any]:
    """A word of a person; its selector as one writes it on the command line."""
    return {**_plain(control, "at", "expires_at"), "selector": str(control.selector)}


def of_held_back(held: HeldBack) -> dict[str, Any]:
    """An asset that a pin holds back."""
    return _plain(held, "until")


def of_run_state(run: RunState) -> dict[str, Any]:
    """The `lehr run` of a state; when it was asked is left out."""
    document = _plain(run, "now", "seen_at", "source_looked_at", "production_looked_at")
    del document["now"]
    return document


def of_report(report: dict[str, Any]) -> dict[str, Any]:
    """What a `lehr run` reports of itself, for `of_run_state` has the rest."""
    pushes = [{**push, "since": moment(push["since"])} for push in report["pushes"]]
    return {**{name: value for name, value in report.items() if name != "state"}, "pushes": pushes}


def of_verdict(verdict: Verdict) -> dict[str, Any]:
    """What one check said."""
    return _plain(verdict, "until")


def of_decision(number: int, decision: Decision) -> dict[str, Any]:
    """A decision with its number in the store."""
    document = {"number": number, **_plain(decision, "at")}
    document["condition"] = _plain(decision.condition, "next_at")
    document["verdicts"] = [of_verdict(verdict) for verdict in decision.verdicts]
    return document
