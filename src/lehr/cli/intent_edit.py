"""Common parts of commands that edit intent: the place, the check before it, and the output after it."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec
from msgspec.structs import replace

from lehr.cli import patch_text, terminal
from lehr.cli.output import output_option, show_document
from lehr.cli.stored import own_state_option, workspace_state
from lehr.cli.validate import beside
from lehr.model.declared_sources import WORKSPACE_FILE

if TYPE_CHECKING:
    from lehr.base.diagnostics import Diagnostic
    from lehr.editing import Change, Check, Commit
    from lehr.sdk.source import Snapshot


_OPTIONS = (
    click.option(
        "--in", "location", metavar="LOCATION", help="Repository or directory that FILE is relative to."
    ),
    click.option("--branch", help="Branch to commit to. Defaults to the one checked out."),
    click.option(
        "--kind",
        type=click.Choice(["git", "directory"]),
        help="Kind of LOCATION. `directory` edits in place.",
    ),
    click.option(
        "--author", metavar="'NAME <EMAIL>'", help="Author of the commit. Defaults to the git configuration."
    ),
    click.option(
        "--check/--no-check",
        default=True,
        show_default=True,
        help="Validate the result before writing it.",
    ),
    click.option("--dry-run", is_flag=True, help="Show the diff without writing anything."),
    own_state_option("State folder to validate against."),
    output_option("text", "json"),
)


class Editing(msgspec.Struct, frozen=True):
    """The options that all commands have that edit: where, as whom, whether to check before, what to show."""

    location: str | None
    branch: str | None
    kind: Literal["git", "directory"] | None
    author: str | None
    check: bool
    dry_run: bool
    state: Path | None
    form: str


def editing_options(command: Callable[..., None]) -> Callable[..., None]:
    """Passes these options to a command as `options`."""

    @functools.wraps(command)
    def edits(**given: Any) -> None:
        options = Editing(**{name: given.pop(name) for name in Editing.__struct_fields__})
        command(options=options, **given)

    for option in reversed(_OPTIONS):
        edits = option(edits)
    return edits


class Target(msgspec.Struct, frozen=True):
    """Location of the file: the source, the workspace directory in it, and the path in that."""

    location: str
    path: str
    file: str
    workspace: Path | None
    kind: Literal["git", "directory"] | None


def target_of(file: str, options: Editing, message: str | None) -> Target:
    """Where FILE is: relative to LOCATION, or a path on this machine.

    Raises:
        UsageError: an edit there needs a message.
    """
    target = _target_of(file, options.location, options.kind)
    if not message and not options.dry_run and target.kind != "directory":
        raise click.UsageError("A commit message is required: pass -m MESSAGE.")
    return target


def _target_of(file: str, location: str | None, kind: Literal["git", "directory"] | None) -> Target:
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


@contextlib.contextmanager
def committing(
    target: Target, options: Editing, message: str, keep: Path | None = None
) -> Iterator[Callable[[Change], Commit]]:
    """Makes commits of changes. If one is refused, reports why and ends the command.

    Args:
        keep: state folder in which fetched files are kept, if any: the next edit fetches less then.

    Raises:
        Exit: it was refused.
    """
    from lehr.base.clock import SystemClock
    from lehr.cli.diagnostics import show
    from lehr.editing import EditError, edit

    with _scratch_folder(keep) as folder:

        def commit(change: Change) -> Commit:
            return edit(
                target.location,
                [change],
                message,
                state=folder,
                clock=SystemClock(),
                kind=target.kind,
                branch=options.branch,
                path=target.path,
                author=options.author,
                check=_validation(target.workspace, options.state, folder) if options.check else None,
                rehearse=options.dry_run,
            )

        try:
            yield commit
        except EditError as refused:
            show(refused.diagnostics)
            click.echo("nothing was written", err=True)
            raise click.exceptions.Exit(1) from None


def _validation(workspace: Path | None, state: Path | None, scratch: Path) -> Check:
    """A check whether the files could be published, if they are a workspace.

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
        # A `lehr run` may be using the mirrors of the state folder.
        lender = None if state is not None else default_state(folder)
        (scratch / "editing").mkdir(mode=0o700, parents=True, exist_ok=True)
        (scratch / "editing").chmod(0o700)  # it may exist already, in a folder of its owner
        own = deployment_of(str(folder), scratch / "editing", "directory")
        try:
            whole = wiring.source(replace(own, lender=lender)).mounted(snapshot)
        except SourcesError as error:
            return with_excerpts(error.diagnostics, error.declaring)
        with beside(folder, state) as store:
            return asyncio.run(look_at_snapshot(whole, store)).diagnostics

    return check


@contextlib.contextmanager
def _scratch_folder(state: Path | None) -> Iterator[Path]:
    """Where to keep fetched files: next to the state, if it is named."""
    if state is not None:
        yield workspace_state(Path(), state)
        return
    with tempfile.TemporaryDirectory(prefix="lehr-") as folder:
        yield Path(folder)


def show_commit(made: Commit, options: Editing) -> None:
    """Show the diff on stdout, and on stderr where it was written."""
    if options.form == "json":
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
        print(patch_text.coloured(patch_text.readable(line)))
    if not made.files:
        click.echo("no change: the value is already set", err=True)
    elif options.dry_run:
        click.echo(f"dry run: {made.place} would change as shown; nothing was written", err=True)
    else:
        summary = f"commit {made.id[:12]} on {made.place}" if made.id else f"{made.place} changed"
        click.echo(terminal.printable(summary), err=True)
