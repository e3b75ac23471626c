"""`lehr diff`: differences between two states of intent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from lehr import wiring
from lehr.base.errors import LehrError
from lehr.cli import field_text, formatting, patch_text
from lehr.cli.command import command
from lehr.cli.complete import complete_incarnation
from lehr.cli.main import DIFFERENCES
from lehr.cli.output import print_lines, show_document
from lehr.cli.pager import page
from lehr.cli.snapshots import IMPORTED, open_snapshot
from lehr.cli.stored import found_state, open_reading, reading_options
from lehr.query.compare import (
    AssetComparison,
    ChangeKind,
    Comparison,
    Contents,
    changes_between,
    compare,
)
from lehr.query.partition_view import Reading


@command()
@click.argument("before", metavar="[A]", default="latest", shell_complete=complete_incarnation)
@click.argument("after", metavar="[B]", required=False, shell_complete=complete_incarnation)
@click.option(
    "--workdir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Workspace to compare A with if B is not given. Defaults to the current directory.",
)
@click.option("--exit-code", is_flag=True, help=f"Exit with {DIFFERENCES} if there are differences.")
@patch_text.full_diff_option
@reading_options("table", "json", "markdown", "name")
def diff(
    before: str, after: str | None, workdir: Path | None, exit_code: bool, full_diff: bool, form: str
) -> None:
    """Compare incarnation A with incarnation B, field by field; without B, with the files of the workspace.

    Write an incarnation as 3, hello@3, latest, previous, or a time; with B, also as imported:hello@3.
    To compare with production, use `lehr plan`.

    Examples:
        lehr diff previous latest             changes of the newest incarnation
        lehr diff 3 hello@7
        lehr diff imported:hello@3 latest
        lehr diff                             the newest incarnation against the files here
        lehr diff latest --workdir ../intent -o markdown > comment.md
        lehr diff previous latest --exit-code

    Exits with 0; with --exit-code, with 3 if there are differences.
    """
    if after is not None and workdir is not None:
        raise click.UsageError("B and --workdir cannot be combined.")
    if after is not None and (before.startswith(IMPORTED) or after.startswith(IMPORTED)):
        comparison = _between_whole(before, after)
    else:
        with open_reading() as reading:
            if after is None:
                comparison = _with_working_tree(reading, before, workdir or Path())
            else:
                comparison = _between(reading, before, after)
    if form == "json":
        show_document("json", document(comparison))
    elif form == "name":
        print_lines(asset.id for asset in comparison.assets)
    else:
        tell = markdown if form == "markdown" else text
        page(tell(comparison, full=full_diff))
    if exit_code and comparison.assets:
        raise click.exceptions.Exit(DIFFERENCES)


def _between(reading: Reading, before: str, after: str) -> Comparison:
    one, other = reading.incarnation(before), reading.incarnation(after)
    changes = reading.intent.changes(reading.partition, one.sequence, other.sequence)
    return compare(one.name, other.name, changes, _contents(Path()))


def _between_whole(before: str, after: str) -> Comparison:
    """The same if one was imported: the changes in between are not known, so all assets are read."""
    with open_snapshot(before) as one, open_snapshot(after) as other:
        assets = {asset.id: asset for asset in other.assets()}
        return compare(one.name, other.name, tuple(changes_between(one.assets(), assets)))


def _with_working_tree(reading: Reading, before: str, directory: Path) -> Comparison:
    import asyncio

    from lehr.cli.validate import require_valid
    from lehr.cli.working_tree import look_at

    one = reading.incarnation(before)
    tree = asyncio.run(look_at(directory, None))
    require_valid(tree)
    if tree.partition != reading.partition:
        raise LehrError(
            f"the workspace belongs to partition {tree.partition}, but the state to {reading.partition}",
            code="CLI111",
            fix="name matching folders with --workdir and --state",
        )
    stored = reading.intent.assets(reading.partition, one.sequence)
    return compare(one.name, "working tree", changes_between(stored, tree.assets), _contents(directory))


def _contents(directory: Path) -> Contents | None:
    """Reads files of the workspace in `directory`, if its state is on this machine."""
    state = found_state()
    return None if state is None else wiring.workspace_files(state, directory)


# --- A `Comparison` as text, Markdown and plain data --------------------------

_MOST_DETAILS = 100
_FENCE = re.compile("`{3,}")


def text(comparison: Comparison, *, full: bool = False) -> Iterator[str]:
    """As text for a terminal; of a long text, the first lines that differ, unless `full`."""
    for asset in comparison.assets:
        sign = field_text.sign(asset.kind)
        at = f", {asset.origin}" if asset.origin else ""
        yield f"{sign} {asset.id} ({asset.type}{at})"
        for change in asset.fields:
            yield from (f"    {line}" for line in field_text.lines(change, full=full))
    yield summary(comparison)


def summary(comparison: Comparison) -> str:
    """One line: how many assets were added, changed and removed."""
    counts = ", ".join(f"{comparison.count(kind):,} {kind}" for kind in ChangeKind if comparison.count(kind))
    return f"{comparison.before} to {comparison.after}: {counts or 'no differences'}"


def markdown(comparison: Comparison, *, full: bool = False) -> Iterator[str]:
    """For a comment on a pull request: a table, and the fields of each asset, folded."""
    yield f"### {_escaped(summary(comparison))}"
    if not comparison.assets:
        return
    yield ""
    yield "| | asset | type | fields |"
    yield "|---|---|---|---|"
    for asset in comparison.assets:
        fields = formatting.counted(len(asset.fields), "field") if asset.kind is ChangeKind.CHANGED else ""
        yield f"| {asset.kind} | `{asset.id}` | `{asset.type}` | {fields} |"
    for asset in comparison.assets[:_MOST_DETAILS]:
        yield from _details(asset, full)
    if len(comparison.assets) > _MOST_DETAILS:
        yield ""
        yield f"The fields of {len(comparison.assets) - _MOST_DETAILS} more assets are not shown."


def _details(asset: AssetComparison, full: bool) -> Iterator[str]:
    lines = [line for change in asset.fields for line in field_text.patch(change, full=full)]
    # A fence must be longer than any in its content.
    longest = max((len(found) for line in lines for found in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    yield ""
    yield f"<details><summary>{asset.kind} <code>{asset.id}</code></summary>"
    yield ""
    yield f"{fence}diff"
    yield from lines
    yield fence
    yield "</details>"


def document(comparison: Comparison) -> dict[str, Any]:
    """As plain data."""
    return {
        "before": comparison.before,
        "after": comparison.after,
        **{str(kind): comparison.count(kind) for kind in ChangeKind},
        "assets": msgspec.to_builtins(comparison.assets),
    }


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", text)
