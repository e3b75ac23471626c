"""Giving commands to the running program: `lehr sync`, `lehr retry`, and code that the others share."""

from __future__ import annotations

import click

from lehr.base.errors import LehrError
from lehr.cli.command import command
from lehr.cli.complete import complete_selector
from lehr.cli.stored import state_folder, state_option
from lehr.control.messages import AnyRequest, CommandResult, Refresh, Retry

_SYNC_SECONDS = 330.0  # the time limit of a generation


def send_request(request: AnyRequest, *, timeout: float = 30.0) -> CommandResult:
    """Send a command to the active `lehr run`, and return its answer, which is never an error.

    Raises:
        LehrError: none is active, or the command was refused.
    """
    from lehr.control.socket import send

    answer = send(state_folder(), request, timeout=timeout)
    if not answer.ok:
        raise LehrError(answer.message, code=answer.code, why=answer.why, fix=answer.fix)
    return answer


@command()
@state_option
def sync() -> None:
    """Check the source now instead of at the next poll, and print the result.

    Exits with 1 if the newest revision is refused or cannot be read.

    Examples:
        lehr sync                          after a push to the source repository
        lehr sync && lehr wait --timeout 2m
    """
    import msgspec

    from lehr.base.clock import SystemClock
    from lehr.cli.formatting import counted
    from lehr.cli.overview_text import refused
    from lehr.model.attempt import Attempt, Publication
    from lehr.query.wait_conditions import in_force

    answer = send_request(Refresh(), timeout=_SYNC_SECONDS)
    attempt = msgspec.convert(answer.content, Attempt)
    if attempt.publication in (Publication.REFUSED, Publication.UNREADABLE):
        for line in refused(attempt, SystemClock().now()):
            click.echo(line, err=True)
        raise click.exceptions.Exit(1)
    changed = f"; {counted(len(attempt.changed), 'asset')} changed" if attempt.changed else ""
    print(f"{attempt.publication}: {in_force(attempt)}{changed}")


@command()
@click.argument("selector", shell_complete=complete_selector)
@state_option
def retry(selector: str) -> None:
    """Retry the assets of SELECTOR now, and forget their previous failures.

    Examples:
        lehr retry web/process    after fixing the cause of a stalled push
        lehr retry all
    """
    print(send_request(Retry(selector=selector)).message)
