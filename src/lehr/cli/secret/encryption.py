"""`lehr secret encrypt`, `lehr secret rotate`: create encrypted files and re-encrypt them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from lehr.base.errors import LehrError, raised_as
from lehr.cli.command import command
from lehr.cli.errors import refused
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.secret.places import SecretPlace, place_of, require_recipients, state_option

_MOST_BYTES = 1 << 20


@command()
@click.argument("target", metavar="FILE.age[#KEY]")
@click.option("--replace", is_flag=True, help="Replace an existing file.")
@state_option
def encrypt(target: str, replace: bool, state: Path | None) -> None:
    """Encrypt a secret from standard input, or from a prompt, into FILE.age.

    With #KEY (`#db.password`) it becomes one value in the file, next to the others; this machine must be able
    to decrypt a file that already exists, and a trailing newline is removed. Prints the reference to use
    in intent.

    Examples:
        lehr secret encrypt secrets/db.yaml.age#password             prompts for the value
        openssl rand -hex 32 | lehr secret encrypt secrets/app.yaml.age#token
        lehr secret encrypt secrets/tls.key.age                      with `< tls.key`: a whole file
    """
    from lehr.model.secret import Secret
    from lehr.secrets.encrypted_files import with_value

    name, mark, key = target.partition("#")
    place = place_of(Path(name), state)
    encrypted = place.encrypted_files()
    path = encrypted.path(Path(name))
    with raised_as(LehrError, f"{target} cannot be referred to", code="CLI134", on=ValueError):
        reference = Secret(f"age:{path}{mark}{key}")
    exists = encrypted.exists(path)
    if exists and not key and not replace:
        raise LehrError(
            f"{path} already exists",
            code="CLI135",
            fix=f"name one value in it (`{path}#KEY`), edit it, or overwrite it with --replace",
        )
    require_recipients(place)  # before a secret is typed
    before = encrypted.read(path) if exists and key else b""
    value = _value(text=bool(key))
    content = with_value(before, path, reference.key, value.decode()) if key else value
    encrypted.write(path, content)
    _warn(place, path)
    click.echo(f"{path} written: commit it, and refer to the secret in intent as", err=True)
    print(f'{{secret: "{reference.secret}"}}')


@command()
@click.argument("files", metavar="[FILE.age]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--dry-run", is_flag=True, help="Check that all files can be decrypted, without writing anything."
)
@output_option()
@state_option
def rotate(files: Sequence[Path], dry_run: bool, form: str, state: Path | None) -> None:
    """Re-encrypt files for the current recipients in secrets/recipients.txt: either all files or none.

    New files are new content for every asset that refers to them: programs that get a secret from one are
    restarted, one replica at a time.

    Examples:
        lehr secret rotate                       every age file in the workspace
        lehr secret rotate secrets/db.yaml.age
        lehr secret rotate --dry-run -o name

    To remove a key: delete its line in secrets/recipients.txt, rotate, commit, and then change the secrets
    themselves, because the old key can still decrypt the old files in the git history.
    """
    place = place_of(files[0] if files else Path(), state)
    encrypted = place.encrypted_files()
    paths = [encrypted.path(file) for file in files] or encrypted.files()
    require_recipients(place)
    contents: dict[str, bytes] = {}
    problems: list[LehrError] = []
    for path in dict.fromkeys(paths):
        try:
            contents[path] = encrypted.read(path)
        except LehrError as error:
            problems.append(error)
    if problems:
        for problem in problems:
            refused(problem.what, problem.why, problem.fix, problem.code)
        click.echo("nothing was written", err=True)
        raise click.exceptions.Exit(1)
    if not dry_run:
        for path, content in contents.items():
            encrypted.write(path, content)
    shape: Shape[str] = Shape([Column("file", str)], lambda path: {"file": path}, str)
    show(form, list(contents), shape, nothing="no age files in the workspace")
    if contents:
        outcome = "would be re-encrypted" if dry_run else "re-encrypted: commit them"
        click.echo(f"{len(contents)} files, {outcome}", err=True)


def _value(*, text: bool) -> bytes:
    """The secret, from standard input or from a prompt without echo."""
    if sys.stdin.isatty():  # wherever other output goes: typed text must not be visible
        typed: str = click.prompt("Secret", hide_input=True, confirmation_prompt=True, err=True)
        return typed.encode()
    content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise LehrError(f"the secret is longer than {_MOST_BYTES:,} bytes", code="CLI136")
    if text:
        try:
            content = content.decode().removesuffix("\n").removesuffix("\r").encode()
        except UnicodeDecodeError:
            raise LehrError(
                "a single value in a file must be UTF-8 text", code="CLI137", fix="omit #KEY to store bytes"
            ) from None
    if not content:
        raise LehrError("standard input contains no secret", code="CLI138")
    return content


def _warn(place: SecretPlace, path: str) -> None:
    """Report other problems."""
    encrypted = place.encrypted_files()
    if encrypted.readable_here(encrypted.recipients()) is False:
        click.echo(
            "note: this machine has no key to decrypt it; `lehr secret keygen --add` generates one", err=True
        )
    plain = path.removesuffix(".age")
    if (place.workspace / plain).exists():
        click.echo(
            f"note: {plain} contains it in plain text: delete that file, also from the git history", err=True
        )
