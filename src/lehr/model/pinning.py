"""Pin: which content and which governing incarnation a turn reads. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset
from lehr.model.control import Control, ControlKind


class Pinning(msgspec.Struct, frozen=True):
    """Controls over an asset at one moment.

    Attributes:
        content: sequence that intent is read at; the governing one unless a pin holds it back.
        pin, pause: the control that does it, if one does.
        approved: digests of destructive diffs that may be carried out.
        until: wall-clock seconds when the first pin or pause over it expires; None if none does.
    """

    content: int
    pin: Control | None = None
    pause: Control | None = None
    approved: frozenset[Digest] = frozenset()
    until: float | None = None


def pin(asset: Asset, governing: int, controls: Sequence[Control]) -> Pinning:
    """Choose the content incarnation of `asset`.

    Of several pins the newest wins: it is the latest decision.

    Args:
        asset: as intent last had it.
        governing: sequence of the newest incarnation.
        controls: those that are active now, in the order in which they were given.
    """
    if not controls:
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
    content = governing if chosen is None or chosen.incarnation is None else chosen.incarnation
    return Pinning(content, chosen, pause, frozenset(approved), min(ends, default=None))
