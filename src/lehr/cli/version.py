"""`lehr version`."""

from __future__ import annotations

import click

from lehr import __version__


@click.command(
    epilog="""
    \b
    Examples:
      lehr version
    """
)
def version() -> None:
    """Print the version."""
    print(f"lehr {__version__}")
