"""Looks, plans the one next step, carries it out, tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import structlog

from etcd_operator.gateway import Answer, Etcd, Gateway, RefusedError
from etcd_operator.machine import Change, LocalMachine, Machine, Record
from etcd_operator.plan import Do, Home, Seen, Step, View, home_of, plan
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, TransientError
from lehr.client import Request
from lehr.model.addons import TURNDOWN
from lehr.model.asset import AssetId

log = structlog.get_logger()

SETTLING_SECONDS = 10.0
"""After so long, a change that has not happened will not: etcd gives it up after 7 seconds."""

_MOST_STARTS = 5
_REST_SECONDS = 2.0
_WAIT_SECONDS = 0.5
_REFUSED_SECONDS = 1.0
_STEP_SECONDS = 0.1


class Cluster(msgspec.Struct, frozen=True):
    """The payload of an `etcd.Cluster`."""

    size: int
    port: int


class Operator:
    """Keeps clusters as they are intended.

    Args:
        machine_of: what this machine has of a cluster, by asset and first port.
        etcd_of: how a cluster is asked, by its first port.
        chance: names first members.
    """

    def __init__(
        self, machine_of: Callable[[AssetId, int], Machine], etcd_of: Callable[[int], Etcd], chance: Chance
    ) -> None:
        self._machine_of = machine_of
        self._etcd_of = etcd_of
        self._chance = chance
        self._known: dict[AssetId, _Keeper] = {}

    async def reconcile(self, request: Request) -> float | None:
        """Take one step, if there is one to be taken."""
        if request.asset is None:
            # Absence is no order. The members that run go on, and nobody looks after them any more.
            log.warning("cluster is not in intent any more, its members are left alone", cluster=request.id)
            return None
        cluster = request.payload(Cluster)
        keeper = self._known.get(request.id)
        if keeper is None:
            machine, etcd = self._machine_of(request.id, cluster.port), self._etcd_of(cluster.port)
            keeper = self._known[request.id] = _Keeper(request.id, machine, etcd, request.clock, self._chance)
        turned_down = TURNDOWN in request.asset.document()["addons"]
        return await (keeper.turn_down() if turned_down else keeper.step(cluster))


class _Keeper:
    """Keeps one cluster. What it remembers are hints: without, it only takes longer."""

    def __init__(self, id: AssetId, machine: Machine, etcd: Etcd, clock: Clock, chance: Chance) -> None:
        self._id = id
        self._machine = machine
        self._etcd = etcd
        self._clock = clock
        self._chance = chance
        self._silent_since: dict[str, float] = {}
        self._starts: dict[str, int] = {}
        self._told: Mapping[str, Any] = {}

    async def step(self, cluster: Cluster) -> float:
        """One step towards the intended size. Returns the seconds until the next look."""
        record = self._machine.record()
        if record is not None and record.port != cluster.port:
            why = f"the members know each other by port {record.port}, which cannot be changed"
            self._tell(cluster.size, Step(Do.WAIT, why), {}, None)
            return _REST_SECONDS
        homes = {home.name: home for home in self._machine.homes()}
        answers = [] if record is None else await self._ask(homes)
        record, view = self._believed(record, answers)
        homes = self._remembered(homes, view)
        seen = Seen(
            first="" if record is None else record.first,
            known=record is not None and bool(record.cluster),
            view=view,
            homes=homes,
            change=f"{record.change.do}" if record is not None and record.change is not None else "",
        )
        step = plan(cluster.size, seen)
        self._tell(cluster.size, step, homes, view)
        return await self._carry_out(step, cluster, record, view)

    async def turn_down(self) -> float:
        """End the processes, one by one, and keep the data."""
        homes = {home.name: home for home in self._machine.homes()}
        running = [name for name, home in homes.items() if home.running]
        why = "it is turned down; the data are kept"
        self._tell(0, Step(Do.KILL if running else Do.REST, why), homes, None)
        for name in running[:1]:
            self._machine.kill(name)
        return _STEP_SECONDS if running else _REST_SECONDS

    # --- looking -------------------------------------------------------------------

    async def _ask(self, homes: Mapping[str, Home]) -> list[Answer]:
        """What those say that have a process and answer."""
        slots = sorted({home.slot for home in homes.values() if home.running})
        found = await asyncio.gather(*(self._asked(slot) for slot in slots))
        return [answer for answer in found if answer is not None]

    async def _asked(self, slot: int) -> Answer | None:
        try:
            return await self._etcd.ask(slot)
        except TransientError:
            return None

    def _believed(self, record: Record | None, answers: list[Answer]) -> tuple[Record | None, View | None]:
        """The cluster as it has agreed to be, and what is known of a change from that."""
        if record is None:
            return None, None
        ours = [answer for answer in answers if _is_of(answer, record)]
        if not ours:
            return record, None
        newest = max(ours, key=lambda answer: answer.applied)
        view = View(newest.members, frozenset(answer.member for answer in ours), newest.leader)
        change = record.change
        if change is not None and self._is_settled(change, view):
            change = None
        now = msgspec.structs.replace(record, cluster=newest.cluster, change=change)
        if now != record:
            self._machine.write(now)
        return now, view

    def _is_settled(self, change: Change, view: View) -> bool:
        """Whether it is known what came of a change: it has happened, or will not happen any more."""
        if abs(self._clock.now() - change.at) >= SETTLING_SECONDS:
            return True
        members = {member.id: member for member in view.members}
        match Do(change.do):
            case Do.ADD:
                return any(member.slot == change.slot for member in view.members)
            case Do.PROMOTE:
                return change.id not in members or not members[change.id].learner
            case _:
                return change.id not in members

    def _remembered(self, homes: Mapping[str, Home], view: View | None) -> dict[str, Home]:
        """Homes, with what only who has looked before can know: how long, how often."""
        now = self._clock.monotonic()
        # Without a quorum nobody can answer, and who learns does not: that is held against nobody.
        voters = () if view is None else view.voters
        answering = {member.home for member in voters if view is not None and member.id in view.answering}
        silent = {member.home for member in voters if member.home in homes} - answering
        self._silent_since = {
            name: self._silent_since.get(name, now) for name in silent if homes[name].running
        }
        self._starts = {name: count for name, count in self._starts.items() if name not in answering}
        return {
            name: msgspec.structs.replace(
                home,
                silent=now - self._silent_since.get(name, now),
                ruined=self._starts.get(name, 0) >= _MOST_STARTS,
            )
            for name, home in homes.items()
        }

    # --- acting --------------------------------------------------------------------

    async def _carry_out(
        self, step: Step, cluster: Cluster, record: Record | None, view: View | None
    ) -> float:
        match step.do:
            case Do.REST:
                return _REST_SECONDS
            case Do.WAIT:
                return _WAIT_SECONDS
            case Do.BEGIN:
                token = self._chance.identifier(self._clock.now())
                self._machine.write(Record(f"0-{token}", cluster.port))
            case Do.LAUNCH:
                self._launch(step, view)
            case Do.START:
                self._machine.run(step.home, {step.home: int(step.home.partition("-")[0])}, new=False)
                self._starts[step.home] = self._starts.get(step.home, 0) + 1
                return _WAIT_SECONDS
            case Do.KILL:
                self._machine.kill(step.home)
            case Do.DISCARD:
                self._machine.discard(step.home)
            case Do.ADD | Do.PROMOTE | Do.REMOVE:
                assert record is not None
                assert view is not None
                return await self._change(step, record, view)
        return _STEP_SECONDS

    def _launch(self, step: Step, view: View | None) -> None:
        if view is None:
            self._machine.run(step.home, {step.home: step.slot}, new=True)
            return
        members = {member.home: member.slot for member in view.members}
        assert home_of(step.slot, step.id) in members
        self._machine.run(step.home, members, new=False)

    async def _change(self, step: Step, record: Record, view: View) -> float:
        """Have the cluster change its members, and know what came of it, sooner or later."""
        change = Change(step.do.value, self._clock.now(), step.slot, step.id)
        self._machine.write(msgspec.structs.replace(record, change=change))
        by_id = {member.id: member for member in view.members}
        via = by_id[view.leader if view.leader in view.answering else min(view.answering)].slot
        try:
            match step.do:
                case Do.ADD:
                    await self._etcd.add(via, step.slot)
                case Do.PROMOTE:
                    await self._etcd.promote(via, step.id)
                case _:
                    await self._etcd.remove(via, step.id)
        except RefusedError as error:
            # As a rule for some seconds after another change, until etcd trusts all members again.
            log.debug("refused", cluster=self._id, step=step.do.value, why=error.why)
            self._machine.write(record)
            return _REFUSED_SECONDS
        except TransientError as error:
            log.warning("outcome unknown", cluster=self._id, step=step.do.value, why=str(error))
            return _WAIT_SECONDS
        self._machine.write(record)
        return _STEP_SECONDS

    # --- telling -------------------------------------------------------------------

    def _tell(self, size: int, step: Step, homes: Mapping[str, Home], view: View | None) -> None:
        """Tell people, if there is anything new."""
        members = [] if view is None else view.members
        status = {
            "cluster": self._id,
            "size": size,
            "voters": None if view is None else len(view.voters),
            "answering": None if view is None else view.answer(),
            "step": step.do.value,
            "why": step.why,
            "members": [
                {
                    "home": member.home,
                    "id": f"{member.id:x}",
                    "votes": not member.learner,
                    "answers": view is not None and member.id in view.answering,
                    "process": homes[member.home].process if member.home in homes else 0,
                }
                for member in members
            ],
        }
        if status != self._told:
            if (status["step"], status["why"]) != (self._told.get("step"), self._told.get("why")):
                log.info(step.do.value, cluster=self._id, why=step.why)
            self._told = status
            self._machine.tell(status)


def _is_of(answer: Answer, record: Record) -> bool:
    """Whether it is this cluster that answers, and not another one at the same port."""
    if record.cluster:
        return answer.cluster == record.cluster
    return any(member.name == record.first for member in answer.members)


def _local(id: AssetId, port: int) -> Machine:
    return LocalMachine(Path("production") / id, port)


_OPERATOR = Operator(_local, Gateway, Chance())


async def reconcile(request: Request) -> float | None:
    """Keep a cluster as it is intended, in `production/ID` below the current folder."""
    try:
        return await _OPERATOR.reconcile(request)
    except OSError as error:
        raise LehrError(f"the data of {request.id} cannot be read or written", why=str(error)) from error
