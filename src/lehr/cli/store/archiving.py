"""`lehr store export`, `lehr store import`: one incarnation as one file."""

from __future__ import annotations

from pathlib import Path

import click

from lehr.base.errors import LehrError
from lehr.cli.snapshots import IMPORTED, open_snapshot
from lehr.cli.stored import named_store, partition_option, running, state_folder, state_option

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    epilog="""
    \b
    Examples:
      lehr store export latest shop.incarnation
      lehr store export shop@41 /backup/shop-41.incarnation.gz
    """
)
@click.argument("incarnation")
@click.argument("file", type=_FILE)
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@state_option
@partition_option
def export(incarnation: str, file: Path, force: bool, state: Path | None, partition: str | None) -> None:
    """Write INCARNATION (3, hello@3, latest or previous) to FILE, with all its assets and digests.

    The file says itself whether it is whole. A large one is compressed, and so is one called .gz.
    """
    from lehr.store.archive import write_archive

    if file.exists() and not force:
        raise LehrError(
            f"{file} is there already",
            code="CLI155",
            fix="choose another name, or write over it with --force",
        )
    with open_snapshot(state, partition, incarnation) as snapshot:
        size = write_archive(file, snapshot.header, snapshot.assets())
        print(f"{snapshot.header.name} is in {file}: {snapshot.header.assets:,} assets, {size:,} bytes")


@click.command(
    "import",
    epilog="""
    \b
    Examples:
      lehr store import shop.incarnation --state ~/archive
      lehr get assets --incarnation imported:shop@41
      lehr diff imported:shop@41 latest
    """,
)
@click.argument("file", type=_FILE)
@click.option("--replace", is_flag=True, help="Put it in the place of another one of its name.")
@state_option
def import_(file: Path, replace: bool, state: Path | None) -> None:
    """Keep the incarnation in FILE, to be read as imported:NAME. It is never in force.

    Every digest is computed anew; a file that was changed or is not whole is refused as a whole.
    """
    from lehr import wiring
    from lehr.base.clock import SystemClock
    from lehr.control.lock import exclusive
    from lehr.model.writes import Import, Refused

    folder = state_folder(state)
    if running(folder):
        raise LehrError(
            f"a `lehr run` uses state folder {folder}",
            code="CLI156",
            fix="import into another one with --state, or end it",
        )
    with exclusive(folder):
        store = wiring.open_store(folder, named_store())
        try:
            [answer] = store.commit([Import(file.absolute(), SystemClock().now(), replace)])
        finally:
            store.close()
    if isinstance(answer, Refused):
        raise LehrError(answer.message, code="CLI157", fix="put this one in its place with --replace")
    print(f"{IMPORTED}{answer.name} can be read in {folder}: {answer.assets:,} assets")
