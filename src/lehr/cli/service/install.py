"""`lehr service install`: write, enable and start the unit."""

from __future__ import annotations

import getpass
import shlex
from pathlib import Path

import click

from lehr.cli.command import command
from lehr.cli.service.systemd import Unit, service_options
from lehr.cli.stored import own_state_option


@command()
@service_options
@own_state_option(of="DIR")
@click.option("--dry-run", is_flag=True, help="Only print the unit and the calls of systemctl.")
@click.argument("options", metavar="[-- RUN_OPTIONS]", nargs=-1, type=click.UNPROCESSED)
def install(
    location: str,
    options: tuple[str, ...],
    state: Path | None,
    dry_run: bool,
    system: bool | None,
    name: str | None,
) -> None:
    """Write a unit of systemd that runs `lehr run DIR RUN_OPTIONS`, enable it and start it.

    Examples:
        lehr service install --dry-run
        lehr service install /srv/shop -- --listen 127.0.0.1:8470 --log-format json
        lehr service install --user ~/shop

    The service uses the state of the workspace, and continues where `lehr run` stopped; stop that one
    first. Running it again restarts the service only if its unit has changed. Supervised processes are
    never restarted. Variables that are secret, such as LEHR_STORE, belong in the file that the unit names as
    EnvironmentFile.
    """
    from lehr.cli.service.service_command import service_unit

    if location.startswith("-"):  # as in `install -- --listen ...`
        location, options = ".", (location, *options)
    unit = Unit(location, name, system=system)
    if not dry_run:
        unit.require_systemd()
        unit.require_permission()
    text = service_unit(unit, location, state, options).text()
    changed = unit.written() != text
    calls = [("daemon-reload",), ("enable", unit.name), ("restart", unit.name)]
    if not changed:
        calls = [("enable", "--now", unit.name)]
    if dry_run:
        _show(unit, text, calls)
        return
    if changed:
        unit.write(text)
    print(f"{unit.path} {'was written' if changed else 'is up to date'}")
    for call in calls:
        unit.call(*call)
    print(f"{unit.name} is active; see `lehr service status` and `{unit.journal}`")
    if not unit.system and not Path("/var/lib/systemd/linger", getpass.getuser()).exists():
        print(
            "It ends when you log out, with all supervised processes; `loginctl enable-linger` prevents that."
        )


def _show(unit: Unit, text: str, calls: list[tuple[str, ...]]) -> None:
    print(text, end="")
    click.echo(f"\nwould be written to {unit.path}, and then called:", err=True)
    for call in calls:
        click.echo(f"  {shlex.join(unit.command(*call))}", err=True)
