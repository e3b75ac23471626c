"""The workspace and the state folder that commands about secrets work with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from lehr.base.errors import LehrError
from lehr.cli.stored import STATE_VARIABLE, workspace_state

if TYPE_CHECKING:
    from lehr.secrets.encrypted_files import Keeping
    from lehr.secrets.recipients import RecipientsError

WORKSPACE_FILE = "lehr.yaml"

state_option = click.option(
    "--state",
    type=click.Path(path_type=Path, file_okay=False),
    envvar=STATE_VARIABLE,
    help=f"State folder, with the private key; else {STATE_VARIABLE}, else that of the workspace.",
)


class Place(NamedTuple):
    """A workspace and its state folder."""

    workspace: Path
    state: Path

    def keeping(self) -> Keeping:
        """Its encrypted files."""
        from lehr.secrets.encrypted_files import Keeping

        return Keeping(self.workspace, self.state, os.environ)


def place_of(file: Path, state: Path | None) -> Place:
    """The workspace that `file`, or a folder, is in.

    Raises:
        LehrError: it is in none.
    """
    absolute = Path(os.path.abspath(file))
    workspace = next((up for up in (absolute, *absolute.parents) if (up / WORKSPACE_FILE).is_file()), None)
    if workspace is None:
        raise LehrError(
            f"there is no {WORKSPACE_FILE} beside {file}, nor in a folder above",
            code="CLI147",
            why="secrets are kept in a workspace",
            fix="go to the workspace; `lehr init` makes one",
        )
    return Place(workspace, workspace_state(workspace, state))


def require_recipients(place: Place) -> None:
    """Check that there is a recipient, before anything else is asked or done.

    Every line of the file that is not a public key is shown, and the command ends.

    Raises:
        LehrError: there is no recipient.
    """
    from lehr.secrets.recipients import RecipientsError

    try:
        place.keeping().recipients()
    except RecipientsError as error:
        show_problems(error)


def show_problems(error: RecipientsError) -> NoReturn:
    """Show every line of the recipients' file that is not a public key, and end the command."""
    import sys

    from lehr.cli.diagnostics import render
    from lehr.cli.terminal import coloured

    click.echo(render(error.diagnostics, colour=coloured(sys.stderr)), err=True)
    raise click.exceptions.Exit(1)


def published(path: Path) -> bool:
    """Whether a file at `path` may end up in a git repository."""
    import pygit2

    absolute = path.absolute()
    above = next(up for up in absolute.parents if up.is_dir())
    try:
        found = pygit2.discover_repository(str(above))
        repository = None if found is None else pygit2.Repository(found)
    except pygit2.GitError:
        return False
    if repository is None or repository.workdir is None:
        return False
    inside = (above.resolve() / absolute.relative_to(above)).relative_to(Path(repository.workdir).resolve())
    return not repository.path_is_ignored(inside.as_posix())
