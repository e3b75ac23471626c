"""Depends-on: an asset is pushed once the assets it depends on need no push.

The order is static: what the addon `lehr.DependsOn` says, and fields whose type says that the
asset they name goes first. A turndown goes the other way, dependants first; the
Enforcer sees to that, because only it knows who depends on an asset.
"""

from __future__ import annotations

import asyncio

import msgspec

from lehr.base.errors import LehrError
from lehr.model.addons import DEPENDS_ON
from lehr.model.asset import AssetId
from lehr.model.decision import Verdict
from lehr.model.diff import Goal
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest

MISSING = "DependencyMissing"
UNREADABLE = "DependencyUnreadable"
DIFFERS = "DependencyDiffers"


class _Obstacle(msgspec.Struct, frozen=True):
    id: AssetId
    reason: str
    message: str
    unblock: str


class DependsOnCheck(CheckPlugin):
    """Waits until every asset that goes first has an empty diff."""

    name = "depends-on"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        if request.target.goal is not Goal.PRESENT:
            return []
        ids = read.registry.dependencies(request.asset)
        if not ids:
            return []
        found = await asyncio.gather(*(_obstacle(id, read) for id in ids))
        return [_verdict([obstacle for obstacle in found if obstacle is not None])]


async def _obstacle(id: AssetId, read: CheckReader) -> _Obstacle | None:
    try:
        diff = await read.diff(id)
    except LehrError as error:
        # One dependency that cannot be looked at must not hide what the others wait for.
        return _Obstacle(id, UNREADABLE, f"{id} cannot be compared: {error}", f"{id} can be compared again")
    if diff is None:
        return _Obstacle(
            id, MISSING, f"{id} is not in intent", f"declare {id}, or take it out of {DEPENDS_ON}"
        )
    if diff.empty:
        return None
    return _Obstacle(id, DIFFERS, f"{id} differs in {diff.summary()}", f"{id} converges")


def _verdict(obstacles: list[_Obstacle]) -> Verdict:
    if not obstacles:
        return Verdict(DependsOnCheck.name, allow=True, message="every dependency has converged")
    # The reason is the one that takes most to mend; the message names all.
    worst = min((MISSING, UNREADABLE, DIFFERS).index(item.reason) for item in obstacles)
    return Verdict(
        DependsOnCheck.name,
        allow=False,
        reason=(MISSING, UNREADABLE, DIFFERS)[worst],
        message="; ".join(item.message for item in obstacles),
        unblock="; ".join(item.unblock for item in obstacles),
        wait_for=tuple(item.id for item in obstacles),
    )
