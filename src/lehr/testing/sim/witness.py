"""Watches a history, write by write and push by push, and reports broken rules.

It keeps its own model of everything that was written, without SQL, and judges each write by the
state at that very moment.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.diagnostics import errors
from lehr.base.digest import Digest, digest, short
from lehr.checks.rate_limit import RateLimit
from lehr.control.messages import Approve, Controlling, Lift
from lehr.model.asset import Asset
from lehr.model.attempt import Attempt, Publication
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Decision
from lehr.model.diff import Goal, Target
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import incarnation_digest
from lehr.model.operation import LedgerEntry, Operation, Purpose, Result
from lehr.model.reason import Reason
from lehr.model.selector import parse_selector
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
from lehr.testing.sim.capacity import CAPACITY
from lehr.testing.sim.feed_judge import FeedJudge
from lehr.testing.sim.intent import GUARDED
from lehr.testing.sim.lease_judge import LeaseJudge
from lehr.testing.sim.monitor_judge import MonitorJudge
from lehr.testing.sim.output_judge import OutputJudge
from lehr.testing.sim.reached import paths_of
from lehr.testing.sim.release_judge import ReleaseJudge
from lehr.testing.sim.rollout_judge import RolloutJudge
from lehr.testing.sim.selectors import selected
from lehr.testing.sim.source import NAME
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.witnessed_state import Published, WitnessedState, is_active
from lehr.testing.world import THING

_ROUNDING = 0.001
"""Seconds by which sums of times may differ."""


_DAY = 86_400.0
_NO_DELAYS = (Reason.OUTSIDE_WINDOW, Reason.RATE_LIMITED, Reason.MONITOR_HOLDS, Reason.MONITOR_UNKNOWN)
"""Reasons that never delay a rollback."""

_STAGES = (Goal.PRESENT, Goal.DRAINED, Goal.FENCED, Goal.ABSENT)


class _Start(msgspec.Struct, frozen=True):
    """A push that a rate limit counts, and the limit as it was then."""

    at: float
    key: tuple[str, ...]
    payload: dict[str, Any]


class Witness(WitnessedState):
    """The writes so far, and everything wrong with them.

    Attributes:
        violations: one line each, with the rule's id.
        admitted: ids of all operations there ever were.
        let_prune: those of them that were not needed when something was pruned.
        reached: how often each path was taken.
        revisions: digests by id of what each revision of the source declares; None for one that
            nothing may be published from.
        guards: for each revision of a guarded source, the incarnation that its acknowledgement is for, 0 for
            none; None where the source is not guarded.
        let_go: ids that some revision has let go.
        lease: who may write.
        releases: which content assets may have.
        outputs: those that were recorded.
        monitors: the answers that monitors got; None where nothing judges them.
        feed: what watchers see of all this.
        fenced: True where the provider itself keeps late writers out.
        capacity: operations that may be open at once; None where no check counts them.
    """

    def __init__(self, registry: Registry, trace: Trace) -> None:
        super().__init__(registry)
        self.violations: list[str] = []
        self.admitted: list[str] = []
        self.let_prune: set[str] = set()
        self.revisions: dict[str, dict[str, str] | None] = {}
        self.guards: dict[str, int | None] = {}
        self.let_go: set[str] = set()
        self.reached: Counter[str] = Counter()
        self.fenced = False
        self.capacity: int | None = CAPACITY
        self.lease = LeaseJudge(self.broken)
        self.releases = ReleaseJudge(
            self.broken,
            self.assets,
            self.ledger,
            lambda: "" if self.newest is None else self.newest.header.governance,
            self._policed,
            lambda: 0 if self.newest is None else self.newest.header.sequence,
        )
        self.rollouts = RolloutJudge(self.broken, self, self.releases, lambda: self.monotonic())
        self._policies: tuple[int, list[dict[str, Any]]] = 0, []
        self.monotonic: Callable[[], float] = lambda: 0.0
        self.monitors: MonitorJudge | None = None
        self.outputs = OutputJudge(self.broken)
        self.feed = FeedJudge(self.broken)
        self._trace = trace
        self._begun: set[str] = set()
        self._pushes: dict[str, list[str]] = {}
        self._applied: dict[str, int] = {}
        self._starts: deque[_Start] = deque(maxlen=256)
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
        before = self.assets()
        assets = dict(before)
        assets.update({asset.id: asset for asset in write.candidate.upserts})
        for id in write.candidate.removals:
            del assets[id]
            if self.turndown(before[id]) is None and id not in self.let_go and before[id].type == THING:
                self.broken("I4", f"{id} is gone from intent, and was not turned down or let go")
        for asset in write.candidate.upserts:
            self._keeps_its_type(asset, before.get(asset.id))
        self._guarded(write, before, assets)
        self.incarnations[answer.sequence] = Published(answer, assets)
        self._as_declared(write, answer, assets)
        self._trace.note("publish", f"{answer.name}: {answer.assets} assets, {answer.changed} changed")

    def _as_declared(self, write: Publish, incarnation: Incarnation, assets: dict[str, Asset]) -> None:
        """An incarnation is what its revision declares, and a digest of just that (I2, I11)."""
        revision = write.candidate.sources[0].revision
        declared = self.revisions.get(revision)
        found = {id: str(asset.digest) for id, asset in assets.items()}
        if declared is None:
            self.broken("I4", f"{incarnation.name} is published from a revision that is not whole")
        elif declared != found:
            differing = sorted(
                id for id in declared.keys() | found.keys() if declared.get(id) != found.get(id)
            )
            self.broken("I11", f"{incarnation.name} is not what its revision declares: {differing}")
        if incarnation.digest != incarnation_digest((asset.id, asset.digest) for asset in assets.values()):
            self.broken("I2", f"the digest of {incarnation.name} is not that of its assets")

    def _keeps_its_type(self, asset: Asset, before: Asset | None) -> None:
        """I4: an id is used for another type only once what it was is removed, or let go."""
        last = before or self.last(asset.id)
        if last is None or last.type == asset.type or self.turndown(last) is None:
            return
        entry = self.ledger.get(asset.id)
        if entry is not None and entry.goal is not Goal.ABSENT:
            self.broken("I4", f"{asset.id} becomes a {asset.type}, and is still being turned down")

    def _guarded(self, write: Publish, before: dict[str, Asset], after: dict[str, Asset]) -> None:
        """I4: one change takes away only so much, unless exactly that was acknowledged."""
        acknowledged = self.guards.get(write.candidate.sources[0].revision)
        if acknowledged is None or acknowledged == max(self.incarnations, default=0):
            return
        for kept in (set(before), {id for id, asset in before.items() if asset.type == THING}):
            lost = [
                id
                for id in kept
                if self.turndown(before[id]) is None
                and (id not in after or self.turndown(after[id]) is not None)
            ]
            if len(lost) > GUARDED["floor"] and len(lost) * 100 > GUARDED["percent"] * len(kept):
                self.broken("I4", f"one change takes away {sorted(lost)} of {len(kept)}, beyond the guard")

    def lifted(self, request: Lift, before: Iterable[Control], now: float) -> None:
        """A person got the answer that controls are lifted: those that were asked for, and no others."""
        asked = parse_selector(request.selector)
        for control in before:
            if not is_active(control, now) or self.jumped:
                continue
            plain = not (control.selector.all or asked.types or asked.labels)
            plain = plain and not (control.selector.types or control.selector.labels)
            covered = asked.all or control.selector == asked
            covered = covered or (plain and set(control.selector.ids) <= set(asked.ids))
            meant = str(control.kind) == request.kind and covered
            if meant and control.id in self.controls:
                self.broken("I12", f"{control.kind} of {control.selector} counts as lifted, and is active")
            if not meant and control.id not in self.controls:
                self.broken("I12", f"{control.kind} of {control.selector} is gone, and was not lifted")

    def refreshed(self, sources: Iterable[dict[str, str]], since: Sequence[str]) -> None:
        """A person got the answer to a refresh: it is about what there was when they asked, or later."""
        for source in sources:
            if source["source"] == NAME and source["revision"] not in since:
                self.broken("I7", "a refresh is answered by a pass over an older revision")

    def promised(self, request: Controlling, id: str) -> None:
        """A person was answered that control `id` is active: it is durable, and what was asked for (I12)."""
        control = self.controls.get(id)
        if control is None:
            self.broken("I12", f"control {id} is reported as active, and is not written")
        elif isinstance(request, Approve) and control.diff_digest != request.diff_digest:
            self.broken("I4", f"approval {id} is for another diff than the one that was seen")

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
        asset = self._content_of(operation, pinned=decision is not None and "pin" in decision.evidence)
        if asset is not None:
            self._held(operation, asset)
            self._taken_out(operation, asset)
            self._goes_on(operation, asset)
        self._approved(operation, decision)
        self._limits(operation, asset)
        self.open[operation.asset] = operation
        self.admitted.append(operation.id)
        self._pushes.setdefault(operation.asset, []).append(operation.id)

    def _content_of(self, operation: Operation, *, pinned: bool) -> Asset | None:
        """The asset whose content is pushed; it must be the current one."""
        id, last = operation.asset, self.last(operation.asset)
        assert last is not None
        if pinned and self.pin_may_have_ended(last):
            return None  # whether the pin is active depends on the moment
        content = self.assets(operation.content).get(id)
        pin = self.active_control(ControlKind.PIN, last, operation.started_at)
        if content is None:
            self.broken("I1", f"{id} is pushed from {operation.content}, which does not have it")
            return None
        if self.releases.governs(id):
            self._as_released(operation, pin)
            return content
        if pin is not None and operation.content != pin.incarnation:
            self.broken("I6", f"{id} is pinned to {pin.incarnation} and pushed from {operation.content}")
        if pin is None:
            if operation.purpose is Purpose.ROLLBACK:
                self.broken("I6", f"{id} is rolled back without a pin")
            if content.digest != last.digest:
                self.broken("I1", f"{id} is pushed from {operation.content}, which is not its content")
            if operation.content < self._applied.get(id, 0):
                self.broken(
                    "I6", f"{id} goes back from {self._applied[id]} to {operation.content} without a pin"
                )
            self._applied[id] = operation.content
        return content

    def _as_released(self, operation: Operation, pin: Control | None) -> None:
        """I10: content that is not released is never pushed; a pin goes back further, and never ahead."""
        id, content = operation.asset, operation.content
        self._applied[id] = content
        back = pin is not None and content == pin.incarnation and content <= self.releases.base(id)
        if not back and not self.releases.allows(id, content):
            self.broken("I10", f"{id} is pushed from {content}, which is not released to it")

    def _held(self, operation: Operation, content: Asset) -> None:
        id, now = operation.asset, operation.started_at
        last = self.last(id)
        assert last is not None
        for asset, kind, type in (
            (last, ControlKind.PAUSE, "lehr.ObserveOnly"),
            (last, ControlKind.FREEZE, "lehr.Freeze"),
            (content, ControlKind.FREEZE, "lehr.Freeze"),
        ):
            if (found := self.active_control(kind, asset, now)) is not None:
                self.broken("I3", f"{id} is pushed while control {found.id} is active")
            if self.declared(type, asset, now):
                self.broken("I3", f"{id} is pushed while a {type} selects it")
        if self.jumped or self._goes_back(operation, operation.content_digest):
            return
        if closed := self.closed(last, now):
            self.broken("I3", f"{id} is pushed while {closed[0]} is closed")
        if self.monitors is not None and (bad := self.monitors.closed(last, self.payloads("lehr.Monitor"))):
            self.broken("I3", f"{id} is pushed while {bad[0]} has no good answer")

    def _goes_back(self, of: Operation | Decision, content_digest: Digest) -> bool:
        """Whether this is older content than what is in place: calendars and rate limits never delay it."""
        entry = self.ledger.get(of.asset)
        if entry is None:
            return False
        older = of.content < entry.content
        same = entry.goal is of.goal and content_digest == entry.content_digest
        if self.releases.takes_back(of.asset) and (older or same):
            return True  # also where pushes of the newer content have failed half-way
        return entry.goal is of.goal and older and content_digest != entry.content_digest

    def _delays(self, decision: Decision) -> None:
        """I7: the newer content may be what is broken."""
        waiting = {verdict.reason: verdict for verdict in decision.verdicts if not verdict.allow}
        if not self.releases.knows_release(decision.asset, decision.evidence.get("release")):
            return
        for reason in _NO_DELAYS:
            if reason in waiting and self._goes_back(decision, decision.evidence["content_digest"]):
                self.broken("I7", f"{decision.asset} is not rolled back: {waiting[reason].message}")

    def _taken_out(self, operation: Operation, content: Asset) -> None:
        id, goal, now = operation.asset, operation.goal, operation.started_at
        if goal is Goal.PRESENT:
            return
        addon = self.turndown(content)
        if addon is None:
            self.broken("I4", f"{id} goes to {goal} although content {operation.content} asks for none")
            return
        if self.referrers(id):
            self.broken("I4", f"{id} goes to {goal} although {self.referrers(id)} refer to it")
        if goal is Goal.ABSENT and not self.jumped:
            entry, last = self.ledger.get(id), self.last(id)
            # The newest intent for it decides how long it stays fenced, also where a pin holds it.
            addon = (None if last is None else self.turndown(last)) or addon
            if (
                entry is not None
                and entry.goal is Goal.FENCED
                and now < entry.at + addon.fence_seconds - _ROUNDING
            ):
                self.broken("I4", f"{id} is removed before its fence is old enough")

    def _goes_on(self, operation: Operation, content: Asset) -> None:
        """I4: what is turned down, and no longer needed, goes from stage to stage and never back."""
        id, entry = operation.asset, self.ledger.get(operation.asset)
        last = self.last(id)
        overtaken = self.newest is None or operation.governing != self.newest.header.sequence
        leaves = last is not None and all(self.turndown(asset) is not None for asset in (content, last))
        if entry is None or overtaken or not leaves or self.referrers(id):
            return
        if _STAGES.index(operation.goal) < _STAGES.index(entry.goal):
            self.broken("I4", f"{id} goes back from {entry.goal} to {operation.goal}")

    def _approved(self, operation: Operation, decision: Decision | None) -> None:
        diff = None if decision is None else decision.diff
        if diff is None or not diff.effects.destructive or operation.goal is not Goal.PRESENT:
            return
        if not any(
            item.kind is ControlKind.APPROVAL
            and item.selector.ids == (operation.asset,)
            and item.diff_digest == diff.digest()
            and is_active(item, operation.started_at)
            for item in self.controls.values()
        ):
            self.broken("I4", f"{operation.asset} is destroyed without an approval")

    def _limits(self, operation: Operation, asset: Asset | None) -> None:
        if self.capacity is not None and len(self.open) >= self.capacity:
            self.broken("I3", f"{operation.asset} is admitted beyond the capacity")
        if asset is None or self.jumped or self._goes_back(operation, operation.content_digest):
            return
        for id, payload in self.payloads("lehr.RateLimit").items():
            if not selected(payload["select"], asset) or any("/" in term for term in payload["group_by"]):
                continue
            # From the time when the turn began, which may be before one that was admitted already.
            latest = max(operation.started_at, *(item.at for item in self._starts), 0.0)
            # Starts counted for less time, before the limit changed, may be forgotten.
            if self._used(asset, id, payload, latest, payload) >= payload["pushes"]:
                self.broken("I3", f"{operation.asset} is admitted beyond the rate limit {id}")
            self._starts.append(_Start(operation.started_at, _counted_for(asset, id, payload), payload))

    def has_room(self, asset: Asset, id: str, now: float) -> bool:
        """Whether a push of an asset would be within the rate limit `id` now, if that still exists."""
        payload = self.payloads("lehr.RateLimit").get(id)
        return payload is None or self._used(asset, id, payload, now) < payload["pushes"]

    def _used(
        self, asset: Asset, id: str, payload: dict[str, Any], now: float, by: dict[str, Any] | None = None
    ) -> int:
        """Starts that count for a limit; `by`: only those that were counted by this very one."""
        since = now - msgspec.convert(payload, RateLimit).window()
        key = _counted_for(asset, id, payload)
        counted = [item for item in self._starts if item.at > since and item.key == key]
        return sum(1 for item in counted if by is None or item.payload == by)

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


def _counted_for(asset: Asset, limit: str, payload: dict[str, Any]) -> tuple[str, ...]:
    """The rate limit's key for a push of an asset."""
    return limit, *(_group(asset, term) for term in payload["group_by"])


def _group(asset: Asset, term: str) -> str:
    document = asset.document()
    labels = document["addons"].get("lehr.Labels", {}).get("labels", {})
    return str(labels.get(term.removeprefix("label:"), "") if term.startswith("label:") else document[term])


def _write_summary(write: Write, answer: object) -> str:
    """The distinguishing part of a write, in a line: equal runs write the same."""
    return f"{short(digest(write))} {type(answer).__name__}"
