"""`lehr service uninstall`: stop and remove the unit."""

from __future__ import annotations

import shlex

import click

from lehr.base.errors import LehrError, raised_as
from lehr.cli.command import command
from lehr.cli.service.systemd import Unit, service_options


@command()
@service_options
@click.option("--dry-run", is_flag=True, help="Only print what would be called.")
def uninstall(location: str, dry_run: bool, system: bool | None, name: str | None) -> None:
    """Stop the service of a workspace, and remove its unit. Production and state stay as they are.

    Examples:
        lehr service uninstall --dry-run
        lehr service uninstall /srv/shop
        lehr service uninstall --name shop --user

    Processes that Lehr supervises keep running; `lehr stop --processes` stops them.
    """
    unit = Unit(location, name, system=system)
    if not dry_run:
        unit.require_systemd()
        unit.require_permission()
    if unit.written() is None:
        print(f"{unit.path} does not exist; nothing to remove")
        return
    disable, remove, reload = ("disable", "--now", unit.name), f"rm {unit.path}", ("daemon-reload",)
    if dry_run:
        calls = [shlex.join(unit.command(*disable)), remove, shlex.join(unit.command(*reload))]
        print("would be called:", *calls, sep="\n  ")
        return
    unit.call(*disable)
    print(f"  {remove}")
    with raised_as(LehrError, f"{unit.path} cannot be removed", code="CLI184"):
        unit.path.unlink()
    unit.call(*reload)
    print(f"{unit.name} was removed; production keeps running")
