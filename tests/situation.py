"""A control plane in a situation, to suppose commands about and then to give them."""

from __future__ import annotations

from typing import Any

from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.checks import CHECKS
from lehr.dry_run.suppositions import LIFTED, OF_ROLLOUTS, Supposition, Verb
from lehr.dry_run.what_if import WhatIf
from lehr.enforce.step import RETRY
from lehr.model.asset import AssetId, AssetKey
from lehr.model.control import Control, ControlKind
from lehr.model.evidence import RolloutCommand
from lehr.model.lifting import lifted_by
from lehr.model.selector import parse_selector
from lehr.model.writes import WriteReleases
from lehr.rollouts.commands import commanded
from lehr.sdk.calendars import no_calendars
from lehr.sdk.runtime import Runtime
from lehr.strategist.courses import read_courses
from lehr.strategist.what_if import SupposedRollouts
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION
from tests.world import Plane, World


class Situation:
    """A running control plane whose assets are at rest, and what people can do about them."""

    def __init__(self, plane: Plane, world: World, clock: VirtualClock) -> None:
        self.plane = plane
        self.world = world
        self.clock = clock

    def what_if(self, id: AssetId) -> WhatIf:
        plane = self.plane
        runtime = Runtime(PARTITION, plane.store, plane.registry, self.clock, Chance(1), Inline())
        rollouts = SupposedRollouts(plane.store, plane.registry, PARTITION, no_calendars, self.clock.now())
        newest = plane.store.intent.newest(PARTITION)
        assert newest is not None
        asset = plane.store.intent.asset(AssetKey(PARTITION, id), newest.sequence)
        assert asset is not None
        checks = [check() for check in CHECKS]
        return WhatIf(runtime, asset, [self.world.plugin(self.clock)], checks, rollouts)

    async def give(self, id: AssetId, supposition: Supposition) -> None:
        """Give the command, as `lehr run` carries it out."""
        plane, now = self.plane, self.clock.now()
        match supposition.verb:
            case Verb.RETRY:
                plane.enforcer.wake(id, RETRY)
            case Verb.APPROVE:
                [(_number, decision)] = plane.store.records.decisions(PARTITION, id, 1)
                assert decision.condition.reason == "ApprovalNeeded", "the others have led to it"
                assert decision.diff is not None
                own = control(ControlKind.APPROVAL, f"id={id}", now, diff_digest=decision.diff.digest())
                await plane.control(own)
            case Verb.OVERRIDE:
                own = control(ControlKind.OVERRIDE, f"id={id}", now, check=AssetId(supposition.of))
                await plane.control(own)
            case verb if verb in OF_ROLLOUTS:
                await self.command(OF_ROLLOUTS[verb], AssetId(supposition.of))
            case verb:
                _version, controls = plane.store.records.controls(PARTITION, now)
                lifted = lifted_by(LIFTED[verb], parse_selector(supposition.of), controls)
                assert lifted
                for item in lifted:
                    await plane.lift(item)

    async def command(self, action: RolloutCommand, policy: AssetId) -> None:
        """Command a rollout, as `lehr run` carries it out."""
        plane, now = self.plane, self.clock.now()
        governance = plane.enforcer.governance
        assert governance is not None
        course = read_courses(plane.store.records, PARTITION).of(policy)
        evidence = commanded(
            action, policy, course, partition=PARTITION, actor="ana", reason="because", now=now
        )
        version = governance.releases.version
        [refused] = await plane.committer.ask(
            WriteReleases(PARTITION, version, governance.digest, now, evidence=(evidence,))
        )
        assert refused is None
        await plane.enforcer.releases_changed()


def control(kind: ControlKind, selector: str, now: float, **fields: Any) -> Control:
    return Control(
        id=f"{kind}-{selector}-{now}",
        kind=kind,
        partition=PARTITION,
        selector=parse_selector(selector),
        reason="because",
        actor="ana",
        at=now,
        **fields,
    )
