"""`lehr diff`: differences between two states of intent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli.main import DIFFERENCES
from lehr.cli.output import output_option, print_lines, show_document
from lehr.cli.snapshots import IMPORTED, open_snapshot
from lehr.cli.stored import open_reading, partition_option, registry, state_option

if TYPE_CHECKING:
    from lehr.query.compare import Comparison
    from lehr.query.partition_view import Reading


@click.command(
    epilog="""
    \b
    Examples:
      lehr diff previous latest             what the newest incarnation changed
      lehr diff 3 hello@7
      lehr diff imported:hello@3 latest
      lehr diff                             the newest incarnation and the files here
      lehr diff latest --workdir ../intent -o markdown > comment.md
      lehr diff previous latest --exit-code

    Ends with 0; with --exit-code, with 3 when there are differences.
    """
)
@click.argument("before", metavar="[A]", default="latest")
@click.argument("after", metavar="[B]", required=False)
@click.option(
    "--workdir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Workspace to compare A with, if there is no B; else the current directory.",
)
@click.option("--exit-code", is_flag=True, help=f"End with {DIFFERENCES} when there are differences.")
@output_option("table", "json", "markdown", "name")
@state_option
@partition_option
def diff(
    before: str,
    after: str | None,
    workdir: Path | None,
    exit_code: bool,
    form: str,
    state: Path | None,
    partition: str | None,
) -> None:
    """Compare incarnation A with incarnation B, field by field; without B, with the workspace's files.

    Incarnations are written 3, hello@3, latest, previous, or as a time; with B, also imported:hello@3.
    Production is not looked at: for that there is `lehr plan`.
    """
    from lehr.cli import compared

    if after is not None and workdir is not None:
        raise click.UsageError("Name either B or --workdir.")
    if after is not None and (before.startswith(IMPORTED) or after.startswith(IMPORTED)):
        comparison = _between_whole(state, partition, before, after)
    else:
        with open_reading(state, partition) as reading:
            if after is None:
                comparison = _with_working_tree(reading, before, workdir or Path())
            else:
                comparison = _between(reading, before, after)
    if form == "json":
        show_document("json", compared.document(comparison))
    elif form == "name":
        print_lines(asset.id for asset in comparison.assets)
    else:
        tell = compared.markdown if form == "markdown" else compared.text
        print_lines(tell(comparison))
    if exit_code and comparison.assets:
        raise click.exceptions.Exit(DIFFERENCES)


def _between(reading: Reading, before: str, after: str) -> Comparison:
    from lehr.query.compare import compare

    one, other = reading.incarnation(before), reading.incarnation(after)
    changes = reading.intent.changes(reading.partition, one.sequence, other.sequence)
    return compare(one.name, other.name, changes)


def _between_whole(state: Path | None, partition: str | None, before: str, after: str) -> Comparison:
    """The same where one was imported: nothing is known of what lies between, so all assets are read."""
    from lehr.query.compare import changes_between, compare

    with open_snapshot(state, partition, before) as one, open_snapshot(state, partition, after) as other:
        assets = {asset.id: asset for asset in other.assets()}
        return compare(one.name, other.name, tuple(changes_between(one.assets(), assets)))


def _with_working_tree(reading: Reading, before: str, directory: Path) -> Comparison:
    import asyncio

    from lehr.cli.validate import require_valid
    from lehr.cli.working_tree import look_at
    from lehr.query.compare import changes_between, compare

    one = reading.incarnation(before)
    tree = asyncio.run(look_at(directory, None, registry()))
    require_valid(tree)
    if tree.partition != reading.partition:
        raise LehrError(
            f"the workspace is of partition {tree.partition}, and the state of {reading.partition}",
            code="CLI111",
            fix="name the right folders with --workdir and --state",
        )
    stored = reading.intent.assets(reading.partition, one.sequence)
    return compare(one.name, "working tree", changes_between(stored, tree.assets))
