"""The screens of one asset: why it has its status, what would unblock it, and the assets around it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lehr.http.problems import ProblemError
from lehr.page.api import InPartition
from lehr.page.graph_view import MOST_LISTED, NODE_HEIGHT, NODE_WIDTH, graph_view
from lehr.page.rendering import tone

_OTHERS = 8
_SETTLED = ("good", "quiet")
_BLOCKED = ("wait", "bad")
_PATIENCE = 2.0
"""Seconds."""


async def read_asset(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """Why an asset has its status, now or at a time."""
    id = asked["id"]
    why = await api.get("why", asset=id, at=asked.get("at"))
    try:
        asset = await api.get("asset", id=id)
    except ProblemError:
        asset = None  # it has left intent
    shown_as = tone(why["asset"]["status"], why["asset"]["reason"])
    waits = not why["past"] and shown_as not in _SETTLED
    return {
        "id": id,
        "why": why,
        "asset": asset,
        "at_asked": asked.get("at", ""),
        "waits": waits,
        "cause": await _cause(api, id) if waits else None,
        "most_others": _OTHERS,
        "can_unblock": waits and shown_as in _BLOCKED and await api.compares(),
    }


async def read_unblock(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """The fewest commands that would unblock an asset, from a dry turn."""
    return {"id": asked["id"], "found": await api.get("unblock", asset=asked["id"])}


async def _cause(api: InPartition, id: str) -> Any:
    """The root cause of an asset; None if it has none, or if many causes take long to find.

    The rest of the screen does not depend on the cause, so a slow search must not delay it further.
    """
    try:
        async with asyncio.timeout(_PATIENCE):
            found = await api.get("causes", of=id, examples=_OTHERS + 1)
    except (ProblemError, TimeoutError):
        return None
    return found["causes"][0] if found["causes"] else None


async def read_graph(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """The assets around one."""
    answer = await api.get("graph", around=asked["id"], hops=asked.get("hops"))
    return {
        "shown": graph_view(answer),
        "node_width": NODE_WIDTH,
        "node_height": NODE_HEIGHT,
        "most_listed": MOST_LISTED,
    }
