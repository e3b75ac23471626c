"""`lehr plugin list`: the plugins that run in processes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lehr.base.clock import SystemClock, iso
from lehr.cli import formatting
from lehr.cli.command import command
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.stored import state_folder, state_option

if TYPE_CHECKING:
    from lehr.wiring.plugin_records import PluginRecord


@command(name="list")
@state_option
@output_option()
def list_(form: str) -> None:
    """List the plugins of the active `lehr run` that run in processes of their own.

    Examples:
        lehr plugin list
        lehr plugin list -o json

    ERROR is why a plugin is not available; Lehr tries again automatically, at most a minute later.
    """
    from lehr.wiring.plugin_records import plugin_records

    show(form, plugin_records(state_folder()), _shape(SystemClock().now()), nothing="no plugins")


def _shape(now: float) -> Shape[PluginRecord]:
    return Shape(
        (
            Column("NAME", lambda item: item.name),
            Column("VERSION", lambda item: item.version or "-"),
            Column("STATE", _state),
            Column("SINCE", lambda item: formatting.age(item.since, now)),
            Column("STARTS", lambda item: str(item.starts)),
            Column("TYPES", lambda item: ", ".join(item.types) or "-"),
            Column("CHECKS", lambda item: ", ".join(item.checks) or "-"),
            Column("VALIDATORS", lambda item: ", ".join(item.validators) or "-"),
            Column("PROCESS", lambda item: str(item.pid or item.address or "-"), wide=True),
            Column("ERROR", lambda item: item.error or "-"),
        ),
        lambda item: {**msgspec.to_builtins(item), "state": _state(item), "since": iso(item.since)},
        lambda item: item.name,
    )


def _state(record: PluginRecord) -> str:
    if record.error:
        return "failed"
    return "running" if record.pid else "attached"
