"""`lehr secret encrypt`, `lehr secret rotate`: make encrypted files, and encrypt them again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from lehr.base.errors import LehrError
from lehr.cli.errors import refused
from lehr.cli.output import Column, Shape, output_option, show
from lehr.cli.secret.places import Place, place_of, require_recipients, state_option

_MOST_BYTES = 1 << 20


@click.command(
    epilog="""
    \b
    Examples:
      lehr secret encrypt secrets/db.yaml.age#password       asks for the value
      lehr secret encrypt secrets/app.yaml.age#token         after `openssl rand -hex 32 |`
      lehr secret encrypt secrets/tls.key.age                with `< tls.key`: the file as a whole
    """
)
@click.argument("target", metavar="FILE.age[#KEY]")
@click.option("--replace", is_flag=True, help="Put another content in the place of a whole file.")
@state_option
def encrypt(target: str, replace: bool, state: Path | None) -> None:
    """Keep the secret that stands on standard input, or that is asked for, in FILE.age.

    With #KEY (`#db.password`) it becomes one value in the file, beside the others; for that, a file that is
    there must be one that can be decrypted here. A line break at its end is left out then. Prints the
    reference to write into intent.
    """
    from lehr.model.secret import Secret
    from lehr.secrets.encrypted_files import with_value

    name, mark, key = target.partition("#")
    place = place_of(Path(name), state)
    keeping = place.keeping()
    path = keeping.path(Path(name))
    try:
        reference = Secret(f"age:{path}{mark}{key}")
    except ValueError as error:
        raise LehrError(f"{target} cannot be referred to", code="CLI134", why=str(error)) from error
    exists = keeping.exists(path)
    if exists and not key and not replace:
        raise LehrError(
            f"{path} is there already",
            code="CLI135",
            fix=f"name one value in it (`{path}#KEY`), edit it, or write over it with --replace",
        )
    require_recipients(place)  # before anybody types a secret
    before = keeping.read(path) if exists and key else b""
    value = _value(text=bool(key))
    content = with_value(before, path, reference.key, value.decode()) if key else value
    keeping.write(path, content)
    _warn(place, path)
    click.echo(f"{path} has it: commit that, and refer to it in intent as", err=True)
    print(f'{{secret: "{reference.secret}"}}')


@click.command(
    epilog="""
    \b
    Examples:
      lehr secret rotate                       every file of age in the workspace
      lehr secret rotate secrets/db.yaml.age
      lehr secret rotate --dry-run -o name

    To take a key away: delete its line in secrets/recipients.txt, rotate, commit, and then change the
    secrets themselves: whoever had the key can still decrypt what git keeps of the old files.
    """
)
@click.argument("files", metavar="[FILE.age]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--dry-run", is_flag=True, help="See whether all can be decrypted, and write nothing.")
@output_option()
@state_option
def rotate(files: Sequence[Path], dry_run: bool, form: str, state: Path | None) -> None:
    """Encrypt files anew for those who are in secrets/recipients.txt now; all of them, or none.

    New files are new content for every asset that refers to them: programs that get a secret from one are
    started anew, one replica at a time.
    """
    place = place_of(files[0] if files else Path(), state)
    keeping = place.keeping()
    paths = [keeping.path(file) for file in files] or keeping.files()
    require_recipients(place)
    contents: dict[str, bytes] = {}
    problems: list[LehrError] = []
    for path in dict.fromkeys(paths):
        try:
            contents[path] = keeping.read(path)
        except LehrError as error:
            problems.append(error)
    if problems:
        for problem in problems:
            refused(problem.what, problem.why, problem.fix, problem.code)
        click.echo("nothing was written", err=True)
        raise click.exceptions.Exit(1)
    if not dry_run:
        for path, content in contents.items():
            keeping.write(path, content)
    shape: Shape[str] = Shape([Column("file", str)], lambda path: {"file": path}, str)
    show(form, list(contents), shape, nothing="there are no files of age in the workspace")
    if contents:
        said = "would be encrypted anew" if dry_run else "encrypted anew: commit them"
        click.echo(f"{len(contents)} files, {said}", err=True)


def _value(*, text: bool) -> bytes:
    """The secret: from standard input, or from a person, unseen."""
    if sys.stdin.isatty():  # wherever the rest goes: typed text must not be seen
        typed: str = click.prompt("Secret", hide_input=True, confirmation_prompt=True, err=True)
        return typed.encode()
    content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise LehrError(f"a secret has at most {_MOST_BYTES:,} bytes", code="CLI136")
    if text:
        try:
            content = content.decode().removesuffix("\n").removesuffix("\r").encode()
        except UnicodeDecodeError:
            raise LehrError(
                "one value in a file is text, in UTF-8", code="CLI137", fix="leave out #KEY for bytes"
            ) from None
    if not content:
        raise LehrError("there is no secret on standard input", code="CLI138")
    return content


def _warn(place: Place, path: str) -> None:
    """Report other problems."""
    keeping = place.keeping()
    if keeping.readable_here(keeping.recipients()) is False:
        click.echo(
            "note: this machine has no key that decrypts it; `lehr secret keygen --add` makes one", err=True
        )
    plain = path.removesuffix(".age")
    if (place.workspace / plain).exists():
        click.echo(
            f"note: {plain} lies beside it in plain text: delete it, and what git keeps of it", err=True
        )
