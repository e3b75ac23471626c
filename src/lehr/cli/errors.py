"""Errors on the terminal: what, why, and how to fix it; a traceback only on request."""

from __future__ import annotations

import errno
import os
import sys
import traceback

import click
import msgspec

from lehr import __version__
from lehr.base.errors import DEFECT, LehrError
from lehr.cli.terminal import printable, style

TRACEBACK = "LEHR_TRACEBACK"

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def show_error(error: LehrError, form: str = "") -> None:
    """Show an expected error on stderr, as one JSON object if the output format is JSON."""
    from lehr.sdk.source import SourcesError

    if form == "json":
        shown = {"code": error.code, "what": error.what, "why": error.why, "fix": error.fix}
        click.echo(msgspec.json.encode(shown), err=True)
    elif isinstance(error, SourcesError):
        from lehr.cli.diagnostics import show
        from lehr.publish.problem_positions import with_excerpts

        show(with_excerpts(error.diagnostics, error.declaring))
    else:
        refused(error.what, error.why, error.fix, error.code)
    if os.environ.get(TRACEBACK) == "1":
        traceback.print_exception(error)


def refused(what: str, why: str = "", fix: str = "", code: str = "") -> None:
    """Report on stderr what went wrong, why, and how to fix it."""
    head = style(f"error[{code}]:" if code else "error:", "red", bold=True, stream=sys.stderr)
    click.echo(f"{head} {printable(what)}", err=True)
    if why:
        click.echo(f"  why: {printable(why)}", err=True)
    if fix:
        click.echo(f"  fix: {printable(fix)}", err=True)


def of_the_system(error: OSError) -> LehrError | None:
    """An error of the system that is not a bug in Lehr, as one of ours; None for any other."""
    if error.errno in _NO_SPACE:
        _drop_output()
        return LehrError(
            f"{_named(error, 'the output or a file')} cannot be written",
            code="CLI185",
            why=error.strerror or "",
            fix="free some space, or write it to another place",
        )
    if isinstance(error, PermissionError):
        return LehrError(
            f"{_named(error, 'a file')} cannot be accessed",
            code="CLI186",
            why=error.strerror or "",
            fix="run the command as the user of `lehr run`, or give this user access",
        )
    return None


def _named(error: OSError, otherwise: str) -> str:
    return otherwise if error.filename is None else os.fsdecode(error.filename)


def _drop_output() -> None:
    """Drop what stdout cannot write: Python flushes it at exit, and would complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_unexpected(error: Exception) -> None:
    """Show an unexpected error: a bug in Lehr."""
    place = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    at = f"{os.path.basename(place.filename)}:{place.lineno}" if place else "an unknown place"
    refused(
        f"internal error: {type(error).__name__}: {error}",
        f"this is a bug in Lehr {__version__}, at {at}",
        f"please report it with the output of `{TRACEBACK}=1 {_called()}`",
        DEFECT,
    )
    if os.environ.get(TRACEBACK) == "1":
        traceback.print_exception(error)


def _called() -> str:
    import shlex

    return shlex.join(["lehr", *sys.argv[1:]])
