"""Releases of a random history: the Enforcer must be right whatever is released to it."""

from __future__ import annotations

import contextlib

from lehr.model.release import Release, ReleaseKind
from lehr.model.writes import LeaseLostError
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.sim.strategist import Strategist
from lehr.testing.sim.witnessed_state import things

_SALT = 0x5E1EA5E
"""Makes other dice of a history's seed."""

_SHARE = 0.3
_OFTEN = 0.25
_MOST = 3
_ACTIONS = ("baseline", "forward", "forward", "rollback", "withdraw", "let go", "late")


class RandomReleases:
    """Releases and withdraws, at random times, until the end, when all assets follow intent again.

    Its dice are its own: histories without it stay as they are.
    """

    def __init__(self, harness: RandomHarness) -> None:
        self._dice = dice = Dice(harness.seed ^ _SALT)
        self._active = dice.happens(_SHARE)
        self._strategist = Strategist(harness)

    async def happen(self, harness: RandomHarness) -> None:
        """Perhaps release or withdraw something."""
        if self._active and harness.witness.incarnations and self._dice.happens(_OFTEN):
            await harness.alive(self._act)

    async def end(self, harness: RandomHarness) -> None:
        """Let all assets follow intent again."""
        while harness.witness.releases.ids():
            harness.process.store.out_of_order = False
            await harness.alive(self._let_all_go)
            await harness.clock.sleep(1.0)

    async def _let_all_go(self, harness: RandomHarness) -> None:
        ids = harness.witness.releases.ids()
        await self._write(harness, [self._strategist.release(id, None, ReleaseKind.PERSON) for id in ids])

    async def _act(self, harness: RandomHarness) -> None:
        dice, judge = self._dice, harness.witness.releases
        governed, newest = judge.ids(), max(harness.witness.incarnations)
        there = [asset.id for asset in things(harness.witness.assets().values())]
        action = dice.pick(_ACTIONS)
        pool = there if action == "baseline" or not governed else [id for id in governed if id in there]
        ids = sorted({dice.pick(pool) for _ in range(dice.number(1, _MOST))}) if pool else []
        notify, late = dice.happens(0.5), 1 if action == "late" else 0
        if action == "withdraw":
            withdrawn = tuple(item.id for id in ids for item in judge.history(id)[-1:])
            await self._write(harness, [], withdrawn, notify=notify)
            return
        kind = {
            "baseline": ReleaseKind.BASELINE,
            "rollback": ReleaseKind.ROLLBACK,
            "let go": ReleaseKind.PERSON,
        }.get(action, ReleaseKind.FORWARD)
        target: dict[str, int | None] = dict.fromkeys(ids, newest)
        if action == "rollback":
            target = {id: self._earlier(harness, id) for id in ids}
        elif action == "let go":
            target = dict.fromkeys(ids)
        releases = [self._strategist.release(id, target[id], kind) for id in ids]
        await self._write(harness, releases, notify=notify, late=late)

    def _earlier(self, harness: RandomHarness, id: str) -> int:
        """One of the last incarnations that have the asset."""
        incarnations = harness.witness.incarnations
        having = [sequence for sequence in sorted(incarnations)[-4:] if id in incarnations[sequence].assets]
        return self._dice.pick(having)

    async def _write(
        self,
        harness: RandomHarness,
        releases: list[Release],
        withdrawn: tuple[str, ...] = (),
        *,
        notify: bool = True,
        late: int = 0,
    ) -> None:
        if harness.process.plane.standby:
            return
        with contextlib.suppress(LeaseLostError):  # another process has taken over, which it learns by this
            await self._strategist.write(tuple(releases), withdrawn, notify=notify, late=late)
