"""A Strategist that releases at random: the Enforcer must be right whatever is released to it."""

from __future__ import annotations

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.content_key import content_key
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.writes import Refused, WriteReleases
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.random_harness import RandomHarness
from lehr.testing.sim.witnessed_state import things
from lehr.testing.world import PARTITION

_SALT = 0x5E1EA5E
"""Makes other dice of a history's seed."""

_SHARE = 0.3
_OFTEN = 0.25
_MOST = 3


class RandomReleases:
    """Releases and withdraws, at random times, until the end, when it lets all assets follow intent again.

    Its dice are its own: histories without it stay as they are.
    """

    def __init__(self, harness: RandomHarness) -> None:
        self._dice = dice = Dice(harness.seed ^ _SALT)
        self._works = dice.happens(_SHARE)
        self._count = 0

    async def happen(self, harness: RandomHarness) -> None:
        """Perhaps write something."""
        if self._works and harness.witness.incarnations and self._dice.happens(_OFTEN):
            await harness.alive(self._write_some)

    async def end(self, harness: RandomHarness) -> None:
        """Let all assets follow intent again."""
        while ids := harness.witness.releases.ids():
            harness.process.store.out_of_order = False
            releases = tuple(self._release(harness, id, None, ReleaseKind.PERSON) for id in ids)
            await harness.alive(lambda harness, made=releases: self._write(harness, made, told=True))  # type: ignore[misc]
            await harness.clock.sleep(1.0)

    async def _write_some(self, harness: RandomHarness) -> None:
        dice, judge = self._dice, harness.witness.releases
        governed = judge.ids()
        newest = max(harness.witness.incarnations)
        there = [asset.id for asset in things(harness.witness.assets().values())]
        action = dice.pick(("baseline", "forward", "forward", "rollback", "withdraw", "let go", "stale"))
        pool = there if action == "baseline" or not governed else [id for id in governed if id in there]
        ids = sorted({dice.pick(pool) for _ in range(dice.number(1, _MOST))}) if pool else []
        releases: tuple[Release, ...] = ()
        withdrawn: tuple[str, ...] = ()
        if action in ("baseline", "forward", "stale"):
            kind = ReleaseKind.BASELINE if action == "baseline" else ReleaseKind.FORWARD
            releases = tuple(self._release(harness, id, newest, kind) for id in ids)
        elif action == "rollback":
            releases = tuple(
                self._release(harness, id, self._earlier(harness, id), ReleaseKind.ROLLBACK) for id in ids
            )
        elif action == "let go":
            releases = tuple(self._release(harness, id, None, ReleaseKind.PERSON) for id in ids)
        else:
            withdrawn = tuple(item.id for id in ids for item in judge.history(id)[-1:])
        await self._write(
            harness, releases, withdrawn, told=dice.happens(0.5), late=1 if action == "stale" else 0
        )

    def _earlier(self, harness: RandomHarness, id: str) -> int:
        """An incarnation that has the asset: one of its last ones, as rollbacks do not go back for ever."""
        incarnations = harness.witness.incarnations
        having = [sequence for sequence in sorted(incarnations)[-4:] if id in incarnations[sequence].assets]
        return self._dice.pick(having)

    def _release(self, harness: RandomHarness, id: str, target: int | None, kind: ReleaseKind) -> Release:
        self._count += 1
        assets = {} if target is None else harness.witness.assets(target)
        reads = assets[id].document()["payload"].get("reads", ()) if id in assets else ()
        key = content_key(assets[id], [(name, assets.get(name)) for name in reads]) if id in assets else ""
        return Release(
            id=f"release-{self._count:04}",
            partition=PARTITION,
            asset=AssetId(id),
            target=target,
            kind=kind,
            basis=ReleaseBasis(_governance(harness)),
            at=harness.clock.now(),
            content_key=Digest(key),
            reads=tuple(map(AssetId, reads)),
        )

    async def _write(
        self,
        harness: RandomHarness,
        releases: tuple[Release, ...],
        withdrawn: tuple[str, ...] = (),
        *,
        told: bool,
        late: int = 0,
    ) -> None:
        """Write, as of `late` versions ago; `told`: the Enforcer is notified, and need not look."""
        process, plane = harness.process, harness.process.plane
        version = harness.witness.releases.version
        if plane.standby or version < late:
            return
        governance, now = _governance(harness), harness.clock.now()
        write = WriteReleases(PARTITION, version - late, governance, now, releases, withdrawn)
        said = ", ".join(f"{item.asset}@{item.target} ({item.kind})" for item in releases)
        harness.trace.note("strategist", f"releases {said or 'nothing'}; withdraws {', '.join(withdrawn)}")

        async def write_and_tell() -> object:
            [answer] = await plane.committer.ask(write)
            if told:
                await process.enforcer.releases_changed()
            return answer

        answer = await process.run(write_and_tell())
        if isinstance(answer, Refused):
            harness.trace.note("strategist", f"refused: {answer.message}")


def _governance(harness: RandomHarness) -> Digest:
    newest = harness.witness.newest
    return Digest("") if newest is None else newest.header.governance
