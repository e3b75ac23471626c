"""Commands of scripts that people give, in the words of the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lehr.base.errors import LehrError
from lehr.control.messages import (
    Approve,
    Freeze,
    Lift,
    Override,
    Pause,
    Pin,
    Refresh,
    Retry,
)
from lehr.testing.sim.script_commands import Command, Said
from lehr.testing.sim.script_stage import Stage

_BECAUSE = "as the script says"
_CONTROL = "SELECTOR [--reason TEXT] [--for TIME] [--by TEXT]"


def _setting(kind: type[Freeze | Pause], says: str) -> Callable[..., Awaitable[Said]]:
    async def carry_out(
        stage: Stage, selector: str, reason: str = _BECAUSE, seconds: float | None = None, by: str = "ana"
    ) -> Said:
        return await stage.command(kind(selector=selector, reason=reason, seconds=seconds), by)

    carry_out.__doc__ = says
    return carry_out


def _lifting(kind: str, says: str) -> Callable[..., Awaitable[Said]]:
    async def carry_out(stage: Stage, selector: str, by: str = "ana") -> Said:
        return await stage.command(Lift(kind=kind, selector=selector), by)

    carry_out.__doc__ = says
    return carry_out


async def pin(
    stage: Stage,
    selector: str,
    at: str,
    reason: str = _BECAUSE,
    seconds: float | None = None,
    by: str = "ana",
) -> Said:
    """Keep assets at one incarnation."""
    newest = max(stage.witness.incarnations, default=0)
    sequence = {"latest": newest, "previous": newest - 1}.get(at)
    incarnation = int(at) if sequence is None else sequence
    request = Pin(selector=selector, reason=reason, seconds=seconds, incarnation=incarnation)
    return await stage.command(request, by)


async def rollback(
    stage: Stage,
    selector: str,
    to: str = "previous",
    reason: str = _BECAUSE,
    seconds: float | None = None,
    by: str = "ana",
) -> Said:
    """Pin assets to the incarnation before, or to an earlier one."""
    return await pin(stage, selector, to, reason, seconds, by)


async def approve(
    stage: Stage, asset: str, reason: str = _BECAUSE, seconds: float | None = None, by: str = "ana"
) -> Said:
    """Let the present diff of an asset be carried out although it destroys."""
    return await stage.command(Approve(selector=f"id={asset}", reason=reason, seconds=seconds), by)


async def override(
    stage: Stage,
    selector: str,
    check: str,
    reason: str = _BECAUSE,
    seconds: float | None = None,
    by: str = "ana",
) -> Said:
    """Let pushes through a check that allows it."""
    request = Override(selector=selector, reason=reason, seconds=seconds, check=check)
    return await stage.command(request, by)


async def revoke(stage: Stage, kind: str, selector: str, by: str = "ana") -> Said:
    """Take an approval or an override back."""
    return await stage.command(Lift(kind=kind, selector=selector), by)


async def retry(stage: Stage, selector: str, by: str = "ana") -> Said:
    """Try again now what failed or stalled."""
    return await stage.command(Retry(selector=selector), by)


async def sync(stage: Stage, by: str = "ana") -> Said:
    """Look at the source now."""
    return await stage.command(Refresh(), by)


async def audit(stage: Stage) -> Said:
    """Show what people did, as the audit trail has it, oldest first."""
    reading = stage.reading()
    try:
        entries = reading.records.audit(stage.site.partition)
    finally:
        reading.store.close()
    if not entries:
        raise LehrError("nobody gave a command yet")
    return [
        f"{entry.actor}: {entry.command} {_arguments(entry.arguments)}-> {entry.result}"
        for entry in reversed(entries)
    ]


def _arguments(arguments: dict[str, object]) -> str:
    return "".join(f"{name}={value} " for name, value in arguments.items())


COMMANDS = (
    Command(f"freeze {_CONTROL}", _setting(Freeze, "Push nothing, but go on looking.")),
    Command("unfreeze SELECTOR [--by TEXT]", _lifting("freeze", "Take a freeze back.")),
    Command(f"pause {_CONTROL}", _setting(Pause, "Leave assets alone: no looking, no pushing.")),
    Command("resume SELECTOR [--by TEXT]", _lifting("pause", "Take a pause back.")),
    Command(f"pin {_CONTROL} --at INCARNATION", pin),
    Command("unpin SELECTOR [--by TEXT]", _lifting("pin", "Take a pin back.")),
    Command(f"rollback {_CONTROL} [--to INCARNATION]", rollback),
    Command("approve ASSET [--reason TEXT] [--for TIME] [--by TEXT]", approve),
    Command(f"override {_CONTROL} --check ASSET", override),
    Command("revoke approval|override SELECTOR [--by TEXT]", revoke),
    Command("retry SELECTOR [--by TEXT]", retry),
    Command("sync [--by TEXT]", sync),
    Command("audit", audit),
)
