"""The compared part of the state of two runs: all of it but identifiers and times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lehr.base.digest import Digest, digest
from lehr.model.decision import Condition, Decision
from lehr.model.incarnation import Incarnation
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.model.writes import (
    Admit,
    Adopt,
    Finish,
    LiftControl,
    Publish,
    Record,
    RecordAttempt,
    SetControl,
    Touch,
    Write,
)


class Written:
    """Everything that has become durable, kept up write by write, without SQL.

    Attributes:
        conditions: the last one of each asset.
        ledger: (content digest, goal) by asset.
        open: operations that have not ended, by asset.
        incarnation: digest of the newest one; empty before the first.
        revision: that the last pass over the source has read; empty if it could not.
    """

    def __init__(self) -> None:
        self.conditions: dict[str, Condition] = {}
        self.ledger: dict[str, tuple[str, str]] = {}
        self.open: dict[str, Operation] = {}
        self.incarnation = ""
        self.revision = ""
        self._controls: dict[str, str] = {}
        self._take: dict[type, Callable[[Any, Any], None]] = {
            Publish: self._publish,
            RecordAttempt: self._attempt,
            Admit: self._admit,
            Finish: self._finish,
            Adopt: lambda write, answer: self._enter(write.ledger),
            Record: lambda write, answer: self._decide(write.decision),
            Touch: lambda write, answer: self.conditions.update({write.key.id: write.condition}),
            SetControl: lambda write, answer: self._control(write),
            LiftControl: lambda write, answer: self._lift(write.id),
        }

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """These writes have become durable."""
        for write, answer in zip(writes, answers, strict=True):
            take = self._take.get(type(write))
            if take is not None:
                take(write, answer)

    def standing(self) -> dict[str, tuple[str, str]]:
        """Status and reason by asset."""
        return {id: (item.status, item.reason) for id, item in self.conditions.items()}

    def digest(self, production: Mapping[str, Any]) -> Digest:
        """Equal for equal states: what is written, and what `production` holds."""
        pushes = sorted((id, item.goal, item.content_digest, item.result) for id, item in self.open.items())
        controls = sorted(self._controls.values())
        parts = (self.standing(), self.ledger, pushes, self.incarnation, self.revision, controls, production)
        return digest(parts)

    def _publish(self, write: Publish, answer: object) -> None:
        if isinstance(answer, Incarnation):
            self.incarnation = answer.digest

    def _attempt(self, write: RecordAttempt, answer: object) -> None:
        sources = write.attempt.sources
        self.revision = sources[0].revision if sources else ""

    def _admit(self, write: Admit, answer: object) -> None:
        if answer is not None:
            return
        self.open[write.operation.asset] = write.operation
        if write.decision is not None:
            self._decide(write.decision)

    def _finish(self, write: Finish, answer: object) -> None:
        id = next((id for id, item in self.open.items() if item.id == write.operation), None)
        if id is None:
            return
        if write.outcome.result is Result.UNKNOWN:
            self.open[id] = replace(self.open[id], result=Result.UNKNOWN)
            return
        del self.open[id]
        if write.ledger is not None:
            self._enter(write.ledger)

    def _enter(self, entry: LedgerEntry) -> None:
        self.ledger[entry.asset] = (entry.content_digest, entry.goal)

    def _decide(self, decision: Decision) -> None:
        self.conditions[decision.asset] = decision.condition

    def _control(self, write: SetControl) -> None:
        item = write.control
        self._controls[item.id] = f"{item.kind} {item.selector} {item.incarnation} {item.diff_digest}"

    def _lift(self, id: str) -> None:
        self._controls.pop(id, None)
