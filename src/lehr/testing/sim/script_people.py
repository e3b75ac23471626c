"""Commands of scripts that people give, in the words of the command line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lehr.base.errors import LehrError
from lehr.control.messages import (
    AnyRequest,
    Approve,
    Controlling,
    Freeze,
    Lift,
    Override,
    Pause,
    Pin,
    Refresh,
    Retry,
)
from lehr.testing.sim.script_commands import Command, Output
from lehr.testing.sim.script_harness import ScriptHarness

_CONTROL = "SELECTOR [--reason TEXT] [--for TIME] [--by TEXT]"

Asks = Callable[..., AnyRequest]
"""The request that a command's harness, arguments and options make."""


def _gives(usage: str, summary: str, request: Asks) -> Command:
    """A command that gives a request to the control plane, and shows its answer."""

    async def carry_out(harness: ScriptHarness, *arguments: Any, by: str = "ana", **options: Any) -> Output:
        return await harness.command(request(harness, *arguments, **options), by)

    carry_out.__doc__ = summary
    return Command(usage, carry_out)


def _sets(kind: type[Controlling]) -> Asks:
    def request(harness: ScriptHarness, selector: str, **options: Any) -> Any:
        return kind(selector=selector, **{"reason": "as the script asks", **options})

    return request


def _lifts(kind: str) -> Asks:
    return lambda harness, selector: Lift(kind=kind, selector=selector)


def _pin(harness: ScriptHarness, selector: str, at: str, **options: Any) -> AnyRequest:
    return _sets(Pin)(harness, selector, incarnation=harness.sequence(at), **options)


def _approve(harness: ScriptHarness, asset: str, **options: Any) -> AnyRequest:
    return _sets(Approve)(harness, f"id={asset}", **options)


async def audit(harness: ScriptHarness) -> Output:
    """Show what people did, as the audit trail has it, oldest first."""
    with harness.reading() as reading:
        entries = [entry for _number, entry in reading.records.audit(harness.partition)]
    if not entries:
        raise LehrError("no command has been given yet")
    return [
        f"{entry.actor}: {entry.command} {_arguments(entry.arguments)}-> {entry.result}"
        for entry in reversed(entries)
    ]


def _arguments(arguments: dict[str, object]) -> str:
    return "".join(f"{name}={value} " for name, value in arguments.items())


COMMANDS = (
    _gives(f"freeze {_CONTROL}", "Push nothing, but keep looking.", _sets(Freeze)),
    _gives("unfreeze SELECTOR [--by TEXT]", "Take a freeze back.", _lifts("freeze")),
    _gives(f"pause {_CONTROL}", "Leave assets alone: no looking, no pushing.", _sets(Pause)),
    _gives("resume SELECTOR [--by TEXT]", "Take a pause back.", _lifts("pause")),
    _gives(f"pin {_CONTROL} --at INCARNATION", "Keep assets at one incarnation.", _pin),
    _gives("unpin SELECTOR [--by TEXT]", "Take a pin back.", _lifts("pin")),
    _gives(
        f"rollback {_CONTROL} [--to INCARNATION]",
        "Pin assets to the incarnation before, or to an earlier one.",
        lambda harness, selector, to="previous", **options: _pin(harness, selector, to, **options),
    ),
    _gives(
        "approve ASSET [--reason TEXT] [--for TIME] [--by TEXT]",
        "Let the present diff of an asset be carried out although it destroys.",
        _approve,
    ),
    _gives(
        f"override {_CONTROL} --check ASSET", "Let pushes through a check that allows it.", _sets(Override)
    ),
    _gives(
        "revoke approval|override SELECTOR [--by TEXT]",
        "Take an approval or an override back.",
        lambda harness, kind, selector: Lift(kind=kind, selector=selector),
    ),
    _gives(
        "retry SELECTOR [--by TEXT]",
        "Try again now what failed or stalled.",
        lambda harness, selector: Retry(selector=selector),
    ),
    _gives("sync [--by TEXT]", "Look at the source now.", lambda harness: Refresh()),
    Command("audit", audit),
)
