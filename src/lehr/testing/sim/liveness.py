"""Rules between one write and another, which no single write shows.

The witness judges a write by the state when it is written. This module remembers what was looked
at, what failed and when things began, and judges by that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lehr.base.clock import Clock
from lehr.model.decision import Decision, Status
from lehr.model.diff import Goal, Target
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.model.types import Registry
from lehr.model.writes import (
    Admit,
    Adopt,
    Finish,
    LiftControl,
    Publish,
    RecordDecision,
    Refused,
    SetControl,
    TakeLease,
    Write,
)
from lehr.testing.sim.applied_content import AppliedContent
from lehr.testing.sim.order_judge import OrderJudge
from lehr.testing.sim.production import Production
from lehr.testing.sim.remembered_looks import REMEMBERED_SECONDS, RememberedLooks
from lehr.testing.sim.retry_judge import RetryJudge
from lehr.testing.sim.turndown_judge import TurndownJudge
from lehr.testing.sim.wanted_content import WantedContent
from lehr.testing.sim.witness import Witness

_ROUNDING = 0.01

_CHANGES = (Publish, SetControl, LiftControl)
"""Writes after which a failed push may be tried again immediately."""


class LivenessChecker:
    """Remembers, and reports broken rules to the witness.

    Attributes:
        contents: the content that assets should have.
        applied: the content that they have.
        retries: pushes that failed, and those after them.
        turndowns: those under way, and removals.
        began: when the last push of each asset was begun by its turn, in wall-clock seconds.
        asked_again: when a person asked last for a retry of each asset, likewise.
    """

    def __init__(self, witness: Witness, production: Production, registry: Registry, clock: Clock) -> None:
        self.contents = WantedContent(witness, registry, clock)
        self.applied = AppliedContent(witness, self.contents)
        self.retries = RetryJudge(witness, production, clock, self.contents)
        self.turndowns = TurndownJudge(witness, clock)
        self.began: dict[str, float] = {}
        self.asked_again: dict[str, float] = {}
        self._witness = witness
        self._broken = witness.broken
        self._clock = clock
        self._looks = RememberedLooks(clock)
        self._order = OrderJudge(witness, registry, clock, self._looks, self.contents, self.applied)
        self._wanted: dict[str, str | None] = {}
        production.looked = self._looks.remember
        production.carries = self._carries
        self._judges: dict[type, Callable[[Any, Any], None]] = {
            Admit: lambda write, answer: self._admitted(write) if answer is None else None,
            Adopt: lambda write, answer: self._adopted(write.ledger),
            Finish: lambda write, answer: self._finished(write),
            RecordDecision: lambda write, answer: self._recorded(write.decision),
            **dict.fromkeys(_CHANGES, lambda write, answer: self.retries.forget()),
            TakeLease: lambda write, answer: None if isinstance(answer, Refused) else self.retries.forget(),
        }

    def committed(self, write: Write, answer: Any) -> None:
        """This write has become durable, and the witness does not know yet."""
        judge = self._judges.get(type(write))
        if judge is not None:
            judge(write, answer)

    def _carries(self, target: Target, operation: Operation, value: Any) -> None:
        """I1: what a push carries out matches its content, and that of what it reads."""
        assets = self._witness.assets(operation.content)
        if target.goal is Goal.PRESENT and target.id in assets and operation.id in self._wanted:
            wanted = self._wanted.pop(operation.id)
            if value != wanted:
                self._broken("I1", f"{target.id} becomes {value!r}; its content is {wanted!r}")

    def _admitted(self, write: Admit) -> None:
        operation, decision = write.operation, write.decision
        self.began[operation.asset] = operation.started_at
        self.applied.admitted(operation)
        if decision is None:
            return  # which the witness reports
        content = self._witness.assets(operation.content).get(operation.asset)
        intact = operation.goal is Goal.PRESENT and not self._witness.jumped
        if intact:
            at = operation.started_at
            wanted = self.contents.value(operation.asset, operation.content, operation.governing, at)
            self._wanted[operation.id] = wanted
        if decision.diff is not None and decision.diff.look_again is not None:
            self._broken("I9", f"{operation.asset} is pushed although it recovers automatically")
        self.retries.admitted(operation)
        self.turndowns.admitted(operation)
        if intact and content is not None:
            self._order.admitted(operation, content, decision)

    def _finished(self, write: Finish) -> None:
        operation, result = self._witness.operation(write.operation), write.outcome.result
        if operation is None or result is Result.UNKNOWN:
            return
        self.retries.finished(operation, write)
        if result is Result.DONE and write.ledger is None:
            self._broken("I12", f"{operation.asset} is pushed, and the ledger does not know")
        if result is Result.DONE and write.outcome.message and write.ledger is not None:
            self._found(write.ledger)
        if write.ledger is not None:
            self.applied.entered(write.ledger)
            self.turndowns.pushed(write.ledger)

    def _recorded(self, decision: Decision) -> None:
        self.retries.recorded(decision)
        age = self._clock.now() - decision.at  # it is written late while the store is out of order
        converged = decision.condition.status is Status.CONVERGED
        if converged and not self._witness.jumped and age < REMEMBERED_SECONDS:
            since = self._clock.monotonic() - age - _ROUNDING
            looks = self._looks.at(decision.asset, decision.content, decision.goal)
            if not any(look.at >= since and look.diff.empty for look in looks):
                self._broken("I8", f"{decision.asset} is reported as intended without a look")

    def _adopted(self, entry: LedgerEntry) -> None:
        self.applied.entered(entry)
        self._found(entry)

    def _found(self, entry: LedgerEntry) -> None:
        """I12: a ledger's state without a push was seen in production."""
        if not self._looks.have_matched(entry.asset, entry.content, entry.goal):
            self._broken("I12", f"the ledger has {entry.content} of {entry.asset}, which no look has seen")
        self.retries.matched(entry)
        self.turndowns.entered(entry)
