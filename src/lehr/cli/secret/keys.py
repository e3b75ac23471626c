"""`lehr secret keygen`, `lehr secret show-recipients`: who can decrypt."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lehr.base.errors import LehrError, StalledError
from lehr.cli.command import command
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.secret.places import SecretPlace, place_of, published, state_option
from lehr.secrets import IDENTITY_NAME, age
from lehr.secrets.recipients import RECIPIENTS, Recipient, RecipientsError, add_recipient, read_recipients

_FILE = click.Path(path_type=Path, dir_okay=False)


@command()
@click.option(
    "--output", type=_FILE, help="File for the private key. Defaults to age-identity.txt in the state folder."
)
@click.option("--add", is_flag=True, help="Add the public key to secrets/recipients.txt.")
@click.option("--name", default="", help="Name of the owner, written as a comment next to the public key.")
@state_option
def keygen(output: Path | None, add: bool, name: str, state: Path | None) -> None:
    """Generate a key pair: writes the private key to a file of mode 0600, prints the public key.

    Existing files stay encrypted for the old recipients: run `lehr secret rotate` on a machine that can
    decrypt them, and commit.

    Examples:
        lehr secret keygen --add --name "build server"
        lehr secret keygen --output ~/.config/lehr/ada.txt     a personal key
    """
    place = place_of(Path(), state) if add or (output is None and state is None) else None
    folder = place.state if place is not None else state
    target = output if output is not None or folder is None else folder / IDENTITY_NAME
    assert target is not None
    if add and place is not None:
        _read(place.workspace)  # before generating a key that could not be added
    if published(target):
        raise LehrError(
            f"{target} is in a git repository that does not ignore it",
            code="CLI144",
            why="a committed private key is no longer private",
            fix="name a file outside of the repository with --output, or add this one to .gitignore",
        )
    made = age.generate()
    _write_new(target, f"# public key: {made.recipient}\n{made.line}\n")
    click.echo(f"private key written to {target}: keep a copy where only you can read it", err=True)
    print(made.recipient)
    if add and place is not None:
        add_recipient(place.workspace, Recipient(made.recipient, name))
        click.echo(f"public key added to {RECIPIENTS}: commit it", err=True)


@command("show-recipients")
@output_option()
@state_option
def show_recipients(form: str, state: Path | None) -> None:
    """List the recipients of new encryptions: the public keys in secrets/recipients.txt.

    Files encrypted before a key was added or removed do not change until `lehr secret rotate`.

    Examples:
        lehr secret show-recipients
        lehr secret show-recipients -o name > recipients.txt
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
    nothing = "no recipients: `lehr secret keygen --add` generates a key pair for this machine"
    show(form, _read(place.workspace), shape, nothing=nothing)


def _read(workspace: Path) -> list[Recipient]:
    from lehr.cli.diagnostics import refuse

    try:
        return read_recipients(workspace)
    except RecipientsError as error:
        refuse(error.diagnostics)


def _keys_here(place: SecretPlace) -> set[str]:
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
            f"{path} already exists",
            code="CLI145",
            why="files encrypted for it would be lost without its private key",
            fix="use that key, move it away, or choose another file with --output",
        ) from error
    except OSError as error:
        raise LehrError(f"{path} cannot be written", code="CLI146", why=error.strerror or "") from error
    with open(descriptor, "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
