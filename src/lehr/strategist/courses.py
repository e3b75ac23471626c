"""The courses of all policies, from the evidence in the store."""

from __future__ import annotations

from lehr.model.asset import AssetId, Partition
from lehr.rollouts.course import Course, after
from lehr.sdk.store import Records

_ROWS = 1000


class Courses:
    """Courses by policy, as of the last time that they were read.

    Attributes:
        seen: number of the newest evidence that counts.
    """

    def __init__(self) -> None:
        self.seen = 0
        self._of: dict[AssetId, Course] = {}

    def of(self, policy: AssetId) -> Course:
        """The course of a policy's rollouts."""
        return self._of.get(policy, Course())

    def read(self, records: Records, partition: Partition) -> None:
        """Read what was written since. Blocks.

        Raises:
            LehrError: the store cannot be read.
        """
        while True:
            found = records.evidence(partition, self.seen, _ROWS)
            for item in found:
                self._of[item.policy] = after(self.of(item.policy), item.rollout, item.fact, item.at)
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
