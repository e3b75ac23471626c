"""Common parts of commands that edit intent: the place, the check before it, and the output after it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import click
import msgspec

from lehr.cli import terminal
from lehr.cli.output import output_option, show_document
from lehr.cli.stored import registry, workspace_state
from lehr.cli.validate import beside
from lehr.model.declared_sources import WORKSPACE_FILE

if TYPE_CHECKING:
    from lehr.base.diagnostics import Diagnostic
    from lehr.editing import Check, Commit
    from lehr.sdk.source import Snapshot


Command = TypeVar("Command", bound=Callable[..., object])


def editing_options(command: Command) -> Command:
    """Where a command edits, whether it checks before, and what it shows: the same for all that edit."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


_OPTIONS = (
    click.option(
        "--in", "location", metavar="LOCATION", help="Repository or directory that FILE is relative to."
    ),
    click.option("--branch", help="Branch to commit to; else the one that is checked out."),
    click.option(
        "--kind",
        type=click.Choice(["git", "directory"]),
        help="What LOCATION is; `directory` edits in place.",
    ),
    click.option(
        "--author", metavar="'NAME <EMAIL>'", help="Author of the commit; else git's configuration says."
    ),
    click.option(
        "--check/--no-check",
        default=True,
        show_default=True,
        help="Validate the outcome before it is written.",
    ),
    click.option("--dry-run", is_flag=True, help="Show the diff, and write nothing."),
    click.option(
        "--state",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="LEHR_STATE",
        help="State folder to validate against; else LEHR_STATE, else that of the workspace.",
    ),
    output_option("text", "json"),
)


class Target(msgspec.Struct, frozen=True):
    """Where the file is: the source, the directory in it that is the workspace, the file in that."""

    location: str
    path: str
    file: str
    workspace: Path | None
    kind: Literal["git", "directory"] | None


def target_of(file: str, location: str | None, kind: Literal["git", "directory"] | None) -> Target:
    """Where FILE is: relative to LOCATION, or a path on this machine."""
    if location is not None:
        folder = Path(location).expanduser()
        return Target(location, "", file, folder if folder.is_dir() else None, kind)
    absolute = Path(file).expanduser().absolute()
    workspace = next((up for up in absolute.parents if (up / WORKSPACE_FILE).is_file()), absolute.parent)
    inside = absolute.relative_to(workspace).as_posix()
    top = next((up for up in (workspace, *workspace.parents) if (up / ".git").exists()), None)
    if top is None or kind == "directory":
        return Target(str(workspace), "", inside, workspace, "directory")
    return Target(str(top), workspace.relative_to(top).as_posix(), inside, workspace, "git")


def validation(workspace: Path | None, state: Path | None, scratch: Path) -> Check:
    """Whether the files could be published, where they are a workspace.

    Args:
        scratch: folder for files read from other sources that the workspace declares.
    """

    def check(snapshot: Snapshot) -> Sequence[Diagnostic]:
        import asyncio

        from lehr import wiring
        from lehr.cli.deployment import deployment_of
        from lehr.cli.working_tree import look_at_snapshot
        from lehr.control.state_folder import default_state
        from lehr.publish.problem_positions import with_excerpts
        from lehr.sdk.source import SourcesError

        if WORKSPACE_FILE not in snapshot.files():
            return ()
        folder = workspace or Path()
        # A `lehr run` may use the mirrors of the state folder itself.
        lender = None if state is not None else default_state(folder)
        (scratch / "editing").mkdir(mode=0o700, parents=True, exist_ok=True)
        (scratch / "editing").chmod(0o700)  # it may be there already, in a folder of its owner
        own = deployment_of(str(folder), scratch / "editing", kind="directory", lender=lender)
        try:
            whole = wiring.source(own).mounted(snapshot)
        except SourcesError as error:
            return with_excerpts(error.diagnostics, error.declaring)
        with beside(folder, state) as store:
            return asyncio.run(look_at_snapshot(whole, store, registry())).diagnostics

    return check


@contextlib.contextmanager
def scratch_folder(state: Path | None) -> Iterator[Path]:
    """Where to keep fetched files: next to the state, so that the next edit fetches less."""
    if state is not None:
        yield workspace_state(Path(), state)
        return
    with tempfile.TemporaryDirectory(prefix="lehr-") as folder:
        yield Path(folder)


def show_refusal(diagnostics: Sequence[Diagnostic]) -> None:
    """Report on stderr why nothing was written."""
    import sys

    from lehr.cli.diagnostics import render

    click.echo(render(diagnostics, colour=terminal.coloured(sys.stderr)), err=True)
    click.echo("nothing was written", err=True)


def show_commit(made: Commit, form: str, dry_run: bool) -> None:
    """Show the diff on stdout, and on stderr where it was written."""
    if form == "json":
        document = {
            "commit": made.id or None,
            "parent": made.parent or None,
            "place": made.place,
            "changed": bool(made.files),
            "diff": made.patch,
        }
        show_document("json", document)
        return
    for line in made.patch.removesuffix("\n").split("\n") if made.files else ():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        print(terminal.style(terminal.printable(line), colour))
    if not made.files:
        click.echo("nothing to change: the value is as wanted already", err=True)
    elif dry_run:
        click.echo(f"{made.place} would change so; nothing was written", err=True)
    else:
        said = f"commit {made.id[:12]} on {made.place}" if made.id else f"{made.place} has changed"
        click.echo(terminal.printable(said), err=True)
