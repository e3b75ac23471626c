"""How long pushes took, from recorded ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.model.diff import Goal
from lehr.model.operation import Operation, Purpose, Result


def push_samples(operations: Iterable[Operation]) -> dict[str, list[float]]:
    """Seconds of pushes that brought new content and succeeded, by type of the asset.

    Failed pushes may have ended early, and repairs may have less to do. A push during which the clock was set
    back is left out.
    """
    found: dict[str, list[float]] = {}
    for item in operations:
        if brought_content(item) and item.ended_at is not None and item.ended_at >= item.started_at:
            found.setdefault(item.type, []).append(item.ended_at - item.started_at)
    return found


def brought_content(push: Operation) -> bool:
    """Whether a push brought new content, and succeeded."""
    return push.result is Result.DONE and push.purpose is Purpose.FORWARD and push.goal is Goal.PRESENT
