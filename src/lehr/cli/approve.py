"""`lehr approve`: a person's consent to exactly one diff."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli import terminal
from lehr.cli.commanding import command
from lehr.cli.stored import complete_asset, open_reading, partition_option, state_option
from lehr.model.reason import Reason

if TYPE_CHECKING:
    from lehr.model.diff import Diff

_WAITING = (Reason.APPROVAL_NEEDED, Reason.APPROVAL_MISSING)


@click.command(
    epilog="""
    \b
    Examples:
      lehr approve db/schema --reason "the column is not read any more"
      lehr approve db/schema --diff 5f2c91d0aa41 --reason "ticket 81" --yes
    """
)
@click.argument("asset", shell_complete=complete_asset)
@click.option("--diff", "digest", help="The diff that you have seen; refused if it is another by now.")
@click.option("--reason", required=True, help="Why, for whoever asks later.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@state_option
@partition_option
def approve(
    asset: str, digest: str | None, reason: str, yes: bool, state: Path | None, partition: str | None
) -> None:
    """Let the present diff of ASSET be carried out although it destroys. Of any other diff it says nothing.

    On a terminal it shows the diff and asks; elsewhere it needs --yes.
    """
    from lehr.cli.told import change_line
    from lehr.control.messages import Approve
    from lehr.query.asset_rows import known_asset

    with open_reading(state, partition) as reading:
        id = known_asset(reading, asset)[0].id
        decisions = reading.records.decisions(reading.partition, id, 1)
    decision = decisions[0][1] if decisions else None
    if decision is None or decision.diff is None or decision.condition.reason not in _WAITING:
        raise LehrError(
            f"{asset} does not wait for an approval", code="CLI105", fix=f"see `lehr why {asset}`"
        )
    seen = _seen(asset, decision.diff, digest)
    click.echo(f"{asset} would be changed so that it cannot be brought back (diff {seen[:12]}):", err=True)
    for change in decision.diff.changes:
        click.echo(f"  {terminal.printable(change_line(change))}", err=True)
    if not yes:
        if not terminal.interactive():
            raise click.UsageError("There is nobody to ask here: say --yes.")
        click.confirm("Approve exactly this?", abort=True, err=True)
    print(command(state, Approve(selector=f"id={asset}", reason=reason, diff_digest=seen)).message)


def _seen(asset: str, diff: Diff, wanted: str | None) -> str:
    digest = diff.digest()
    if wanted is not None and not (wanted and digest.startswith(wanted)):
        raise LehrError(
            f"the diff of {asset} is not {wanted}",
            code="CLI106",
            why=f"it is {digest[:12]} now",
            fix=f"look at it again with `lehr why {asset}`",
        )
    return digest
