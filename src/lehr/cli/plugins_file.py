"""The option that names the file of plugins in processes of their own."""

from __future__ import annotations

from pathlib import Path

import click

plugins_option = click.option(
    "--plugins",
    "plugins_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="LEHR_PLUGINS",
    help="File with the plugins that run in processes of their own. Defaults to LEHR_PLUGINS.",
)
