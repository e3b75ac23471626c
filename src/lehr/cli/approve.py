"""`lehr approve`: an operator's approval of exactly one diff."""

from __future__ import annotations

import click

from lehr.base.errors import LehrError
from lehr.cli import terminal
from lehr.cli.command import command
from lehr.cli.complete import complete_awaiting_approval
from lehr.cli.run_requests import send_request
from lehr.cli.stored import open_reading, partition_option, state_option
from lehr.model.diff import Diff
from lehr.model.reason import Reason

WAITING = (Reason.APPROVAL_NEEDED, Reason.APPROVAL_MISSING)
"""Reasons of an asset that waits for an approval."""


@command()
@click.argument("asset", shell_complete=complete_awaiting_approval)
@click.option(
    "--diff", "digest", help="Digest of the diff that you reviewed. Refused if the diff has changed since."
)
@click.option("--reason", required=True, help="Reason, recorded in the audit trail.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@state_option
@partition_option
def approve(asset: str, digest: str | None, reason: str, yes: bool) -> None:
    """Approve the current diff of ASSET, which is destructive. Any other diff needs its own approval.

    On a terminal, prints the diff and asks for confirmation; otherwise requires --yes.

    Examples:
        lehr approve db/schema --reason "the column is not read any more"
        lehr approve db/schema --diff 5f2c91d0aa41 --reason "ticket 81" --yes
    """
    from lehr.cli.explanation_text import change_line
    from lehr.control.messages import Approve
    from lehr.query.asset_rows import known_asset

    with open_reading() as reading:
        id = known_asset(reading, asset)[0].id
        decisions = reading.records.decisions(reading.partition, id, 1)
    decision = decisions[0][1] if decisions else None
    if decision is None or decision.diff is None or decision.condition.reason not in WAITING:
        raise LehrError(
            f"{asset} is not waiting for an approval", code="CLI105", fix=f"see `lehr why {asset}`"
        )
    seen = _seen(asset, decision.diff, digest)
    click.echo(f"This change to {asset} cannot be undone (diff {seen[:12]}):", err=True)
    for change in decision.diff.changes:
        click.echo(f"  {terminal.printable(change_line(change))}", err=True)
    if not yes:
        if not terminal.interactive():
            raise click.UsageError("stdin is not a terminal; pass --yes to confirm.")
        click.confirm("Approve this diff?", abort=True, err=True)
    print(send_request(Approve(selector=f"id={asset}", reason=reason, diff_digest=seen)).message)


def _seen(asset: str, diff: Diff, wanted: str | None) -> str:
    digest = diff.digest()
    if wanted is not None and not (wanted and digest.startswith(wanted)):
        raise LehrError(
            f"the diff of {asset} is no longer {wanted}",
            code="CLI106",
            why=f"it is now {digest[:12]}",
            fix=f"review it again with `lehr why {asset}`",
        )
    return digest
