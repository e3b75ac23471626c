"""`lehr set`: one value in a file of intent, as a commit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from lehr.cli.editing import editing_options, scratch_folder, show_commit, show_refusal, target_of, validation

if TYPE_CHECKING:
    from lehr.editing import Change


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
@editing_options
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
    from lehr.editing import EditError, edit

    target = target_of(file, location, kind)
    if not message and not dry_run and target.kind != "directory":
        raise click.UsageError("Say why, with -m MESSAGE.")
    change = _change(target.file, path, value, adds, deletes, is_text, expect, retype)
    with scratch_folder(state) as folder:
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
            show_refusal(refused.diagnostics)
            raise click.exceptions.Exit(1) from None
    show_commit(made, form, dry_run)


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
    from lehr.editing import Add, Delete, Replace

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
    """The value of `text` in YAML."""
    from lehr.base.documents import load

    if is_text:
        return text
    loaded = load("value.yaml", text.encode(errors="replace"))
    if loaded.diagnostics:
        why = loaded.diagnostics[0].what
        raise click.UsageError(f"{text!r} is no value: {why}. Quote it as in YAML, or use --text.")
    return loaded.documents[0].value if loaded.documents else None
