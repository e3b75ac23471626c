"""Carries out commands: control, audit entry and wake-up in one go."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from lehr.base.errors import LehrError, TransientError
from lehr.base.log import Log
from lehr.control.commands import (
    approved,
    control_of,
    lifted,
    pruned_summary,
    require_restartable,
    summary,
)
from lehr.control.messages import (
    AnyRequest,
    Approve,
    CommandResult,
    CommandRollout,
    Controlling,
    Lift,
    Override,
    PruneHistory,
    Refresh,
    ReleaseToIntent,
    Report,
    Restart,
    Retry,
)
from lehr.control.retention import pruned
from lehr.control.tenure import Tenure
from lehr.enforce.governance import Governance
from lehr.enforce.overrides import require_overridable
from lehr.enforce.step import RETRY
from lehr.enforce.to_intent import to_intent
from lehr.model.asset import Asset, AssetId, AssetKey
from lehr.model.attempt import Attempt
from lehr.model.control import AuditEntry, Control
from lehr.model.selector import parse_selector
from lehr.model.writes import (
    Audit,
    LeaseLostError,
    LiftControl,
    Prune,
    Pruned,
    Refused,
    SetControl,
    WriteReleases,
)
from lehr.query.run_state import RunState
from lehr.rollouts.commands import chosen_policy, commanded
from lehr.rollouts.commands import summary as summary_of_rollout
from lehr.rollouts.course import Course
from lehr.sdk.runtime import Runtime
from lehr.strategist.courses import read_courses

log = Log()

_ATTEMPTS = 5
"""How often a command is written, while others change releases in between."""


class Commander:
    """Carries out the commands sent to one partition's running program."""

    def __init__(
        self,
        runtime: Runtime,
        tenure: Callable[[], Tenure],
        refresh: Callable[[], Awaitable[Attempt]],
        run_state: Callable[[], RunState],
    ) -> None:
        """Commands of the partition of `runtime`.

        Args:
            tenure: what acts under the lease now.
            refresh: makes a pass over the source.
            run_state: the current state of this program.
        """
        self._runtime = runtime
        self._tenure = tenure
        self._refresh = refresh
        self._run_state = run_state

    async def carry_out(self, request: AnyRequest, actor: str) -> CommandResult:
        """Carry out `request`, given by `actor`; a refusal is also an answer. Both are audited.

        Refreshing the source is not audited: it changes nothing that a regular pass would not. A process that
        stands by only reports.
        """
        standby = self._run_state().standby
        if standby and not isinstance(request, Report):
            fix = "send it to the process that enforces the partition"
            return CommandResult(False, "this process does not enforce the partition", standby, fix, "CTL136")
        command = _Command(self._runtime, self._tenure(), self._refresh, self._run_state)
        return await command.carry_out(request, actor)


