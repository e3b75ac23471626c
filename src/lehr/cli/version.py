"""`lehr version`."""

from __future__ import annotations

from lehr import __version__
from lehr.cli.command import command


@command()
def version() -> None:
    """Print the version.

    Examples:
        lehr version
    """
    print(f"lehr {__version__}")
