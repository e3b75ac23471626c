"""`lehr store export`, `lehr store import`: one incarnation as one file."""

from __future__ import annotations

from pathlib import Path

import click

from lehr.base.errors import LehrError
from lehr.cli.command import command
from lehr.cli.complete import complete_incarnation
from lehr.cli.snapshots import IMPORTED, open_snapshot
from lehr.cli.stored import open_store, partition_option, running, state_folder, state_option

_FILE = click.Path(path_type=Path, dir_okay=False)


@command()
@click.argument("incarnation", shell_complete=complete_incarnation)
@click.argument("file", type=_FILE)
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@state_option
@partition_option
def export(incarnation: str, file: Path, force: bool) -> None:
    """Write INCARNATION (3, hello@3, latest or previous) to FILE, with all its assets and digests.

    The file contains checksums. It is compressed if it is large or its name ends with .gz.

    Examples:
        lehr store export latest shop.incarnation
        lehr store export shop@41 /backup/shop-41.incarnation.gz
    """
    from lehr.store.archive import write_archive

    if file.exists() and not force:
        raise LehrError(
            f"{file} already exists",
            code="CLI155",
            fix="choose another name, or overwrite it with --force",
        )
    with open_snapshot(incarnation) as snapshot:
        size = write_archive(file, snapshot.header, snapshot.assets())
        print(f"{snapshot.header.name} exported to {file}: {snapshot.header.assets:,} assets, {size:,} bytes")


@command("import")
@click.argument("file", type=_FILE)
@click.option("--replace", is_flag=True, help="Replace an imported incarnation with the same name.")
@state_option
def import_(file: Path, replace: bool) -> None:
    """Import the incarnation in FILE, to be read as imported:NAME. It never comes into force.

    Every digest is recomputed; a modified or incomplete file is refused as a whole.

    Examples:
        lehr store import shop.incarnation --state ~/archive
        lehr get assets --incarnation imported:shop@41
        lehr diff imported:shop@41 latest
    """
    from lehr.base.clock import SystemClock
    from lehr.control.lock import exclusive
    from lehr.model.writes import Import, Refused

    folder = state_folder()
    if running(folder):
        raise LehrError(
            f"a `lehr run` uses state folder {folder}",
            code="CLI156",
            fix="import into another one with --state, or stop it",
        )
    with exclusive(folder), open_store(folder, read_only=False) as store:
        [answer] = store.commit([Import(file.absolute(), SystemClock().now(), replace)])
    if isinstance(answer, Refused):
        raise LehrError(answer.message, code="CLI157", fix="replace it with --replace")
    print(f"{IMPORTED}{answer.name} imported into {folder}: {answer.assets:,} assets")
