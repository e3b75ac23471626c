"""Looks at resources that a push may be carried out with, so that nothing is read twice in one turn.

Only for changes in place: before something is created or destroyed, the push looks again. A look has secrets
of the resource, so it is kept for seconds, and only in memory.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from lehr.base.clock import Clock
from lehr.base.digest import Digest
from lehr.model.asset import AssetKey
from lehr.model.diff import Target
from lehr.plugins.terraform.changes import Compared
from lehr.plugins.terraform.intent import Intended

_LONGEST = 5.0
"""Seconds from a look to the beginning of the push that it was made for."""

_MOST = 256


class _Look(NamedTuple):
    at: float
    target: Target
    intended: Intended
    found: Compared


class RecentLooks:
    """Looks that diffs have taken, each for one push."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[AssetKey, _Look] = OrderedDict()

    def note(self, target: Target, intended: Intended, found: Compared) -> None:
        """Keep a look, if a push may be carried out with it. Forgets earlier ones of this asset."""
        now = self._clock.monotonic()
        self._known.pop(target.key, None)
        if _changes_in_place(found) and not target.lost:
            self._known[target.key] = _Look(now, target, intended, found)
        while self._known:
            oldest = next(iter(self._known))
            if len(self._known) <= _MOST and now - self._known[oldest].at <= _LONGEST:
                break
            del self._known[oldest]

    def take(self, target: Target, intended: Intended, diff_digest: Digest) -> Compared | None:
        """The look that a push was admitted with, once; None if it is too old, or was at anything else."""
        look = self._known.pop(target.key, None)
        if look is None or self._clock.monotonic() - look.at > _LONGEST:
            return None
        is_the_same = look.target == target and look.intended == intended
        return look.found if is_the_same and look.found.diff.digest() == diff_digest else None


def _changes_in_place(found: Compared) -> bool:
    is_there = found.planned is not None and found.observed.state.value is not None
    return is_there and not found.diff.empty and not found.diff.effects.destructive
