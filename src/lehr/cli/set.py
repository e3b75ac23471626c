"""`lehr set`: one value in a file of intent, as a commit."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from lehr.cli import terminal
from lehr.cli.output import output_option, show_document
from lehr.cli.stored import registry
from lehr.cli.validate import beside
from lehr.wiring import STATE_FOLDER

if TYPE_CHECKING:
    from lehr.base.diagnostics import Diagnostic
    from lehr.sdk.source import Snapshot
    from lehr.sources import Change, Check, Commit

WORKSPACE_FILE = "lehr.yaml"


class _Target(msgspec.Struct, frozen=True):
    """Where the file is: the source, the directory in it that is the workspace, the file in that."""

    location: str
    path: str
    file: str
    workspace: Path | None
    kind: Literal["git", "directory"] | None


@click.command(
    "set",
    context_settings={"ignore_unknown_options": True},  # VALUE may be -1
    epilog="""
    \b
    Examples:
      lehr set assets/web.yaml payload.replicas 5 -m "More traffic on Fridays"
      lehr set assets.yaml '[id=web].payload.replicas' 5 --expect 3 -m "..."
      lehr set assets/web.yaml payload.env.DEBUG '"1"' --add -m "..."
      lehr set assets/web.yaml payload.ports.- 8081 --add --dry-run
      lehr set assets/web.yaml payload.env.DEBUG --delete -m "..."
      lehr set assets/web.yaml payload.replicas 5 --in ssh://git@example.org/intent.git -m "..."

    Ends with 1 when the edit is refused; nothing was written then.
    """,
)
@click.argument("file", metavar="FILE")
@click.argument("path", metavar="PATH")
@click.argument("value", metavar="[VALUE]", required=False)
@click.option("-m", "--message", help="Why; of the commit.")
@click.option("--add", "adds", is_flag=True, help="Add a new key, or an item where PATH ends with `-`.")
@click.option("--delete", "deletes", is_flag=True, help="Take the key or item away.")
@click.option("--text", "is_text", is_flag=True, help="VALUE is a text as it stands, not YAML.")
@click.option("--expect", metavar="OLD", help="Refuse unless the value is OLD now.")
@click.option("--retype", is_flag=True, help="Let the value change its kind: a text for a number, say.")
@click.option(
    "--in", "location", metavar="LOCATION", help="Repository or directory that FILE is relative to."
)
@click.option("--branch", help="Branch to commit to; else the one that is checked out.")
@click.option(
    "--kind", type=click.Choice(["git", "directory"]), help="What LOCATION is; `directory` edits in place."
)
@click.option(
    "--author", metavar="'NAME <EMAIL>'", help="Author of the commit; else git's configuration says."
)
@click.option(
    "--check/--no-check", default=True, show_default=True, help="Validate the outcome before it is written."
)
@click.option("--dry-run", is_flag=True, help="Show the diff, and write nothing.")
@click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="LEHR_STATE",
    help=f"State folder to validate against; else LEHR_STATE, else {STATE_FOLDER} beside the workspace.",
)
@output_option("text", "json")
def set_(
    file: str,
    path: str,
    value: str | None,
    message: str | None,
    adds: bool,
    deletes: bool,
    is_text: bool,
    expect: str | None,
    retype: bool,
    location: str | None,
    branch: str | None,
    kind: Literal["git", "directory"] | None,
    author: str | None,
    check: bool,
    dry_run: bool,
    state: Path | None,
    form: str,
) -> None:
    """Give the value at PATH in FILE another VALUE, as a commit on the branch.

    The diff is the lines of that value: comments and layout stay. The commit is made on the newest one,
    whoever else commits at the same time. FILE is YAML, JSON or TOML. PATH is written
    payload.replicas, [id=web].payload.replicas or /0/payload/replicas; VALUE as in YAML: 3, text, [a, b].
    """
    from lehr.base.clock import SystemClock
    from lehr.sources import EditError, edit

    target = _target(file, location, kind)
    if not message and not dry_run and target.kind != "directory":
        raise click.UsageError("Say why, with -m MESSAGE.")
    change = _change(target.file, path, value, adds, deletes, is_text, expect, retype)
    with _scratch(state) as folder:
        try:
            made = edit(
                target.location,
                [change],
                message or "An edit",
                state=folder,
                clock=SystemClock(),
                kind=target.kind,
                branch=branch,
                path=target.path,
                author=author,
                check=validation(target.workspace, state, folder) if check else None,
                rehearse=dry_run,
            )
        except EditError as refused:
            _show_refusal(refused.diagnostics)
            raise click.exceptions.Exit(1) from None
    _show(made, form, dry_run)


def _target(file: str, location: str | None, kind: Literal["git", "directory"] | None) -> _Target:
    """Where FILE is: relative to LOCATION, or a path on this machine."""
    if location is not None:
        folder = Path(location).expanduser()
        return _Target(location, "", file, folder if folder.is_dir() else None, kind)
    absolute = Path(file).expanduser().absolute()
    workspace = next((up for up in absolute.parents if (up / WORKSPACE_FILE).is_file()), absolute.parent)
    inside = absolute.relative_to(workspace).as_posix()
    top = next((up for up in (workspace, *workspace.parents) if (up / ".git").exists()), None)
    if top is None or kind == "directory":
        return _Target(str(workspace), "", inside, workspace, "directory")
    return _Target(str(top), workspace.relative_to(top).as_posix(), inside, workspace, "git")


def _change(
    file: str,
    path: str,
    value: str | None,
    adds: bool,
    deletes: bool,
    is_text: bool,
    expect: str | None,
    retype: bool,
) -> Change:
    from lehr.sources import Add, Delete, Replace

    if adds and deletes:
        raise click.UsageError("Choose one of --add and --delete.")
    if adds and expect is not None:
        raise click.UsageError("What is added has no value to --expect.")
    if deletes != (value is None):
        raise click.UsageError("Name a VALUE, or --delete." if value is None else "--delete takes no VALUE.")
    expected = msgspec.UNSET if expect is None else _value(expect, is_text)
    if value is None:
        return Delete(file=file, path=path, expect=expected)
    wanted = _value(value, is_text)
    if adds:
        return Add(file=file, path=path, value=wanted)
    return Replace(file=file, path=path, value=wanted, expect=expected, retype=retype)


def _value(text: str, is_text: bool) -> Any:
    """What `text` means in YAML."""
    from lehr.base.documents import load

    if is_text:
        return text
    loaded = load("value.yaml", text.encode(errors="replace"))
    if loaded.diagnostics:
        why = loaded.diagnostics[0].what
        raise click.UsageError(f"{text!r} is no value: {why}. Quote it as in YAML, or use --text.")
    return loaded.documents[0].value if loaded.documents else None


def validation(workspace: Path | None, state: Path | None, scratch: Path) -> Check:
    """Whether the files could be published, where they are a workspace.

    Args:
        scratch: folder for what is read of other sources that the workspace declares.
    """

    def check(snapshot: Snapshot) -> Sequence[Diagnostic]:
        import asyncio

        from lehr import wiring
        from lehr.cli.deployment import deployment_of
        from lehr.cli.working_tree import look_at_snapshot

        if WORKSPACE_FILE not in snapshot.files():
            return ()
        folder = workspace or Path()
        source = wiring.source(deployment_of(str(folder), scratch, kind="directory"))
        with beside(folder, state) as store:
            return asyncio.run(look_at_snapshot(source.mounted(snapshot), store, registry())).diagnostics

    return check


@contextlib.contextmanager
def _scratch(state: Path | None) -> Iterator[Path]:
    """Where to keep what is fetched: beside the state, so that the next edit fetches less."""
    if state is not None:
        yield state
        return
    with tempfile.TemporaryDirectory(prefix="lehr-") as folder:
        yield Path(folder)


def _show_refusal(diagnostics: Sequence[Diagnostic]) -> None:
    import sys

    from lehr.cli.diagnostics import render

    click.echo(render(diagnostics, colour=terminal.coloured(sys.stderr)), err=True)
    click.echo("nothing was written", err=True)


def _show(made: Commit, form: str, dry_run: bool) -> None:
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
