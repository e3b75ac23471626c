"""Pin: which content and which governing incarnation a turn reads. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from lehr.base.digest import Digest
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry
from lehr.model.release import Release, Released, ReleaseKind
from lehr.model.types import addon_names

SameContent = Callable[[AssetId, int, int], bool]
"""Whether two incarnations have the same content of an asset."""


class Holds(NamedTuple):
    """The controls and the release that may keep an asset from the newest content.

    Attributes:
        controls: those that are active now and may select it, in the order in which they were set.
        released: its release; None if releases do not govern it.
    """

    controls: Sequence[Control] = ()
    released: Released | None = None


NO_HOLDS = Holds()


class Pinning(msgspec.Struct, frozen=True):
    """The holds on an asset at one moment.

    Attributes:
        content: sequence that intent is read at; the governing one unless a pin or release holds it back.
            0 for an asset that releases govern, that has none, and that was never applied.
        pin, pause: the control that does it, if one does.
        approved: digests of destructive diffs that may be carried out.
        until: wall-clock seconds when the first pin or pause over it expires; None if none does.
        released: its release; None if releases do not govern it.
        awaits_release: True if the release is what keeps it from newer content.
        restarts: requests to restart it that are not carried out yet; the newest is the last.
    """

    content: int
    pin: Control | None = None
    pause: Control | None = None
    approved: frozenset[Digest] = frozenset()
    until: float | None = None
    released: Released | None = None
    awaits_release: bool = False
    restarts: tuple[Control, ...] = ()

    @property
    def restart(self) -> str:
        """The restart that production must have had, as in `Target.restart`."""
        return self.restarts[-1].id if self.restarts else ""

    @property
    def release(self) -> str:
        """The id of the release that counts; empty if none does."""
        release = None if self.released is None else self.released.release
        return "" if release is None else release.id

    @property
    def released_at(self) -> int:
        """The incarnation of that release; 0 if none counts, or it is for intent as it is."""
        release = None if self.released is None else self.released.release
        return 0 if release is None else release.target or 0

    @property
    def taken_back(self) -> bool:
        """Whether a rollout took newer content back."""
        release = None if self.released is None else self.released.release
        return release is not None and release.kind is ReleaseKind.ROLLBACK

    @property
    def held(self) -> bool:
        """Whether a person's pin or a release decides which content it has."""
        return self.pin is not None or self.released is not None


def pin(
    asset: Asset,
    governing: int,
    holds: Holds,
    *,
    applied: int = 0,
    same: SameContent = lambda id, one, other: one == other,
) -> Pinning:
    """Choose the content incarnation of `asset`.

    Of several pins the newest wins: it is the latest decision. A release is a limit for them. Invariant: I10.

    Args:
        asset: as intent last had it.
        governing: sequence of the newest incarnation, or of the last that had the asset.
        applied: sequence of the content that was last applied; 0 if none was.
        same: a release holds also for later incarnations that are the same to it.
    """
    controls, released = holds
    if not controls and released is None:
        return Pinning(governing)
    chosen: Control | None = None
    pause: Control | None = None
    approved: set[Digest] = set()
    ends: list[float] = []
    for control in controls:
        if control.kind in (ControlKind.FREEZE, ControlKind.OVERRIDE):
            continue  # those are for checks to weigh
        if not control.selector.matches(asset):
            continue
        if control.kind in (ControlKind.PIN, ControlKind.PAUSE) and control.expires_at is not None:
            ends.append(control.expires_at)
        if control.kind is ControlKind.PIN:
            chosen = control
        elif control.kind is ControlKind.PAUSE:
            pause = control
        elif control.diff_digest is not None:
            approved.add(control.diff_digest)
    content = wanted = governing if chosen is None or chosen.incarnation is None else chosen.incarnation
    if released is not None:
        content = min(wanted, _released_content(asset.id, released.release, wanted, applied, same))
    until = min(ends, default=None)
    restarts = tuple(
        item for item in controls if item.kind is ControlKind.RESTART and item.selector.matches(asset)
    )
    return Pinning(content, chosen, pause, frozenset(approved), until, released, content < wanted, restarts)


def _released_content(
    id: AssetId, release: Release | None, wanted: int, applied: int, same: SameContent
) -> int:
    """The incarnation that `release` allows instead of `wanted`; without one, what was applied stays.

    A later one is allowed itself if it has the released content, which may have changed in between and back.
    """
    if release is None:
        return applied
    assert release.target is not None, "an asset that was let go is not governed by releases"
    if release.target < wanted and all(same(other, release.target, wanted) for other in (id, *release.reads)):
        return wanted
    return release.target


def applied_content(ledger: LedgerEntry | None, newest: Asset) -> int:
    """The incarnation whose content was applied last; 0 for none.

    What was removed, and comes back in `newest`, has none: it is not made again as it was.
    """
    if ledger is None:
        return 0
    comes_back = ledger.goal is Goal.ABSENT and TURNDOWN not in addon_names(newest)
    return 0 if comes_back else ledger.content
