"""`lehr set`: one value in a file of intent, as a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from lehr.cli.command import command
from lehr.cli.complete import complete_file
from lehr.cli.intent_edit import Editing, committing, editing_options, show_commit, target_of

if TYPE_CHECKING:
    from lehr.editing import Change


@command("set", context_settings={"ignore_unknown_options": True})
@click.argument("file", metavar="FILE", shell_complete=complete_file)
@click.argument("path", metavar="PATH")
@click.argument("value", metavar="[VALUE]", required=False)
@click.option("-m", "--message", help="Commit message.")
@click.option("--add", "adds", is_flag=True, help="Add a new key, or an item if PATH ends with `-`.")
@click.option("--delete", "deletes", is_flag=True, help="Delete the key or item.")
@click.option("--text", "is_text", is_flag=True, help="Use VALUE literally as text, not as YAML.")
@click.option("--expect", metavar="OLD", help="Refuse the edit unless the current value is OLD.")
@click.option(
    "--retype", is_flag=True, help="Allow a value of another kind, such as text instead of a number."
)
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
    options: Editing,
) -> None:
    """Set the value at PATH in FILE to VALUE, and commit the change to the branch.

    Only the lines of that value change: comments and layout stay. The commit is based on the newest one,
    even if others commit at the same time. FILE is YAML, JSON or TOML. Write PATH as payload.replicas,
    [id=web].payload.replicas or /0/payload/replicas, and VALUE as in YAML: 3, text, [a, b].

    Examples:
        lehr set assets/web.yaml payload.replicas 5 -m "More traffic on Fridays"
        lehr set assets.yaml '[id=web].payload.replicas' 5 --expect 3 -m "..."
        lehr set assets/web.yaml payload.env.DEBUG '"1"' --add -m "..."
        lehr set assets/web.yaml payload.ports.- 8081 --add --dry-run
        lehr set assets/web.yaml payload.env.DEBUG --delete -m "..."
        lehr set assets/web.yaml payload.replicas 5 --in ssh://git@example.org/intent.git -m "..."

    Exits with 1 if the edit is refused; then nothing was written.
    """
    from lehr.editing import Add, Delete, Replace

    target = target_of(file, options, message)
    if adds and deletes:
        raise click.UsageError("--add and --delete cannot be combined.")
    if adds and expect is not None:
        raise click.UsageError("--add and --expect cannot be combined: a new value has no old one.")
    if deletes != (value is None):
        raise click.UsageError(
            "VALUE is required unless --delete is given." if value is None else "--delete takes no VALUE."
        )
    expected = msgspec.UNSET if expect is None else _value(expect, is_text)
    wanted = None if value is None else _value(value, is_text)
    change: Change = Replace(file=target.file, path=path, value=wanted, expect=expected, retype=retype)
    if deletes:
        change = Delete(file=target.file, path=path, expect=expected)
    elif adds:
        change = Add(file=target.file, path=path, value=wanted)
    with committing(target, options, message or "Edit", options.state) as commit:
        made = commit(change)
    show_commit(made, options)


def _value(text: str, is_text: bool) -> Any:
    """The value that `text` has in YAML."""
    from lehr.base.documents import load

    if is_text:
        return text
    loaded = load("value.yaml", text.encode(errors="replace"))
    if loaded.diagnostics:
        why = loaded.diagnostics[0].what
        raise click.UsageError(f"{text!r} is not a valid YAML value: {why}. Quote it, or use --text.")
    return loaded.documents[0].value if loaded.documents else None
