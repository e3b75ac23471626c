"""The courses of all policies, from the evidence in the store."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from lehr.model.asset import AssetId, Partition
from lehr.rollouts.course import Course, after
from lehr.rollouts.validation_samples import Validated, validated_by
from lehr.sdk.store import Records

_ROWS = 1000
_MOST_VALIDATED = 1000


class Courses:
    """Courses by policy, as of the last time that they were read.

    Attributes:
        seen: number of the newest evidence that counts.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._of: dict[AssetId, Course] = {}
        self._validated: dict[AssetId, deque[Validated]] = {}

    def of(self, policy: AssetId) -> Course:
        """The course of a policy's rollouts."""
        return self._of.get(policy, Course())

    def validated(self, policy: AssetId) -> Sequence[Validated]:
        """The newest validations of a policy's units."""
        return list(self._validated.get(policy, ()))

    def read(self, records: Records, partition: Partition) -> None:
        """Read what was written since. Blocks.

        Raises:
            LehrError: the store cannot be read.
        """
        while True:
            found = records.evidence(partition, self.seen, _ROWS)
            for item in found:
                course = self.of(item.policy)
                for unit in validated_by(course, item.rollout, item.fact, item.at):
                    self._validated.setdefault(item.policy, deque(maxlen=_MOST_VALIDATED)).append(unit)
                self._of[item.policy] = after(course, item.rollout, item.fact, item.at)
                self.seen = item.number
            if len(found) < _ROWS:
                return


def read_courses(records: Records, partition: Partition) -> Courses:
    """The courses as they are now. Blocks.

    Raises:
        LehrError: the store cannot be read.
    """
    courses = Courses()
    courses.read(records, partition)
    return courses
