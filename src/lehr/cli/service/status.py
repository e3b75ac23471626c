"""`lehr service status`: the state of the unit."""

from __future__ import annotations

import click

from lehr.cli.command import command
from lehr.cli.output import output_option, show_text
from lehr.cli.service.systemd import Unit, service_options

_PROPERTIES = {
    "ActiveState": "active",
    "SubState": "state",
    "UnitFileState": "enabled",
    "StatusText": "status",
    "MainPID": "process",
    "ActiveEnterTimestamp": "since",
    "NRestarts": "restarts",
    "Result": "result",
}
"""Properties of a unit, and their names in the output."""

_INACTIVE = 3


@command()
@output_option("text", "json")
@service_options
def status(location: str, form: str, system: bool | None, name: str | None) -> None:
    """Show whether the service of a workspace is active, and what Lehr reports to systemd.

    Examples:
        lehr service status
        lehr service status /srv/shop -o json

    Without --system or --user, it is the one that is installed, yours first. Exits with 0 if it is active,
    and with 3 if not. `lehr status` shows the assets.
    """
    unit = Unit(location, name, system=system)
    if system is None and not unit.path.exists():
        other = Unit(location, name, system=not unit.system)
        unit = other if other.path.exists() else unit
    unit.require_systemd()
    found = unit.properties(*_PROPERTIES)
    shown = {called: found.get(key, "") for key, called in _PROPERTIES.items()}
    installed = unit.path.exists()
    document = {"unit": unit.name, "file": str(unit.path) if installed else None, **shown}
    lines = [f"{called:<9} {value}" for called, value in document.items() if value not in ("", None)]
    if not installed:
        lines = [f"{unit.name} is not installed; `lehr service install` does that"]
    show_text(form, lines, lambda: document)
    if shown["active"] not in ("active", "reloading"):
        raise click.exceptions.Exit(_INACTIVE)
