"""The releases that rollouts would make at once if people gave commands about them. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from lehr.base.chance import Chance
from lehr.enforce.governance import Governance
from lehr.model.asset import AssetId, Partition
from lehr.model.evidence import Looked, RolloutCommand
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
    """Rollouts of a partition at one moment, and the effects of commands on them."""

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

    def effective(self, policy: AssetId) -> list[RolloutCommand]:
        """The commands that would let the rollout of a policy continue now, or begin again."""
        course = self._course(policy)
        found = []
        if course.running is not None and course.running.watched:
            found.append(RolloutCommand.PROMOTE)
        if course.running is not None and course.running.paused is not None:
            found.append(RolloutCommand.RESUME)
        if course.quarantined:
            found.append(RolloutCommand.RETRY)
        return found

    def released(
        self,
        governance: Governance,
        about: AssetId | None,
        commands: Sequence[tuple[RolloutCommand, str]],
    ) -> list[Released]:
        """The releases that would count of all assets for which they change, without time passing.

        Args:
            governance: of the newest incarnation, under the supposed controls.
            about: a policy whose rollout continues, whether or not a command is about it.
            commands: each with its policy; empty for the only one.

        Raises:
            LehrError: a command would be refused; the store cannot be read.
        """
        courses = {} if about is None else {about: self._course(about)}
        for action, name in commands:
            id = chosen_policy(name, governance.policies.items)
            course = courses.get(id) or self._course(id)
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
                under = self._stepped(policy, courses[policy.id], under)
        changed = under.releases.changed_from(governance.releases)
        found = (under.releases.of(id, governed=True) for id in changed)
        return [item for item in found if item is not None]

    def _course(self, policy: AssetId) -> Course:
        return folded(self._evidence.get(policy, ()))

    def _stepped(self, policy: Policy, course: Course, governance: Governance) -> Governance:
        """Governance after the steps of a policy that follow at once."""
        roster = Roster(self._store, self._registry, self._partition, self._calendars)
        since_look = None
        for _number in range(_MOST_STEPS):
            try:
                step = plan(
                    policy.payload,
                    course,
                    roster.taking_part(policy, course.running, governance, self._now),
                    governance.sequence,
                    self._now,
                    since_look=since_look,
                    new_id=self._chance.identifier(self._now),
                )
            except ValueError:
                break  # the target selection has no answer, so the rollout holds
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
            if any(isinstance(fact, Looked) for fact in step.facts):
                since_look = 0.0  # no time passes, so there is one look at most
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
