"""`lehr secret edit`: an encrypted file in an editor, in memory."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import click

from lehr.base.errors import LehrError, raised_as
from lehr.cli import terminal
from lehr.cli.command import command
from lehr.cli.errors import refused
from lehr.cli.secret.places import place_of, published, require_recipients, state_option

_EDITORS = ("VISUAL", "EDITOR")


@command()
@click.argument("file", metavar="FILE.age", type=click.Path(path_type=Path))
@state_option
def edit(file: Path, state: Path | None) -> None:
    """Decrypt FILE.age into memory, open it in VISUAL or EDITOR, and encrypt it for the recipients.

    Creates a missing file. Writes nothing if nothing was changed or the editor fails.

    Examples:
        lehr secret edit secrets/db.yaml.age
        EDITOR="code --wait" lehr secret edit secrets/db.yaml.age

    The editor may store parts of it elsewhere (backups, history, registers). Check its settings.
    """
    from lehr.secrets.memory import memory_folder

    place = place_of(file, state)
    encrypted = place.encrypted_files()
    path = encrypted.path(file)
    require_recipients(place)
    before = encrypted.read(path) if encrypted.exists(path) else b""
    with memory_folder(os.environ) as folder:
        plain = folder / Path(path).name.removesuffix(".age")
        if published(plain):
            raise LehrError(
                f"the memory folder {folder} is in a git repository that does not ignore it",
                code="CLI139",
                why="plain text must not be committed",
                fix="set XDG_RUNTIME_DIR to a folder outside of it",
            )
        after = _edited(plain, before, path)
    if after == before:
        click.echo("no change; nothing was written", err=True)
        return
    encrypted.write(path, after)
    click.echo(f"{path} written: commit it", err=True)


def _edited(plain: Path, before: bytes, path: str) -> bytes:
    """The edit of `before` by the user, repeated until it can be parsed."""
    with open(plain, "xb", opener=_private) as file:
        file.write(before)
    while True:
        _run_editor(plain)
        with raised_as(LehrError, "the editor did not write the file", code="CLI140"):
            after = plain.read_bytes()
        problem = _problem(after, path)
        if problem is None:
            return after
        refused(problem.what, problem.why, code=problem.code)
        if not terminal.interactive() or not click.confirm("Edit it again?", default=True, err=True):
            raise LehrError("nothing was written", code="CLI141")


def _problem(content: bytes, path: str) -> LehrError | None:
    """Why references into the file could not be resolved; None for files that are not documents."""
    from lehr.base.documents import SUFFIXES
    from lehr.secrets.decrypted_value import document_in

    if not path.removesuffix(".age").endswith(tuple(SUFFIXES)):
        return None
    try:
        document_in(content, path)
    except LehrError as error:
        return error
    return None


def _run_editor(plain: Path) -> None:
    command = next((found for name in _EDITORS if (found := os.environ.get(name))), "vi")
    try:
        done = subprocess.run([*shlex.split(command), str(plain)], check=False)
    except (OSError, ValueError) as error:
        raise LehrError(
            f"the editor {command} cannot be started", code="CLI142", fix="set VISUAL or EDITOR"
        ) from error
    if done.returncode:
        raise LehrError(
            f"the editor {command} exited with code {done.returncode}; nothing was written", code="CLI143"
        )


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
