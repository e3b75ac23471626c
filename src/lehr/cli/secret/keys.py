"""`lehr secret keygen`, `lehr secret show-recipients`: who can decrypt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lehr.base.errors import LehrError
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.secret.places import Place, place_of, published, show_problems, state_option

if TYPE_CHECKING:
    from lehr.secrets.recipients import Recipient

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    epilog="""
    \b
    Examples:
      lehr secret keygen --add --name "build server"
      lehr secret keygen --output ~/.config/lehr/ada.txt     for a person
    """
)
@click.option(
    "--output", type=_FILE, help="File of the private key; else age-identity.txt in the state folder."
)
@click.option("--add", is_flag=True, help="Add the public key to secrets/recipients.txt.")
@click.option("--name", default="", help="Whose key it is; a comment beside the public key.")
@state_option
def keygen(output: Path | None, add: bool, name: str, state: Path | None) -> None:
    """Make a key pair: the private key goes to a file of mode 0600, the public one to standard output.

    Files that are there already are for the old recipients: run `lehr secret rotate` where they can be
    decrypted, and commit.
    """
    from lehr.secrets import IDENTITY_NAME, age
    from lehr.secrets.recipients import RECIPIENTS, Recipient, add_recipient

    place = place_of(Path(), state) if add or (output is None and state is None) else None
    folder = place.state if place is not None else state
    target = output if output is not None or folder is None else folder / IDENTITY_NAME
    assert target is not None
    if add and place is not None:
        _read(place.workspace)  # before a key is made that it cannot be added to
    if published(target):
        raise LehrError(
            f"{target} is in a git repository that does not ignore it",
            code="CLI144",
            why="a private key that is committed is one no more",
            fix="name a file outside of the repository with --output, or add this one to .gitignore",
        )
    made = age.generate()
    _write_new(target, f"# public key: {made.recipient}\n{made.line}\n")
    click.echo(f"the private key is in {target}: keep a copy where only you can read it", err=True)
    print(made.recipient)
    if add and place is not None:
        add_recipient(place.workspace, Recipient(made.recipient, name))
        click.echo(f"the public key is in {RECIPIENTS}: commit that", err=True)


@click.command(
    "show-recipients",
    epilog="""
    \b
    Examples:
      lehr secret show-recipients
      lehr secret show-recipients -o name > recipients.txt
    """,
)
@output_option()
@state_option
def show_recipients(form: str, state: Path | None) -> None:
    """List who can decrypt what is encrypted from now on: the public keys in secrets/recipients.txt.

    Files that were encrypted before a key came or went are as they were, until `lehr secret rotate`.
    """
    place = place_of(Path(), state)
    here = _keys_here(place)
    shape: Shape[Recipient] = Shape(
        [
            Column("name", lambda item: item.name or "-"),
            Column("here", lambda item: "yes" if item.key in here else "-"),
            Column("key", lambda item: item.key),
        ],
        lambda item: {"name": item.name, "key": item.key, "here": item.key in here},
        lambda item: item.key,
    )
    nothing = "there are none: `lehr secret keygen --add` makes a key pair for this machine"
    show(form, _read(place.workspace), shape, nothing=nothing)


def _read(workspace: Path) -> list[Recipient]:
    from lehr.secrets.recipients import RecipientsError, read_recipients

    try:
        return read_recipients(workspace)
    except RecipientsError as error:
        show_problems(error)


def _keys_here(place: Place) -> set[str]:
    from lehr.base.errors import StalledError
    from lehr.secrets import age
    from lehr.secrets.identities import identities

    try:
        keys = identities(os.environ, place.state)
    except StalledError:
        return set()
    return {key for key in map(age.recipient_of, keys) if key is not None}


def _write_new(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise LehrError(
            f"{path} is there already",
            code="CLI145",
            why="without its private key, what is encrypted for it is lost",
            fix="use that one, move it away, or choose another file with --output",
        ) from error
    except OSError as error:
        raise LehrError(f"{path} cannot be written", code="CLI146", why=error.strerror or "") from error
    with open(descriptor, "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
