"""Output of script commands that look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.model.decision import Status
from lehr.query.asset_rows import Row
from lehr.query.explain import Explanation, explain
from lehr.testing.sim.script_commands import Said
from lehr.testing.sim.script_stage import Stage


def told_value(value: Any) -> str:
    """A value of production on one line."""
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


async def why(stage: Stage, asset: str) -> Said:
    """Say how an asset stands, why, and what would unblock it, as `lehr why` does."""
    reading = stage.reading()
    try:
        return list(_told(explain(reading, asset), reading.now))
    finally:
        reading.store.close()


def _next(row: Row, now: float) -> Iterator[str]:
    does = "retries" if row.automatic else "checks production"
    if row.next_at is not None:
        yield f"  next: {does} in {max(0.0, row.next_at - now):.0f} s"
    elif row.resync is not None:
        yield f"  next: {does} within {row.resync:.0f} s"


def _told(explanation: Explanation, now: float) -> Iterator[str]:
    row = explanation.row
    yield f"{row.id} is {row.status} {row.reason}".rstrip() + (f": {row.message}" if row.message else "")
    if row.unblock:
        yield f"  unblocked by: {row.unblock}"
    if not row.settled and row.status != Status.PUSHING:
        yield from _next(row, now)
    for link in explanation.chain:
        again = ", and is waited for again: they wait for each other" if link.cycle else ""
        yield f"  waits for: {link.row.id}, which is {link.row.status} {link.row.reason}{again}"
    for control in explanation.controls:
        yield f"  stands: {control.kind} for {control.selector} by {control.actor}: {control.reason}"
