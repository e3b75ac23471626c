"""What people do in a random history: they edit the source, hold, pin, approve, retry and prune."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.base.digest import Digest
from lehr.control.messages import (
    AnyRequest,
    Approve,
    Freeze,
    Lift,
    Override,
    Pause,
    Pin,
    PruneHistory,
    Refresh,
    Retry,
)
from lehr.model.asset import AssetId
from lehr.model.control import Control
from lehr.model.decision import Status
from lehr.model.reason import Reason
from lehr.testing.sim import edits, selecting
from lehr.testing.sim.faults import PushFault
from lehr.testing.sim.governing import CALENDARS
from lehr.testing.sim.intent import IDS
from lehr.testing.sim.lull import Lull
from lehr.testing.sim.scene import Scene, Step
from lehr.testing.sim.source import files
from lehr.testing.sim.things import wished


class People:
    """People, on a scene."""

    def __init__(self, scene: Scene, lull: Lull) -> None:
        self._scene = scene
        self._lull = lull
        self._dice = scene.dice
        self._seen: dict[str, Digest] = {}

    def steps(self) -> Sequence[Step]:
        """Their actions, each as often as it is likely."""
        return [
            *[self._scene.publish] * 5,
            *[self._edit_one_after_the_other] * 2,
            *[self._edit_all] * 2,
            *[self._edit_what_depends] * 2,
            *[self._leave_for_good] * 2,
            self._come_back,
            self._come_back_frozen,
            *[self.set_control] * 2,
            self._override,
            self._override_one_of_two,
            self._set_two,
            self._govern_the_pinned,
            self._lift_control,
            self.approve,
            self._retry,
            self._insist,
            *[self._break_source] * 2,
            self._dream,
            self._refresh,
            *[self._prune] * 2,
        ]

    # --- intent ------------------------------------------------------------------------

    async def _edit_one_after_the_other(self) -> None:
        """An asset is edited, and while that is taken up, one that it depends on."""
        scene, things = self._scene, self._scene.intent.things
        pairs = [(id, ahead) for id, spec in things.items() for ahead in sorted(spec.names())]
        if not pairs:
            return
        id, ahead = self._dice.pick(pairs)
        scene.intent.renew(id)
        scene.edit()
        await scene.pass_time(0.0, 5.0)
        scene.intent.renew(ahead)
        scene.edit()

    async def _edit_all(self) -> None:
        """More pushes are due than there are places, and their dependencies change while they are looked at.

        Some of them are no longer due when their turn comes. Then, nothing happens.
        """
        scene, things = self._scene, self._scene.intent.things
        scene.trace.note("person", "everything is edited")
        if self._dice.happens(0.5):
            scene.production.heal()
        scene.production.seconds = self._dice.pick((0.0, 0.0, 5.0, 12.0))
        scene.production.look_slowly(IDS, self._dice.pick((0.0, 4.0)))
        scene.intent.renew(*things)
        scene.edit()
        await scene.pass_time(2.0, 6.0)
        for id in list(things):
            decision = scene.witness.decisions.get(id)
            queues = decision is not None and decision.condition.reason == Reason.CONCURRENCY_LIMIT
            if queues and self._dice.happens(0.5):
                await self._make_needless(id)
        await self._lull.pass_by()

    async def _edit_what_depends(self) -> None:
        """Production of an asset is changed by hand; reported as its dependents look, or never."""
        scene, things = self._scene, self._scene.intent.things
        ahead = sorted({id for spec in things.values() for id in spec.names()})
        if not ahead:
            return
        first = self._dice.pick(ahead)
        if self._dice.happens(0.5):
            scene.production.heal()
        scene.production.seconds = 0.0
        scene.production.look_slowly(IDS, 4.0)
        scene.trace.note("drift", f"{first} is changed by hand")
        scene.production.put(first, f"by hand {self._dice.number(0, 99)}")
        scene.intent.renew(*(id for id, spec in things.items() if first in spec.names()))
        scene.edit()
        try:
            await scene.pass_time(0.0, 3.0)
        finally:
            if scene.manners.gentle or self._dice.happens(0.5):
                scene.process.hint(first)
        await self._lull.pass_by()

    async def _leave_for_good(self) -> None:
        """A thing that nothing names is turned down; its lines go once that has begun, in time or early."""
        scene, intent = self._scene, self._scene.intent
        id = intent.retire()
        if id is None:
            return
        scene.trace.note("person", f"{id} is to leave for good")
        fails = self._dice.happens(0.3)
        if fails:
            scene.intent.governing.allow_one_removal()
            scene.production.push_faults[id] = PushFault.FAIL
        scene.edit()
        await scene.pass_time(0.0, 30.0)
        if intent.remove(id):
            scene.edit()
        await scene.pass_time(0.0, 10.0)
        if fails:
            scene.production.push_faults.pop(id, None)
        for _ in range(self._dice.number(0, 2)):
            await scene.pass_time(0.0, 40.0)
            scene.trace.note("fault", f"{scene.process.name} is killed")
            await scene.restart()
        await scene.pass_time(0.0, 100.0)
        await self._lull.pass_by()

    def _come_back(self) -> None:
        """A thing that had left is declared again, as it last was, or without its turndown."""
        if self._scene.intent.come_back() is not None:
            self._scene.edit()

    async def _come_back_frozen(self) -> None:
        """A removed thing returns, and cannot be pushed yet: what it needs now is in turndown."""
        scene, intent = self._scene, self._scene.intent
        id = intent.come_back()
        other = None if id is None else intent.lean_on(id)
        if id is None or other is None:
            return
        scene.edit()
        await scene.pass_time(1.0, 3.0)
        await scene.command(Freeze(selector=id, reason="because", seconds=self._dice.seconds(20.0, 60.0)))
        if other in intent.things:
            intent.turn_down(other)
            scene.edit()
        await self._lull.pass_by()

    async def _make_needless(self, id: str) -> None:
        """Whatever the asset waits for, it no longer needs it."""
        scene = self._scene
        assets = scene.witness.assets()
        if id in assets and self._dice.happens(0.5):
            scene.trace.note("drift", f"{id} is put right by hand")
            scene.production.put(id, wished(assets, id, scene.site.registry))
            if self._dice.happens(0.5):
                scene.process.hint(id)
        else:
            await scene.command(Pause(selector=id, reason="because", seconds=None))

    def _stays(self, id: str) -> bool:
        """Whether an asset is published and not being turned down."""
        asset = self._scene.witness.assets().get(id)
        return asset is not None and self._scene.witness.turndown(asset) is None

    async def _break_source(self) -> None:
        """An editor, disk or script leaves a source that cannot have been meant."""
        scene = self._scene
        broken = self._dice.pick(edits.BROKEN)
        contents = broken(scene.intent.files(), self._dice)
        revision = files(contents).revision.revision
        lost = scene.intent.files().keys() - contents.keys()
        # An asset that is being turned down, or was never published, may go.
        kept = (id for id in scene.intent.kept() if self._stays(id))
        harmless = lost and not any(scene.intent.path(id) in lost for id in kept)
        harmless = harmless and broken is not edits.named_but_gone
        if revision in scene.witness.revisions or harmless or contents == scene.intent.files():
            return  # a person may have meant that
        scene.witness.revisions[revision] = None
        scene.repository.edit(contents, f"the source is broken: {broken.__name__}")
        try:
            await scene.pass_time(0.0, 20.0)
        finally:
            scene.edit()

    async def _dream(self) -> None:
        """An incremental build's memo is wrong: it asks for a turndown."""
        scene = self._scene
        never = [id for id in sorted(scene.intent.things) if not scene.intent.was_turned_down(id)]
        if not never:
            return
        generation = scene.process.generation
        generation.dreams = AssetId(self._dice.pick(never))
        scene.trace.note("fault", f"the build dreams of a turndown of {generation.dreams}")
        scene.publish()
        try:
            await scene.pass_time(0.0, 5.0)
        finally:
            generation.dreams = None
            before = scene.intent.files()
            while scene.intent.files() == before:  # what was refused is not built again
                scene.intent.change()
            scene.edit()

    async def _refresh(self) -> None:
        """A person does not wait for the source to be looked at."""
        self._scene.publish()
        await self._scene.command(Refresh())

    # --- commands ----------------------------------------------------------------------

    async def _prune(self) -> None:
        """Have the past removed, as far as nothing under way can have begun in it."""
        keep, seconds = self._dice.number(1, 4), self._dice.seconds(45.0, 150.0)
        await self._scene.command(PruneHistory(keep=keep, seconds=seconds))

    async def _retry(self) -> None:
        await self._scene.command(Retry(selector=self._dice.pick(IDS)))

    async def _insist(self) -> None:
        """A retry of stalled assets, amid hints, which must not take its place."""
        stalled = [
            id
            for id, decision in sorted(self._scene.witness.decisions.items())
            if decision.condition.status is Status.STALLED
        ]
        if not stalled:
            return
        id = self._dice.pick(stalled)
        self._scene.process.hint(id)
        if self._dice.happens(0.5):
            await self._scene.pass_time(0.0, 1.0)
        await self._scene.command(Retry(selector=id))
        self._scene.process.hint(id)

    async def set_control(self) -> None:
        """Pause, freeze or pin something, for some time or until it is lifted."""
        kind = self._dice.pick((Pause, Freeze, None, None))
        newest = max(self._scene.witness.incarnations, default=0)
        if not newest:
            return
        seconds = self._dice.seconds(5.0, 120.0) if self._dice.happens(0.5) else None
        selector = selecting.written(self._dice, IDS)
        if (standing := self._scene.controls()) and self._dice.happens(0.3):
            selector = str(self._dice.pick(standing).selector)  # a further word on the same
        if kind is None:
            incarnation = self._dice.number(1, newest)
            pinning = Pin(selector=selector, reason="because", seconds=seconds, incarnation=incarnation)
            await self._scene.command(pinning)
        else:
            await self._scene.command(kind(selector=selector, reason="because", seconds=seconds))

    async def _override(self) -> None:
        """An emergency: pushes should go although a calendar is closed."""
        declared = [name for name in CALENDARS if name in self._scene.intent.governing.assets]
        check = self._dice.pick(declared or CALENDARS)
        seconds = self._dice.seconds(5.0, 120.0) if self._dice.happens(0.5) else None
        selector = selecting.written(self._dice, IDS)
        await self._scene.command(Override(selector=selector, reason="outage", seconds=seconds, check=check))

    async def _override_one_of_two(self) -> None:
        """Two calendars select the same things, and one of them is overridden."""
        scene = self._scene
        scene.intent.governing.close_twice()
        scene.publish()
        await scene.pass_time(1.0, 4.0)
        check = self._dice.pick(CALENDARS)
        await scene.command(Override(selector="all", reason="outage", seconds=60.0, check=check))
        scene.intent.renew(*scene.intent.things)
        scene.edit()
        await scene.pass_time(1.0, 20.0)

    async def _set_two(self) -> None:
        """Two people hold the same assets, each for a time of their own, or one until it is lifted."""
        word, selector = self._dice.pick((self._pause, self._freeze, self._pin)), self._dice.pick(IDS)
        lasting = self._dice.pick((0, 1, 2, 2))
        for number in range(2):
            seconds = None if number == lasting else self._dice.seconds(3.0, 40.0)
            await self._scene.command(word(selector, seconds))
            if self._dice.happens(0.3):
                selector = "all"
        if selector in self._scene.intent.things:
            self._scene.intent.renew(selector)
            self._scene.edit()
        await self._scene.pass_time(0.0, 40.0)
        await self._lull.pass_by()

    async def _govern_the_pinned(self) -> None:
        """A thing gets another label, stays at its content of before by a pin, and its label is governed."""
        scene, things = self._scene, self._scene.intent.things
        before = max(scene.witness.incarnations, default=0)
        here = [id for id in things if id in scene.witness.assets()]
        if not here:
            return
        id = self._dice.pick(here)
        things[id].team = selecting.other_team(things[id].team)
        scene.edit()
        await scene.pass_time(1.0, 4.0)
        pinning = Pin(
            selector=id, reason="because", seconds=self._dice.seconds(30.0, 90.0), incarnation=before
        )
        await scene.command(pinning)
        scene.intent.governing.hold_team(things[id].team)
        scene.edit()
        await scene.pass_time(1.0, 4.0)
        scene.trace.note("drift", f"{id} is changed by hand")
        scene.production.put(id, "by hand")
        scene.process.hint(id)
        await self._lull.pass_by()

    def _pause(self, selector: str, seconds: float | None) -> AnyRequest:
        return Pause(selector=selector, reason="because", seconds=seconds)

    def _freeze(self, selector: str, seconds: float | None) -> AnyRequest:
        return Freeze(selector=selector, reason="because", seconds=seconds)

    def _pin(self, selector: str, seconds: float | None) -> AnyRequest:
        incarnation = self._dice.number(1, max(self._scene.witness.incarnations, default=1))
        return Pin(selector=selector, reason="because", seconds=seconds, incarnation=incarnation)

    async def _lift_control(self) -> None:
        """Lift one; sometimes by a selector that may lift more, or nothing."""
        standing = self._scene.controls()
        if not standing:
            return
        control = self._dice.pick(standing)
        if len(control.selector.ids) > 1 and self._dice.happens(0.5):
            await self._scene.command(Lift(kind=str(control.kind), selector=control.selector.ids[0]))
        elif self._dice.happens(0.3):
            selector = selecting.written(self._dice, IDS)
            await self._scene.command(Lift(kind=str(control.kind), selector=selector))
        else:
            await self.lift(control)

    async def lift(self, control: Control) -> None:
        """Take a control back."""
        await self._scene.command(Lift(kind=str(control.kind), selector=str(control.selector)))

    async def approve(self) -> None:
        """Approve a waiting diff."""
        for id, decision in sorted(self._scene.witness.decisions.items()):
            waits = decision.condition.reason in (Reason.APPROVAL_NEEDED, Reason.APPROVAL_MISSING)
            if waits and decision.diff is not None:
                seconds = 60.0 if self._dice.happens(0.5) else None
                seen = self._seen.get(id)
                digest = self._seen[id] = decision.diff.digest()
                if seen is not None and self._dice.happens(0.2):
                    digest = seen  # after looking at it for too long
                approval = Approve(selector=id, reason="seen", seconds=seconds, diff_digest=digest)
                await self._scene.command(approval)
