"""Giving commands to the running program: `lehr sync`, `lehr retry`, and code that the others share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli.stored import complete_asset, state_folder, state_option

if TYPE_CHECKING:
    from lehr.control.messages import Answer, AnyRequest

_SYNC_SECONDS = 330.0  # a generation may take as long before it is given up


def command(state: Path | None, request: AnyRequest, *, timeout: float = 30.0) -> Answer:
    """Give a command to the running `lehr run`, and return its answer, which is never an error.

    Raises:
        LehrError: none is running, or the command was refused.
    """
    from lehr.control.client import send

    answer = send(state_folder(state), request, timeout=timeout)
    if not answer.ok:
        raise LehrError(answer.message, code=answer.code, why=answer.why, fix=answer.fix)
    return answer


@click.command(
    epilog="""
    \b
    Examples:
      lehr sync                          after a push to the repository that is read
      lehr sync && lehr wait --timeout 2m
    """
)
@state_option
def sync(state: Path | None) -> None:
    """Look at the source now, instead of at the next poll, and say what came of it.

    Ends with 1 when the newest revision is refused or cannot be read.
    """
    import msgspec

    from lehr.base.clock import SystemClock
    from lehr.cli.told_all import refused
    from lehr.control.messages import Refresh
    from lehr.model.attempt import Attempt, Publication

    answer = command(state, Refresh(), timeout=_SYNC_SECONDS)
    attempt = msgspec.convert(answer.content, Attempt)
    if attempt.publication in (Publication.REFUSED, Publication.UNREADABLE):
        for line in refused(attempt, SystemClock().now()):
            click.echo(line, err=True)
        raise click.exceptions.Exit(1)
    changed = f", {len(attempt.changed)} changed" if attempt.changed else ""
    print(f"{attempt.publication}: {attempt.partition}@{attempt.sequence} is in force{changed}")


@click.command(
    epilog="""
    \b
    Examples:
      lehr retry web/process    its stalled push, once the cause is mended
      lehr retry all
    """
)
@click.argument("selector", shell_complete=complete_asset)
@state_option
def retry(selector: str, state: Path | None) -> None:
    """Forget what went wrong before with the assets of SELECTOR, and try now."""
    from lehr.control.messages import Retry

    print(command(state, Retry(selector=selector)).message)
