"""Watches a history, write by write and push by push, and reports broken rules.

It keeps its own model of everything that was written, without SQL, and judges each write by the
state at that very moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from lehr.base.diagnostics import errors
from lehr.base.digest import digest, short
from lehr.model.asset import Asset
from lehr.model.attempt import Attempt, Publication
from lehr.model.decision import Decision
from lehr.model.diff import Target
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.incarnation import Incarnation
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.model.reason import Reason
from lehr.model.types import Registry
from lehr.model.writes import (
    Admit,
    Adopt,
    Finish,
    KeepHandle,
    KeepLease,
    KeepOutputs,
    LiftControl,
    Prune,
    Publish,
    RecordAttempt,
    RecordDecision,
    ReturnLease,
    SetControl,
    TakeLease,
    Write,
    WriteReleases,
)
from lehr.testing.sim.admission_judge import AdmissionJudge
from lehr.testing.sim.answer_judge import AnswerJudge
from lehr.testing.sim.capacity import CAPACITY
from lehr.testing.sim.feed_judge import FeedJudge
from lehr.testing.sim.lease_judge import LeaseJudge
from lehr.testing.sim.output_judge import OutputJudge
from lehr.testing.sim.publication_judge import PublicationJudge
from lehr.testing.sim.rate_limit_judge import RateLimitJudge
from lehr.testing.sim.reached import paths_of
from lehr.testing.sim.release_judge import ReleaseJudge
from lehr.testing.sim.rollout_judge import RolloutJudge
from lehr.testing.sim.selectors import selected
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.witnessed_state import Published, WitnessedState

_NO_DELAYS = (Reason.OUTSIDE_WINDOW, Reason.RATE_LIMITED, Reason.MONITOR_HOLDS, Reason.MONITOR_UNKNOWN)
"""Reasons that never delay a rollback."""


class Witness(WitnessedState):
    """The writes so far, and everything wrong with them.

    Attributes:
        violations: one line each, with the rule's id.
        admitted: ids of all operations there ever were.
        let_prune: those of them that were not needed when something was pruned.
        reached: how often each path was taken.
        publications: what was published.
        admissions: what was admitted.
        rate_limits: how many pushes have started.
        promises: the answers that people got to their commands.
        lease: who may write.
        releases: which content assets may have.
        outputs: those that were recorded.
        feed: what watchers see of all this.
        fenced: True where the provider itself keeps late writers out.
        capacity: operations that may be open at once; None where no check counts them.
    """

    def __init__(self, registry: Registry, trace: Trace) -> None:
        super().__init__(registry)
        self.violations: list[str] = []
        self.admitted: list[str] = []
        self.let_prune: set[str] = set()
        self.reached: Counter[str] = Counter()
        self.fenced = False
        self.capacity: int | None = CAPACITY
        self.publications = PublicationJudge(self.broken, self)
        self.promises = AnswerJudge(self.broken, self)
        self.lease = LeaseJudge(self.broken)
        self.releases = ReleaseJudge(
            self.broken,
            self.assets,
            self.ledger,
            lambda: "" if self.newest is None else self.newest.header.governance,
            self._policed,
            lambda: 0 if self.newest is None else self.newest.header.sequence,
        )
        self.admissions = AdmissionJudge(self.broken, self, self.releases)
        self.rate_limits = RateLimitJudge(self.broken, self)
        self.rollouts = RolloutJudge(self.broken, self, self.releases, lambda: self.monotonic())
        self._policies: tuple[int, list[dict[str, Any]]] = 0, []
        self.monotonic: Callable[[], float] = lambda: 0.0
        self.outputs = OutputJudge(self.broken)
        self.feed = FeedJudge(self.broken)
        self._trace = trace
        self._begun: set[str] = set()
        self._pushes: dict[str, list[str]] = {}
        self._answers: dict[type, Callable[[Any, Any], object]] = {
            Publish: self._published,
            Admit: self._admit,
            Finish: self._finish,
            Adopt: lambda write, answer: self._enter(write.ledger),
            RecordDecision: lambda write, answer: self._decided(write.decision),
            RecordAttempt: lambda write, answer: self._attempted(write.attempt),
            SetControl: self._set,
            Prune: lambda write, answer: self._pruned(write.before),
            LiftControl: lambda write, answer: self.controls.pop(write.id, None),
            WriteReleases: self._released,
            KeepOutputs: self.outputs.kept,
            TakeLease: self.lease.taken,
            KeepLease: self.lease.kept,
            ReturnLease: self.lease.returned,
        }

    # --- what is written -----------------------------------------------------------

    def committed(self, writes: Sequence[Write], answers: Sequence[Any]) -> None:
        """These writes have become durable."""
        for write, answer in zip(writes, answers, strict=True):
            self.reached.update(paths_of(write, answer))
            take = self._answers.get(type(write))
            if take is not None:
                take(write, answer)
            if not isinstance(write, KeepLease | KeepHandle | ReturnLease):
                self._trace.note("write", f"{type(write).__name__} {_write_summary(write, answer)}")

    def begins(self, target: Target, operation: Operation) -> None:
        """A push begins in production."""
        admitted = self.open.get(target.id)
        if admitted is None or admitted.id != operation.id:
            self.broken("I3", f"push of {target.id} without an open operation")
        if operation.id in self._begun:
            self.broken("I5", f"operation {operation.id} of {target.id} is pushed a second time")
        self.lease.begins(operation, fenced=self.fenced)
        same = (target.incarnation, target.goal) == (operation.content, operation.goal)
        if not same:
            self.broken("I1", f"push of {target.id} to another target than was admitted")
        self._begun.add(operation.id)
        self.rollouts.pushed(target.id, operation.content)

    def broken(self, rule: str, what: str) -> None:
        """Report that `rule` is broken."""
        self.violations.append(f"{rule}: {what}")

    def _published(self, write: Publish, answer: object) -> None:
        if not isinstance(answer, Incarnation):
            return
        assets = self.publications.published(write, answer)
        self.incarnations[answer.sequence] = Published(answer, assets)
        self._trace.note("publish", f"{answer.name}: {answer.assets} assets, {answer.changed} changed")
        self.rollouts.published()

    def _pruned(self, before: float) -> None:
        """Pushes that have ended, but for each asset's last and the one that production holds."""
        needed = {item.id for item in self.open.values()} | {item.operation for item in self.ledger.values()}
        for ids in self._pushes.values():
            self.let_prune.update(id for id in ids[:-1] if id not in needed)
        self.releases.pruned(before)

    def _set(self, write: SetControl, answer: object) -> None:
        if answer is None:
            self.controls[write.control.id] = write.control

    def _admit(self, write: Admit, answer: object) -> None:
        if answer is not None:
            return
        operation, decision = write.operation, write.decision
        if operation.asset in self.open:
            self.broken("I5", f"two open operations of {operation.asset}")
        if decision is None or decision.operation != operation.id:
            self.broken("I3", f"operation of {operation.asset} without a decision")
        else:
            self._decided(decision)
            if not all(verdict.allow for verdict in decision.verdicts):
                self.broken("I3", f"{operation.asset} was admitted although a check waits")
        asset = self.admissions.admitted(operation, decision)
        self._limits(operation, asset)
        self.open[operation.asset] = operation
        self.admitted.append(operation.id)
        self._pushes.setdefault(operation.asset, []).append(operation.id)

    def _delays(self, decision: Decision) -> None:
        """I7: the newer content may be what is broken."""
        waiting = {verdict.reason: verdict for verdict in decision.verdicts if not verdict.allow}
        if not self.releases.knows_release(decision.asset, decision.evidence.get("release")):
            return
        for reason in _NO_DELAYS:
            if reason in waiting and self.admissions.goes_back(decision, decision.evidence["content_digest"]):
                self.broken("I7", f"{decision.asset} is not rolled back: {waiting[reason].message}")

    def _limits(self, operation: Operation, asset: Asset | None) -> None:
        if self.capacity is not None and len(self.open) >= self.capacity:
            self.broken("I3", f"{operation.asset} is admitted beyond the capacity")
        back = self.admissions.goes_back(operation, operation.content_digest)
        if asset is not None and not self.jumped and not back:
            self.rate_limits.admitted(operation, asset)

    def _finish(self, write: Finish, answer: object) -> None:
        operation = self.operation(write.operation)
        if operation is None:
            return
        if write.outcome.result is Result.UNKNOWN:
            self.open[operation.asset] = replace(operation, result=Result.UNKNOWN)
            return
        del self.open[operation.asset]
        if write.ledger is not None:
            self._enter(write.ledger)

    def _released(self, write: WriteReleases, answer: object) -> None:
        self.rollouts.written(write, answer)
        self.releases.written(write, answer)

    def _enter(self, entry: LedgerEntry) -> None:
        self.ledger[entry.asset] = entry
        self.rollouts.entered(entry)

    def _policed(self, id: str) -> bool:
        """Whether a rollout policy selects an asset, as intent last had it."""
        newest = 0 if self.newest is None else self.newest.header.sequence
        if self._policies[0] != newest:
            self._policies = newest, list(self.payloads(ROLLOUT_POLICY).values())
        _at, policies = self._policies
        last = self.last(id) if policies else None
        return last is not None and any(selected(item["select"], last) for item in policies)

    def _decided(self, decision: Decision) -> None:
        id, condition = decision.asset, decision.condition
        before = self.decisions.get(id)
        self.decisions[id] = decision
        self._trace.note("decision", f"{id} is {condition.status} {condition.reason}: {condition.message}")
        if not 1 <= decision.governing <= max(self.incarnations, default=0):
            self.broken("I1", f"decision on {id} is governed by {decision.governing}, which does not exist")
        if decision.content > decision.governing and "pin" not in decision.evidence:
            self.broken("I1", f"decision on {id} has content {decision.content} of the future")
        if "pin" not in decision.evidence and not self.jumped:
            self.releases.decided(decision)
        self.rollouts.decided(decision)
        if not condition.status.settled and not (condition.message and condition.unblock):
            self.broken("I8", f"{id} is {condition.status} {condition.reason}, and that is all")
        if before is not None and before.condition.key() == condition.key() and not self._came_back(id):
            self.broken("I8", f"decision on {id} is recorded again: {condition.reason}")
        self._delays(decision)
        self.outputs.decided(decision)

    def _attempted(self, attempt: Attempt) -> None:
        failed = attempt.publication in (Publication.REFUSED, Publication.UNREADABLE)
        if failed and not errors(attempt.diagnostics):
            self.broken("I8", f"a revision is {attempt.publication.value}, and no diagnostic explains why")

    def _came_back(self, id: str) -> bool:
        """Whether the asset may have been forgotten in between, because intent had let it go."""
        return any(id not in item.assets for item in self.incarnations.values())


def _write_summary(write: Write, answer: object) -> str:
    """The distinguishing part of a write, in a line: equal runs write the same."""
    return f"{short(digest(write))} {type(answer).__name__}"
