"""The option that names the file of metric sources."""

from __future__ import annotations

from pathlib import Path

import click

metrics_option = click.option(
    "--metrics",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_METRICS",
    help="File with the metric sources of monitors. Defaults to LEHR_METRICS.",
)
