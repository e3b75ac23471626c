"""What rollouts would release at once if people gave commands about them. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lehr.base.chance import Chance
from lehr.base.errors import LehrError, raised_as
from lehr.enforce.governance import Governance
from lehr.model.asset import AssetId, Partition
from lehr.model.evidence import RolloutCommand
from lehr.model.release import Released
from lehr.model.types import Registry
from lehr.rollouts.commands import chosen_policy, commanded
from lehr.rollouts.course import Course, after, folded
from lehr.rollouts.plan import plan
from lehr.rollouts.policy import Policy
from lehr.sdk.calendars import Calendars
from lehr.sdk.store import Store
from lehr.strategist.overview import evidence_by_policy
from lehr.strategist.releasing import write_of
from lehr.strategist.roster import Roster

_SUPPOSED = "supposed"

_MOST_STEPS = 20
"""Steps of a rollout that follow each other without time passing; there are few."""


class SupposedRollouts:
    """Rollouts of a partition at one moment, and what commands would change in them."""

    def __init__(
        self, store: Store, registry: Registry, partition: Partition, calendars: Calendars, now: float
    ) -> None:
        """Reads the store. Blocks.

        Args:
            calendars: reads when pushes may not start.
            now: wall-clock seconds.

        Raises:
            LehrError: the store cannot be read.
        """
        self._store = store
        self._registry = registry
        self._partition = partition
        self._calendars = calendars
        self._now = now
        self._evidence = evidence_by_policy(store.records, partition)
        self._chance = Chance(0)  # ids of what is not written

    def released(
        self, governance: Governance, commands: Sequence[tuple[RolloutCommand, str]]
    ) -> list[Released]:
        """The releases that would count of all assets for which they change, without time passing.

        Args:
            commands: each with its policy; empty for the only one.

        Raises:
            LehrError: a command would be refused, or the target selection of a policy has no answer.
        """
        courses: dict[AssetId, Course] = {}
        for action, name in commands:
            id = chosen_policy(name, governance.policies.items)
            course = courses.get(id) or folded(self._evidence.get(id, ()))
            given = commanded(
                action,
                id,
                course,
                partition=self._partition,
                actor=_SUPPOSED,
                reason=_SUPPOSED,
                now=self._now,
            )
            courses[id] = after(course, given.rollout, given.fact, self._now)
        under = governance
        for policy in governance.policies.items:
            if policy.id in courses:
                what = f"the next step of the rollout of {policy.id} is not known"
                fix = "correct `target_selection` of the policy"
                with raised_as(LehrError, what, code="ROL138", fix=fix, on=ValueError):
                    under = self._stepped(policy, courses[policy.id], under)
        changed = under.releases.changed_from(governance.releases)
        found = (under.releases.of(id, governed=True) for id in changed)
        return [item for item in found if item is not None]

    def _stepped(self, policy: Policy, course: Course, governance: Governance) -> Governance:
        """Governance after the steps of a policy that follow at once."""
        for _number in range(_MOST_STEPS):
            roster = Roster(self._store, self._registry, self._partition, self._calendars)
            step = plan(
                policy.payload,
                course,
                roster.members(policy, course.running, governance, self._now),
                governance.sequence,
                self._now,
                since_look=None,
                new_id=self._chance.identifier(self._now),
            )
            if not step.writes:
                break
            write = write_of(
                step,
                policy,
                governance,
                roster.content,
                self._partition,
                self._now,
                0,
                lambda: self._chance.identifier(self._now),
            )
            for fact in step.facts:
                course = after(course, step.rollout, fact, self._now)
            released = [Released(item.asset, item) for item in write.releases]
            released += self._withdrawn(governance, step.withdrawn, {item.asset for item in released})
            releases = governance.releases.updated(governance.releases.version + 1, released)
            governance = replace(governance, releases=releases)
        return governance

    def _withdrawn(self, governance: Governance, ids: Iterable[str], again: set[AssetId]) -> list[Released]:
        """What counts for assets whose releases are withdrawn: the one before, or none."""
        gone = frozenset(ids)
        if not gone:
            return []
        _version, counting = self._store.records.released(self._partition)
        found = []
        for item in counting:
            if item.release is None or item.release.id not in gone or item.asset in again:
                continue
            earlier = self._store.records.releases(item.release.key)
            left = (one for one in earlier if one.id not in gone and one.withdrawn_at is None)
            found.append(Released(item.asset, next(left, None)))
        return found