class _Command:
    """One command, which ends with the tenure in which it began.

    Invariant: I5. The next tenure may not have the lease yet, and its Enforcer may not know any asset.
    """

    def __init__(
        self,
        runtime: Runtime,
        tenure: Tenure,
        refresh: Callable[[], Awaitable[Attempt]],
        run_state: Callable[[], RunState],
    ) -> None:
        """`tenure` is the current one; the other arguments are as in `Commander`."""
        self._partition = runtime.partition
        self._store = runtime.store
        self._committer = tenure.committer
        self._enforcer = tenure.enforcer
        self._strategist = tenure.strategist
        self._refresh = refresh
        self._reading = runtime.reading
        self._clock = runtime.clock
        self._chance = runtime.chance
        self._run_state = run_state
        self._governing = sorted(name for name, item in runtime.registry.types.items() if item.governs)

    async def carry_out(self, request: AnyRequest, actor: str) -> CommandResult:
        """As `Commander.carry_out`."""
        try:
            answer = await self._dispatch(request, actor)
        except LehrError as error:
            answer = CommandResult(False, error.what, error.why, error.fix, error.code)
        if not isinstance(request, Report | Refresh):  # the source is checked regularly anyway
            await self._audit(request, actor, answer)
        return answer

    async def _dispatch(self, request: AnyRequest, actor: str) -> CommandResult:
        match request:
            case Controlling():
                return await self._control(request, actor)
            case Lift():
                return await self._lift(request)
            case Retry():
                return await self._retry(request)
            case CommandRollout():
                return await self._command_rollout(request, actor)
            case ReleaseToIntent():
                return await self._release_to_intent(request, actor)
            case Refresh():
                return _result_of(await self._refresh())
            case Report():
                return self._report()
            case PruneHistory():
                return await self._prune(request)

    async def _audit(self, request: AnyRequest, actor: str, answer: CommandResult) -> None:
        arguments: dict[str, Any] = msgspec.to_builtins(request)
        entry = AuditEntry(
            at=self._clock.now(),
            actor=actor,
            command=arguments.pop("command"),
            arguments=arguments,
            result=answer.message if answer.ok else f"refused: {answer.message}",
        )
        write = Audit(self._partition, entry)
        try:
            await self._committer.ask(write)
        except TransientError:
            # The outcome is final either way: the audit entry follows when it can.
            self._committer.post([write])
        except LeaseLostError:
            log.warning("a command is not in the audit log: the lease is lost", **msgspec.to_builtins(entry))

    async def _control(self, request: Controlling, actor: str) -> CommandResult:
        now = self._clock.now()
        newest = await self._reading.run(self._store.intent.newest, self._partition)
        control = control_of(
            request,
            id=self._chance.identifier(now),
            partition=self._partition,
            actor=actor,
            now=now,
            newest=0 if newest is None else newest.sequence,
        )
        if isinstance(request, Override):
            assets = (
                [] if newest is None else await self._reading.run(self._governing_assets, newest.sequence)
            )
            require_overridable(request.check, assets)
        ids = await self._enforcer.select(control.selector)
        if not ids:
            raise LehrError(
                f"no asset is selected by {control.selector}",
                code="CTL105",
                fix="see `lehr get assets` for the existing ones",
            )
        if isinstance(request, Restart):
            require_restartable(control.selector, self._enforcer.restarts(ids[0]))
        if isinstance(request, Approve):
            control = await self._bound(control, request)
        [refused] = await self._committer.ask(SetControl(control))
        if isinstance(refused, Refused):
            raise LehrError(
                refused.message, code="CTL106", fix="see `lehr get incarnations` for the ones that are kept"
            )
        await self._enforcer.controls_changed(control.selector, f"{control.kind} by {actor}")
        return CommandResult(
            True, summary(control, _count(len(ids))), assets=tuple(ids), content={"id": control.id}
        )

    def _governing_assets(self, sequence: int) -> list[Asset]:
        return list(self._store.intent.assets(self._partition, sequence, self._governing))

    async def _bound(self, control: Control, request: Approve) -> Control:
        ids = control.selector.ids
        if not control.selector.is_one_id:
            raise LehrError("an approval is for one asset", code="CTL107", fix="name it by its id")
        decisions = await self._reading.run(
            self._store.records.decisions, self._partition, AssetId(ids[0]), 1
        )
        return approved(control, request, decisions[0][1] if decisions else None)

    async def _lift(self, request: Lift) -> CommandResult:
        now = self._clock.now()
        _version, controls = await self._reading.run(self._store.records.controls, self._partition, now)
        found = lifted(request, controls)
        await self._committer.ask(*(LiftControl(self._partition, item.id, now) for item in found))
        ids: dict[AssetId, None] = {}
        for item in found:
            await self._enforcer.controls_changed(item.selector, f"{item.kind} was lifted")
            ids.update(dict.fromkeys(await self._enforcer.select(item.selector)))
        names = ", ".join(str(item.selector) for item in found)
        return CommandResult(True, f"{request.kind} lifted for {names}", assets=tuple(ids))

    async def _command_rollout(self, request: CommandRollout, actor: str) -> CommandResult:
        policy = AssetId("")

        async def write(governance: Governance) -> WriteReleases:
            nonlocal policy
            policy = chosen_policy(request.policy, governance.policies.items)
            now, course = self._clock.now(), await self._reading.run(self._course_of, policy)
            evidence = commanded(
                request.action,
                policy,
                course,
                partition=self._partition,
                actor=actor,
                reason=request.reason,
                now=now,
            )
            version = governance.releases.version
            return WriteReleases(self._partition, version, governance.digest, now, evidence=(evidence,))

        await self._write_releases(write)
        return CommandResult(True, summary_of_rollout(request.action, policy))

    async def _release_to_intent(self, request: ReleaseToIntent, actor: str) -> CommandResult:
        ids = await self._enforcer.select(parse_selector(request.selector))
        if not ids:
            raise LehrError(
                f"no asset is selected by {request.selector}", code="CTL108", fix="see `lehr get assets`"
            )
        assets = await self._reading.run(self._last, ids)
        departed = await self._reading.run(self._departed, ids)
        released: tuple[AssetId, ...] = ()

        async def write(governance: Governance) -> WriteReleases:
            nonlocal released
            now = self._clock.now()
            releases = to_intent(
                request.selector,
                assets,
                governance,
                departed=departed,
                actor=actor,
                reason=request.reason,
                now=now,
                identifier=lambda: self._chance.identifier(now),
            )
            released = tuple(item.asset for item in releases)
            version = governance.releases.version
            return WriteReleases(self._partition, version, governance.digest, now, releases)

        await self._write_releases(write)
        which = released[0] if len(released) == 1 else _count(len(released))
        return CommandResult(True, f"{which} will follow intent again", assets=released)

    async def _write_releases(self, write: Callable[[Governance], Awaitable[WriteReleases]]) -> None:
        """Write what `write` makes of the current governance, again if that has changed in between."""
        refused: Refused | None = None
        for _attempt in range(_ATTEMPTS):
            governance = self._enforcer.governance
            if governance is None:
                break
            [refused] = await self._committer.ask(await write(governance))
            await self._enforcer.releases_changed()
            if refused is None:
                self._strategist.wake()
                return
        why = "the control plane is starting" if refused is None else refused.message
        raise LehrError("the command was not carried out", code="CTL145", why=why, fix="try again")

    def _last(self, ids: Sequence[AssetId]) -> list[Asset]:
        """The assets as intent last had them."""
        keys = (AssetKey(self._partition, id) for id in ids)
        found = (self._store.intent.last(key) for key in keys)
        return [last[0] for last in found if last is not None]

    def _departed(self, ids: Sequence[AssetId]) -> frozenset[AssetId]:
        """Those of them that the newest incarnation does not have."""
        return frozenset(ids) - {head.id for head in self._store.intent.heads(self._partition, ids)}

    def _course_of(self, policy: AssetId) -> Course:
        return read_courses(self._store.records, self._partition).of(policy)

    async def _retry(self, request: Retry) -> CommandResult:
        ids = await self._enforcer.select(parse_selector(request.selector))
        if not ids:
            raise LehrError(
                f"no asset is selected by {request.selector}", code="CTL108", fix="see `lehr get assets`"
            )
        self._committer.require()  # an Enforcer that has stopped would retry nothing
        for id in ids:
            self._enforcer.wake(id, RETRY)
        return CommandResult(True, f"{_count(len(ids))} will be retried now", assets=tuple(ids))

    async def _prune(self, request: PruneHistory) -> CommandResult:
        before = self._clock.now() - request.seconds

        async def ask(write: Prune) -> Pruned:
            [share] = await self._committer.ask(write)
            assert isinstance(share, Pruned)
            return share

        wanted = Prune(self._partition, request.keep, before)
        total = await pruned(ask, wanted, lambda: self._clock.sleep(0))
        return CommandResult(True, pruned_summary(total), content=msgspec.to_builtins(total))

    def _report(self) -> CommandResult:
        trouble = self._committer.trouble
        pushes = [
            {
                "asset": operation.asset,
                "operation": operation.id,
                "since": operation.started_at,
                "progress": progress,
            }
            for operation, progress in self._enforcer.pushes()
        ]
        content = {
            "state": msgspec.to_builtins(self._run_state()),
            "pid": os.getpid(),
            "partition": self._partition,
            "assets": self._enforcer.assets,
            "unsettled": len(self._enforcer.unsettled),
            "turns": self._enforcer.turns,
            "pushes": pushes,
            "store_trouble": self._enforcer.trouble if trouble is None else str(trouble),
        }
        return CommandResult(True, f"running as process {os.getpid()}", content=content)


def _result_of(attempt: Attempt) -> CommandResult:
    return CommandResult(
        True,
        f"{attempt.publication}: {attempt.partition}@{attempt.sequence}",
        assets=attempt.changed,
        content=msgspec.to_builtins(attempt),
    )


def _count(number: int) -> str:
    return "1 asset" if number == 1 else f"{number} assets"
