"""Pushes that were verified, and undone again: how long to wait before the next one. Pure.

Something else that writes to an asset's production, such as a second control plane or a cron job, undoes
each push after it was verified. Each repair succeeds, so no failure ever slows them down: without this
module, two such writers would undo each other's pushes as fast as they can.
"""

from __future__ import annotations

import msgspec

from lehr.base.backoff import delay
from lehr.base.digest import Digest

WINDOW = 600.0
"""Seconds within which repairs count. An asset without repairs for this long is no longer contested."""

SAME_DIFF = 3
"""Verified pushes of one diff within the window, after which the next one waits."""

ANY_DIFF = 10
"""The same for verified pushes of different diffs: a writer may write something new each time."""

FIRST_DELAY, LONGEST_DELAY = 10.0, 300.0


class Contest(msgspec.Struct, frozen=True, array_like=True):
    """Memory of verified pushes of one content.

    Attributes:
        content: content and goal that it is about.
        repairs: verified pushes within the window: when (monotonic seconds), and the diff that was pushed.
        level: verified pushes since the asset is contested; 0 while it is not.
        not_before: monotonic seconds before which a contested asset is not pushed.
    """

    content: Digest | None = None
    repairs: tuple[tuple[float, Digest], ...] = ()
    level: int = 0
    not_before: float = 0.0

    def verified(self, content: Digest, diff: Digest, now: float, jitter: float) -> Contest:
        """The memory after a push of `diff` that was verified at `now`."""
        before = self if self._remembers(content, now) else NO_CONTEST
        repairs = (*(item for item in before.repairs if now - item[0] <= WINDOW), (now, diff))[-ANY_DIFF:]
        same = sum(repaired == diff for _at, repaired in repairs)
        if not before.level and same < SAME_DIFF and len(repairs) < ANY_DIFF:
            return Contest(content, repairs)
        level = before.level + 1
        wait = delay(level, jitter, first=FIRST_DELAY, longest=LONGEST_DELAY)
        return Contest(content, repairs, level, now + wait)

    def wait(self, content: Digest, now: float) -> float:
        """Seconds for which content that differs again must not be pushed yet."""
        return max(0.0, self.not_before - now) if self.content == content and self.level else 0.0

    def _remembers(self, content: Digest, now: float) -> bool:
        return self.content == content and bool(self.repairs) and now - self.repairs[-1][0] <= WINDOW


NO_CONTEST = Contest()
