"""The release that an asset waits for, as `lehr why` shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lehr.cli import formatting, terminal
from lehr.model.reason import Reason
from lehr.query.explain import Explanation
from lehr.query.partition_view import Reading

if TYPE_CHECKING:
    from lehr.rollouts.status import RolloutStatus
    from lehr.strategist.overview import AwaitedRelease


def awaited_release(reading: Reading, explanation: Explanation) -> tuple[list[str], dict[str, Any] | None]:
    """Lines and a document about the release that an asset waits for; nothing if it waits for none.

    It may be the release of an asset that it depends on.
    """
    rows = (explanation.row, *(link.row for link in explanation.chain))
    id = next((row.id for row in rows if row.reason == Reason.AWAITING_RELEASE), None)
    if id is None:
        return [], None
    from lehr.cli.rollout.current import rollouts_of
    from lehr.query.asset_rows import known_asset

    rollouts = rollouts_of(reading)
    asset, _came_with = known_asset(reading, id)
    awaited = None if rollouts is None else rollouts.awaited_by(asset)
    if awaited is None:
        return [], None
    return list(_lines(awaited, reading, of=explanation.row.id)), _document(awaited)


def _lines(awaited: AwaitedRelease, reading: Reading, of: str) -> Iterator[str]:
    status, it = awaited.status, "it" if awaited.asset == of else awaited.asset
    if status is None:
        yield f"  release    no rollout policy governs {it} any more, so nothing newer is released to it"
        yield f"  unblock    `lehr rollout release {awaited.asset} --reason TEXT` lets it follow intent again"
        return
    yield f"  release    {terminal.printable(_of_policy(awaited, status, reading, it))}"
    if status.waits_for:
        yield f"  waits for  {terminal.printable(status.waits_for)}"
    if status.until is not None:
        yield f"  next       {formatting.when(status.until, reading.now)}"
    if status.unblock:
        yield f"  unblock    {terminal.printable(status.unblock)}"
    yield f"  see        `lehr rollout show {status.policy}`"


def _of_policy(awaited: AwaitedRelease, status: RolloutStatus, reading: Reading, it: str) -> str:
    from lehr.cli.rollout.text import headline

    if not status.target:
        return headline(status)
    wave = f", wave {status.wave} of {status.waves}" if status.wave else ""
    target = f"rollout of {status.policy} to {reading.partition}@{status.target}{wave}"
    unit = awaited.unit
    if unit is None:
        return f"{target}; {it} does not take part"
    of = it if unit.id == awaited.asset else f"{'its unit' if it == 'it' else 'unit'} {unit.id}"
    return f"{target}; {of} is {unit.state}" + (f": {unit.why}" if unit.why else "")


def _document(awaited: AwaitedRelease) -> dict[str, Any]:
    from lehr.base.moments import plain
    from lehr.cli.documents import of_rollout

    return {
        "release": plain(awaited.release),
        "rollout": None if awaited.status is None else of_rollout(awaited.status),
        "unit": plain(awaited.unit),
    }
