"""The release that an asset waits for, as `lehr why` shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lehr.cli import formatting, terminal
from lehr.model.reason import Reason
from lehr.query.explain import Explanation
from lehr.query.partition_view import Reading

if TYPE_CHECKING:
    from lehr.rollouts.status import RolloutStatus
    from lehr.strategist.overview import AwaitedRelease


def awaited_release(reading: Reading, explanation: Explanation) -> AwaitedRelease | None:
    """The release that an asset waits for; None if it waits for none."""
    if all(row.reason != Reason.AWAITING_RELEASE for row in explanation.rows):
        return None  # which is quick
    from lehr.cli.rollout.current import rollouts_of
    from lehr.strategist.documents import release_awaited

    return release_awaited(reading, explanation, rollouts_of(reading))


def release_lines(awaited: AwaitedRelease, reading: Reading, of: str) -> Iterator[str]:
    """Lines about a release that the asset `of` waits for."""
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
