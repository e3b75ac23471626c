"""Orders that contradict dependencies: an updated unit needs one that comes later. Pure."""

from __future__ import annotations

from collections.abc import Container

from lehr.model.asset import AssetId
from lehr.rollouts.course import Rollout
from lehr.rollouts.members import Units
from lehr.rollouts.selection import Selection


def contradiction(rollout: Rollout, units: Units, selection: Selection, soaking: Container[str] = ()) -> str:
    """Why only a person can continue a rollout; empty if that is not so.

    It is if nothing is updated now, and each unit that is updated and not good waits for the content of one
    that is still to be updated.

    Args:
        soaking: validated units that must be good for longer.
    """
    unproven = [
        unit
        for unit in rollout.watched
        if unit in units
        and (unit not in rollout.validated or (unit in soaking and not _is_good(units, unit)))
    ]
    if selection.update or not unproven:
        return ""
    pending = {
        item.id: unit
        for unit in selection.others.keys() - rollout.updated.keys()
        for item in units.get(unit, ())
        if item.wants_target
    }
    found = [_blocked(units, unit, pending) for unit in unproven]
    if not all(found):
        return ""
    id, other = next(item for item in found if item is not None)
    reason = selection.others[pending[other]]
    return f"{id} waits for {other}, which is not updated: {reason}; so neither of them can go first"


def _is_good(units: Units, unit: str) -> bool:
    return all(item.good for item in units[unit])


def _blocked(units: Units, unit: str, pending: dict[AssetId, str]) -> tuple[AssetId, AssetId] | None:
    """An asset of a unit, and another one that it waits for and that is `pending`; None if there is none."""
    for item in units[unit]:
        for other in item.awaits:
            if other in pending:
                return item.id, other
    return None
