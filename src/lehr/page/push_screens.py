"""The screens of pushes: those under way with earlier ones, and one with its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from lehr.base.moments import span
from lehr.page.api import InPartition

_PAGE = 100


class StepView(NamedTuple):
    """A report of a plugin.

    Attributes:
        after: time since the push began.
    """

    after: str
    message: str


async def read_pushes(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """Pushes under way, and a page of all."""
    open_ones, page = await asyncio.gather(
        api.get("operations", open="true", asset=asked.get("asset")),
        api.get("operations", limit=_PAGE, cursor=asked.get("cursor"), asset=asked.get("asset")),
    )
    return {"open": open_ones["operations"], "page": page, "of": asked.get("asset", "")}


async def read_push(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """One push."""
    push = await api.get("operation", operation=asked["id"])
    steps = [StepView(_between(push["started_at"], item["at"]), item["message"]) for item in push["steps"]]
    took = _between(push["started_at"], push["ended_at"]) if push["ended_at"] else ""
    return {"push": push, "steps": steps, "took": took}


def _between(start: str, end: str) -> str:
    return span((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
