"""The workspace and the state folder that secret commands use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lehr.base.errors import LehrError
from lehr.cli.stored import own_state_option, workspace_state
from lehr.model.declared_sources import WORKSPACE_FILE

if TYPE_CHECKING:
    from lehr.secrets.encrypted_files import EncryptedFiles

state_option = own_state_option("State folder with the private key.")


class SecretPlace(NamedTuple):
    """A workspace and its state folder."""

    workspace: Path
    state: Path

    def encrypted_files(self) -> EncryptedFiles:
        """Its encrypted files."""
        from lehr.secrets.encrypted_files import EncryptedFiles

        return EncryptedFiles(self.workspace, self.state, os.environ)


def place_of(file: Path, state: Path | None) -> SecretPlace:
    """The workspace that contains `file`, which may be a folder.

    Raises:
        LehrError: it is not in a workspace.
    """
    absolute = Path(os.path.abspath(file))
    workspace = next((up for up in (absolute, *absolute.parents) if (up / WORKSPACE_FILE).is_file()), None)
    if workspace is None:
        raise LehrError(
            f"no {WORKSPACE_FILE} next to {file} or in a parent folder",
            code="CLI147",
            why="secrets are stored in a workspace",
            fix="change to a workspace; `lehr init` creates one",
        )
    return SecretPlace(workspace, workspace_state(workspace, state))


def require_recipients(place: SecretPlace) -> None:
    """Check that there is a recipient, before anything else.

    Every line of the file that is not a public key is shown, and the command ends.

    Raises:
        LehrError: there is no recipient.
    """
    from lehr.cli.diagnostics import refuse
    from lehr.secrets.recipients import RecipientsError

    try:
        place.encrypted_files().recipients()
    except RecipientsError as error:
        refuse(error.diagnostics)


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
