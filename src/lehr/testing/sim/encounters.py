"""Two events that meet just when it matters, brought about on purpose: by chance they hardly ever do."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.base.digest import Digest
from lehr.control.messages import Approve, Freeze, Lift, Pause, Pin, Retry
from lehr.model.attempt import Publication
from lehr.model.control import ControlKind
from lehr.model.decision import Status
from lehr.model.operation import Operation
from lehr.model.reason import Reason
from lehr.testing.sim.faults import PushFault
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.lull import Lull
from lehr.testing.sim.scene import Scene, Step
from lehr.testing.world import PARTITION

_AHEAD_SECONDS = 20_000.0
"""By so much a clock is wrong: for longer than any limit counts, and than a history waits at its end."""

_TOLD_SECONDS = 4.0
"""After so long, a push knows of newer content, and has come to its next step."""

_SAID_SECONDS = 15.0
"""After so long, the result of a pass over the source is written down."""

_RIVAL_SECONDS = 90
_MOST_REPAIRS = 12
"""Pushes in that time against a person who undoes each: the contest's backoff allows half as many."""


class Encounters:
    """Encounters, on a scene."""

    def __init__(self, scene: Scene, lull: Lull) -> None:
        self._scene = scene
        self._lull = lull
        self._dice = scene.dice

    def steps(self) -> Sequence[Step]:
        """All of them, each as often as it is likely."""
        steps: list[Step] = [
            self._limit_halves,
            self._thaw_during_a_look,
            self._edit_at_the_start,
            self._overtake,
            self._approve_one_of_two,
            self._blind_after_a_push,
            self._recover,
            self._answer_too_late,
            self._pin_in_a_push,
            self._pin_twice,
            self._refer_while_reads_lag,
            self._misread_a_lift,
            self._lose_the_source_aloud,
            self._contest,
        ]
        manners = self._scene.manners
        if not manners.gentle:
            steps += [self._insist_in_a_queue] * 2
        if manners.jumps:
            steps.append(self._count_ahead)
        return steps

    # --- between a turn's beginning and its end -------------------------------------------

    async def _thaw_during_a_look(self) -> None:
        """The asset that holds another leaves intent while a turn still relying on it looks at production."""
        scene = self._scene
        id = self._at_rest()
        if id is None:
            return
        self._in_order()
        scene.intent.governing.freeze(id)
        scene.edit()
        await scene.pass_time(2.0, 5.0)
        scene.production.look_slowly(IDS, 4.0)
        scene.trace.note("drift", f"{id} is changed by hand")
        scene.production.put(id, "by hand")
        scene.process.hint(id)
        await scene.pass_time(0.0, 2.0)
        scene.intent.governing.thaw()
        scene.edit()
        await self._lull.pass_by()

    async def _edit_at_the_start(self) -> None:
        """What a thing reads is published again while a new process looks at it first."""
        scene, things = self._scene, self._scene.intent.things
        id = self._dice.pick(list(things))
        read = scene.intent.lean_on(id)
        if read is None:
            return
        self._in_order()
        scene.production.look_slowly(IDS, 4.0)
        scene.edit()
        await scene.pass_time(10.0, 20.0)
        scene.trace.note("fault", f"{scene.process.name} is killed")
        await scene.restart()
        await scene.pass_time(0.0, 2.0)
        scene.intent.renew(read)
        scene.edit()
        await self._lull.pass_by()

    async def _insist_in_a_queue(self) -> None:
        """Stalled assets get a retry while their turns are queued or under way, amid hints."""
        scene = self._scene
        ids = [id for id in scene.intent.things if self._dice.happens(0.6)]
        self._in_order()
        scene.production.push_faults.update(dict.fromkeys(ids, PushFault.STALL))
        scene.intent.renew(*ids)
        scene.edit()
        await scene.pass_time(5.0, 10.0)
        scene.production.heal()
        scene.production.look_slowly(IDS, 4.0)
        decisions = scene.witness.decisions
        stalled = [id for id in ids if id in decisions and decisions[id].condition.status is Status.STALLED]
        if not stalled:
            return
        self._hint_all()
        await scene.process.pass_time(self._dice.pick((0.0, 0.05, 0.5)))
        await scene.command(Retry(selector=self._dice.pick((",".join(stalled), "all"))))
        self._hint_all()
        await self._lull.pass_by()

    def _hint_all(self) -> None:
        for id in IDS:
            self._scene.process.hint(id)

    async def _misread_a_lift(self) -> None:
        """A pause is lifted, and one of the reads that this takes fails."""
        scene = self._scene
        id = self._dice.pick(list(scene.intent.things))
        self._in_order()
        await scene.command(Pause(selector=id, reason="because", seconds=None))
        scene.intent.renew(id)
        scene.edit()
        await scene.pass_time(2.0, 5.0)
        left = self._dice.number(0, 12)

        def misreads() -> bool:
            nonlocal left
            left -= 1
            return left == -1

        scene.trace.note("fault", f"after {left} reads of the store, one fails")
        scene.process.store.misreads = misreads
        try:
            await scene.command(Lift(kind="pause", selector=id))
        finally:
            scene.process.store.misreads = lambda: False
        await self._lull.pass_by()

    async def _refer_while_reads_lag(self) -> None:
        """Something refers to an asset about to be removed, and what is read does not show that yet."""
        scene, intent = self._scene, self._scene.intent
        id = intent.retire()
        later = [other for other, spec in intent.things.items() if id and other > id and not spec.turndown]
        if id is None or not later:
            return
        self._in_order()
        scene.edit()
        await scene.pass_time(1.0, 10.0)
        other = self._dice.pick(later)
        scene.trace.note("fault", "what is read of the store lags behind")
        scene.process.store.lag()
        try:
            intent.things[other].reads.append(id)
            scene.edit()
            await scene.pass_time(5.0, 40.0)
        finally:
            scene.process.store.catch_up()
            if other in intent.things and id in intent.things[other].reads:
                intent.things[other].reads.remove(id)
            scene.edit()

    async def _lose_the_source_aloud(self) -> None:
        """The source cannot be read, for whatever reason: that is written down (I8)."""
        scene = self._scene
        self._in_order()
        scene.trace.note("fault", "the source cannot be read when it has been edited")
        scene.repository.unreadable = True
        try:
            scene.publish()
            scene.repository.tell()
            await scene.process.pass_time(_SAID_SECONDS)
        finally:
            scene.repository.unreadable = False
            scene.repository.tell()
        attempt = scene.process.store.records.attempt(PARTITION)
        if attempt is None or attempt.publication is not Publication.UNREADABLE:
            said = None if attempt is None else attempt.publication.value
            scene.witness.violations.append(f"I8: the source cannot be read, and it is said to be {said}")

    # --- pushes ----------------------------------------------------------------------------

    async def _overtake(self) -> None:
        """Newer content arrives during a push, which is notified and stops early (I7)."""
        scene = self._scene
        id = self._dice.pick(list(scene.intent.things))
        self._in_order()
        scene.production.seconds = 18.0
        scene.intent.renew(id)
        scene.edit()
        operation = await self._pushed(id)
        if operation is None:
            return
        scene.intent.renew(id)
        scene.edit()
        await scene.process.pass_time(8.0)
        if self._goes_on_although_overtaken(operation):
            scene.witness.violations.append(f"I7: a push of {id} goes on, and newer content has come")

    def _goes_on_although_overtaken(self, operation: Operation) -> bool:
        """Whether newer content arrived some time ago for an unpinned asset, and its push still runs."""
        scene, id = self._scene, operation.asset
        newest, last = scene.witness.newest, scene.witness.last(id)
        if newest is None or last is None or operation.id not in scene.production.running:
            return False
        now = scene.clock.now()
        pinned = scene.witness.standing(ControlKind.PIN, last, now) is not None
        came = newest.header.created_at > now - _TOLD_SECONDS
        before = scene.witness.assets(operation.governing).get(id)
        return not (pinned or came) and newest.assets.get(id) != before

    async def _pin_in_a_push(self) -> None:
        """While an asset is pushed, a person pins it to what it was before."""
        scene = self._scene
        before, id = max(scene.witness.incarnations, default=0), self._at_rest()
        if id is None:
            return
        self._in_order()
        scene.production.seconds = 5.0
        scene.intent.renew(id)
        scene.edit()
        if await self._pushed(id) is None:
            return
        await scene.pass_time(0.0, 4.0)
        await scene.command(Pin(selector=id, reason="because", seconds=None, incarnation=before))
        await scene.pass_time(5.0, 10.0)
        await self._lull.pass_by()
        await scene.command(Lift(kind="pin", selector=id))

    async def _pin_twice(self) -> None:
        """A person pins one asset, and then everything: the last word counts."""
        scene, id = self._scene, self._at_rest()
        before = max(scene.witness.incarnations, default=0)
        if id is None:
            return
        self._in_order()
        scene.intent.renew(id)
        scene.edit()
        await scene.pass_time(3.0, 6.0)
        newest = max(scene.witness.incarnations, default=0)
        for selector, incarnation in ((id, before), ("all", newest)):
            await scene.command(
                Pin(selector=selector, reason="because", seconds=None, incarnation=incarnation)
            )
            await scene.pass_time(0.0, 5.0)
        await self._lull.pass_by()
        for selector in (id, "all"):
            await scene.command(Lift(kind="pin", selector=selector))

    async def _pushed(self, id: str) -> Operation | None:
        """The push of an asset, once it is under way; None if none comes."""
        scene = self._scene
        for _ in range(20):
            for operation in scene.production.running.values():
                if operation.asset == id:
                    return operation
            await scene.process.pass_time(0.5)
        return None

    async def _answer_too_late(self) -> None:
        """A push runs on independently, sometimes for longer than its caller waits."""
        scene = self._scene
        id = self._dice.pick(list(scene.intent.things))
        self._in_order()
        scene.production.push_faults[id] = PushFault.DETACHED
        scene.intent.renew(id)
        scene.edit()
        await scene.pass_time(25.0, 45.0)
        scene.production.push_faults.pop(id, None)

    async def _blind_after_a_push(self) -> None:
        """How a push ended stays unknown until its asset can be reached again."""
        scene, things = self._scene, self._scene.intent.things
        pairs = [(id, ahead) for id, spec in things.items() for ahead in sorted(spec.names())]
        if not pairs:
            return
        id, ahead = self._dice.pick(pairs)
        self._in_order()
        scene.production.push_faults[id] = PushFault.LOST
        scene.intent.renew(id)
        scene.edit()
        if await self._pushed(id) is None:
            return
        await scene.command(Freeze(selector=ahead, reason="because", seconds=None))
        scene.trace.note("fault", f"{id} is reached through {ahead}, which is taken away")
        scene.production.blind[id] = ahead
        scene.production.take(ahead)
        scene.process.hint(ahead)
        await scene.pass_time(120.0, 200.0)
        scene.production.push_faults.pop(id, None)
        await scene.command(Lift(kind="freeze", selector=ahead))
        await self._lull.pass_by()

    async def _recover(self) -> None:
        """The production of an asset crashes, and starts itself again."""
        scene = self._scene
        id = self._at_rest()
        if id is None:
            return
        self._in_order()
        scene.trace.note("drift", f"{id} crashes")
        seconds = self._dice.seconds(2.0, 20.0)
        scene.production.break_down(id, seconds)
        scene.process.hint(id)
        try:
            await scene.process.pass_time(seconds + 1.0)
        finally:
            scene.production.returning.pop(id, None)  # or it would come back whatever has become of it
            scene.process.hint(id)

    async def _contest(self) -> None:
        """A person undoes each push: it is repaired ever less often (I9)."""
        scene = self._scene
        id = self._at_rest()
        if id is None:
            return
        self._in_order()
        scene.trace.note("drift", f"somebody else writes to {id} again and again")
        good, began = scene.production.values.get(id), scene.production.applied[id, "present"]
        for _ in range(_RIVAL_SECONDS):
            if scene.production.values.get(id) == good:
                scene.production.put(id, "by another")
                scene.process.hint(id)
            await scene.process.pass_time(1.0)
        repairs = scene.production.applied[id, "present"] - began
        if repairs > _MOST_REPAIRS:
            what = f"{id} is pushed {repairs} times in {_RIVAL_SECONDS} s against somebody who undoes it"
            scene.witness.violations.append(f"I9: {what}")

    # --- limits and approvals ----------------------------------------------------------------

    async def _limit_halves(self) -> None:
        """Two limits count pushes of different things by the same group, each for itself."""
        scene, things = self._scene, self._scene.intent.things
        first = [id for id in things if id < "t4"]
        if len(first) == len(things):
            return
        self._in_order()
        scene.intent.governing.limit_halves()
        scene.intent.renew(*first)
        scene.edit()
        await scene.pass_time(3.0, 8.0)
        scene.intent.renew(*(id for id in things if id not in first))
        scene.edit()
        await self._lull.pass_by()
        scene.intent.governing.assets.pop("rate-2", None)
        scene.edit()

    async def _count_ahead(self) -> None:
        """Pushes are counted by a clock that is ahead, and then is set right."""
        scene = self._scene
        self._in_order()
        scene.intent.governing.limit_all()
        for seconds in (_AHEAD_SECONDS, -_AHEAD_SECONDS):
            scene.trace.note("fault", f"the wall clock jumps by {seconds:.0f} s")
            scene.offset += seconds
            scene.witness.jumped = True
            scene.clock.jump(seconds)
            scene.intent.renew(*scene.intent.things)
            scene.edit()
            await scene.pass_time(5.0, 20.0)

    async def _approve_one_of_two(self) -> None:
        """Two assets differ alike, both destructively, and a person approves one of them."""
        scene, things = self._scene, self._scene.intent.things
        alone = [id for id, spec in things.items() if spec.turndown is None and not spec.names()]
        if len(alone) < 2:
            return
        self._in_order()
        first = alone.pop(self._dice.number(0, len(alone) - 1))
        pair = (first, self._dice.pick(alone))
        scene.intent.renew(first)
        for id in pair:
            things[id].destroys, things[id].value = True, things[first].value
            scene.production.put(id, "by hand")
            scene.process.hint(id)
        scene.trace.note("drift", f"{' and '.join(pair)} are changed by hand")
        scene.edit()
        await scene.pass_time(3.0, 8.0)
        if (digest := self._waits_for_approval(first)) is not None:
            await scene.command(Approve(selector=first, reason="seen", seconds=None, diff_digest=digest))
            self._hint_all()
            await scene.pass_time(3.0, 8.0)
        for id in pair:
            if id in things:
                things[id].destroys = False
        scene.edit()

    def _waits_for_approval(self, id: str) -> Digest | None:
        decision = self._scene.witness.decisions.get(id)
        waits = decision is not None and decision.condition.reason in (
            Reason.APPROVAL_NEEDED,
            Reason.APPROVAL_MISSING,
        )
        return decision.diff.digest() if waits and decision and decision.diff else None

    # --- what most of them begin with ----------------------------------------------------------

    def _at_rest(self) -> str | None:
        """A thing that is as intended and stays; None for none."""
        scene = self._scene
        found = [
            id
            for id, spec in scene.intent.things.items()
            if spec.turndown is None
            and not spec.destroys
            and (condition := scene.process.condition(id)) is not None
            and condition.reason == Reason.AS_INTENDED
        ]
        return self._dice.pick(found) if found else None

    def _in_order(self) -> None:
        """Nothing else goes wrong for now."""
        production = self._scene.production
        production.heal()
        production.seconds = 1.0
        production.looking = {}
        self._scene.process.store.out_of_order = False
