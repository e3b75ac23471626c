"""`lehr service`: `lehr run` as a service of systemd."""

from __future__ import annotations

import click

from lehr.cli.lazy import Lazy, LazyGroup


@click.command(
    cls=LazyGroup,
    sections={
        "Services": {
            "install": Lazy("lehr.cli.service.install:install", "Write the unit, enable and start it."),
            "uninstall": Lazy("lehr.cli.service.uninstall:uninstall", "Stop and remove the unit."),
            "status": Lazy("lehr.cli.service.status:status", "Show the state of the unit."),
        },
    },
)
def service() -> None:
    """Run `lehr run` of a workspace as a service of systemd, of the system or of your user.

    Processes that Lehr supervises keep running whenever the service stops.
    See docs/how-to/run-as-a-service.md.

    Examples:
        lehr service install --dry-run
        lehr service install /srv/shop -- --listen 127.0.0.1:8470
        lehr service status
        lehr service uninstall
    """
