"""`lehr why ASSET --if COMMAND` and `--unblock`: dry turns of one asset, and their results as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from lehr.cli import terminal
from lehr.cli.explanation_text import differences, paint, verdict_lines
from lehr.cli.output import show_text
from lehr.cli.stored import remote_store, state_folder
from lehr.dry_run.planned import PlannedResult
from lehr.model.decision import Status

if TYPE_CHECKING:
    from lehr.dry_run.dry_turns import DryTurns
    from lehr.dry_run.planned import Planned
    from lehr.dry_run.unblock import Unblocking
    from lehr.dry_run.what_if import Supposed
    from lehr.query.partition_view import Reading

_APPROVE, _RETRY = "lehr approve ", "lehr retry "


def show_what_if(
    reading: Reading, asset: str, commands: Sequence[str], metrics: Path | None, form: str
) -> None:
    """Show how the next turn of an asset would end after these commands.

    Raises:
        LehrError: one of them is not valid, or would be refused; the asset cannot be planned.
    """
    from lehr.base.moments import plain

    remote = remote_store(reading)
    if remote is not None:
        found = remote.what_if(reading.partition, asset, commands)
    else:
        found = _supposed(reading, asset, commands, metrics)
    show_text(form, _supposed_lines(found, reading.now), lambda: plain(found))


def show_unblocking(reading: Reading, asset: str, metrics: Path | None, form: str) -> None:
    """Show the fewest commands that would unblock an asset. Raises as `show_what_if`."""
    from lehr.base.moments import plain

    remote = remote_store(reading)
    if remote is not None:
        found = remote.unblocking(reading.partition, asset)
    else:
        found = _unblocking(reading, asset, metrics)
    show_text(form, _unblocking_lines(found, reading.now), lambda: plain(found))


def _supposed(reading: Reading, asset: str, commands: Sequence[str], metrics: Path | None) -> Supposed:
    import asyncio

    async def asked() -> Supposed:
        async with _opened(reading, metrics) as turns:
            what_if = turns.what_if(asset)
            return await what_if.turn(what_if.parsed(commands))

    return asyncio.run(asked())


def _unblocking(reading: Reading, asset: str, metrics: Path | None) -> Unblocking:
    import asyncio

    from lehr.dry_run.unblock import unblocking

    async def asked() -> Unblocking:
        async with _opened(reading, metrics) as turns:
            return await unblocking(turns.what_if(asset))

    return asyncio.run(asked())


def _opened(reading: Reading, metrics: Path | None) -> AbstractAsyncContextManager[DryTurns]:
    from lehr.cli.run_log import configure_logs
    from lehr.wiring import Deployment
    from lehr.wiring.dry_runs import dry_turns, recorded_deployment

    configure_logs()
    state, here = state_folder(), Path.cwd()
    deployment = recorded_deployment(state, metrics) or Deployment(
        location=str(here), state=state, base=here, metrics=metrics
    )
    return dry_turns(reading, deployment)


# --- as text -------------------------------------------------------------------------


def _supposed_lines(found: Supposed, now: float) -> Iterator[str]:
    planned = found.planned
    yield f"{_dot(found)} {terminal.printable(f'{planned.id} {_WOULD[found.planned.result]}{_why(found)}')}"
    if found.commands:
        yield f"  if         {_commands(found)}"
    yield from _details(planned, now, blocked=not found.unblocked)


def _unblocking_lines(found: Unblocking, now: float) -> Iterator[str]:
    id = found.now.planned.id
    if found.now.unblocked:
        yield from _supposed_lines(found.now, now)
        yield "  unblock    nothing blocks it"
        return
    yield f"{_dot(found.now)} {terminal.printable(f'{id} {_IS[found.now.planned.result]}{_why(found.now)}')}"
    if found.then is not None:
        yield from _found(found.then, now)
        return
    assert found.otherwise is not None
    if found.complete:
        yield "  unblock    no commands unblock it"
    else:
        yield f"  unblock    none found: {found.sets} sets of commands were tried, smaller ones first"
    rest = found.otherwise
    if rest.commands:
        yield f"  if         {_commands(rest)}"
        yield f"  then       it {_WOULD[rest.planned.result]}{terminal.printable(_why(rest))}"
    yield from _details(rest.planned, now, blocked=True)


def _found(then: Supposed, now: float) -> Iterator[str]:
    several = len(then.commands) > 1
    yield "  unblock    run" + (" all of these; fewer are not enough" if several else "")
    for command in then.commands:
        yield f"    {terminal.printable(command)}"
    if several and then.commands[-1].startswith(_APPROVE):
        yield "  note       approve it once Lehr has carried out the other commands and shows the diff"
    if any(command.startswith(_RETRY) for command in then.commands):
        yield "  note       its last push failed, and so does the next one unless you fix the cause first"
    yield f"  then       it {_WOULD[then.planned.result]}"
    yield from _details(then.planned, now, blocked=False)


def _details(planned: Planned, now: float, *, blocked: bool) -> Iterator[str]:
    if blocked and planned.unblock:
        yield f"  unblock    {terminal.printable(planned.unblock)}"
    waiting = [item for item in planned.verdicts if not item.allow]
    if waiting:
        yield "  checks"
        for verdict in waiting:
            yield from verdict_lines(verdict, now)
    yield from differences(planned.diff)


def _commands(found: Supposed) -> str:
    return terminal.printable(", ".join(f"`{command}`" for command in found.commands))


def _why(found: Supposed) -> str:
    """The cause that blocks it, after a colon; empty if nothing does."""
    planned = found.planned
    return "" if found.unblocked else f": {planned.message or planned.reason}"


def _dot(found: Supposed) -> str:
    return paint(Status.CONVERGED if found.unblocked else Status.WAITING, "●")


_WOULD = {
    PlannedResult.AS_INTENDED: "would be as intended, without a push",
    PlannedResult.PUSHED: "would be pushed",
    PlannedResult.WAITS: "would wait",
    PlannedResult.APPROVAL: "would need approval",
    PlannedResult.HELD: "would be held",
    PlannedResult.ORPHANED: "would be left alone, because intent let it go",
    PlannedResult.NOT_KNOWN: "would not be pushed",
}
_IS = {
    PlannedResult.WAITS: "waits",
    PlannedResult.APPROVAL: "needs approval",
    PlannedResult.HELD: "is held",
    PlannedResult.NOT_KNOWN: "is not pushed",
}
