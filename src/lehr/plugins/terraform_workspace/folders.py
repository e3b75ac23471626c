"""The folders of one asset on this machine: data of the command, the module, and what a run leaves. Blocks.

lock           held by a run, of whichever Lehr process
data/          TF_DATA_DIR: providers, remote modules, the configuration of the backend
module/        the files of Lehr's workspace, where the module is made of them
run/           variables, plan and log of one run; deleted afterwards
operations/    the marks of pushes
initialised    what `init` was last run for
state-before-init    a copy of a local state, while `init` runs
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from lehr.base import durable
from lehr.base.digest import digest, short
from lehr.base.errors import StalledError, TransientError, raised_as
from lehr.model.asset import AssetKey
from lehr.model.workspace_file import WorkspaceFile
from lehr.plugins.mark import Mark
from lehr.plugins.terraform_workspace.payload import LOCK_FILE, TerraformWorkspace, is_configuration

Contents = Callable[[str, str], bytes | None]
"""The content of a file of Lehr's workspace, by path and digest; None if it was not kept. Blocks."""

_STATE = "terraform.tfstate"
_KEPT_STATE = "state-before-init"
_UNSAVED = "errored.tfstate"
_WRITE_FIX = "check that the state folder has free space and that Lehr can write to it"


def folder_of(state: Path, key: AssetKey) -> Path:
    """The folder of an asset."""
    return state / short(digest([key.partition, key.id]))


def mark_of(folder: Path, operation: str) -> Mark:
    """The mark of a push."""
    return Mark(folder / "operations" / f"{operation}.lock")


class RunFolder:
    """The folder of an asset, locked for one run. Close it.

    Attributes:
        root: the folder of the root module, where the command runs.
        made: whether Lehr has made this folder.
        source: identifies the configuration.
    """

    def __init__(self, folder: Path, lock: int) -> None:
        self._folder = folder
        self._lock = lock
        self.data = folder / "data"
        self.run = folder / "run"
        self.root = ""
        self.made = False
        self.source = ""

    def close(self) -> None:
        """Delete what the run has left, and unlock the folder."""
        shutil.rmtree(self.run, ignore_errors=True)
        os.close(self._lock)

    def is_initialised(self, key: str) -> bool:
        """Whether `init` has been run for `key`."""
        with contextlib.suppress(OSError):
            return (self._folder / "initialised").read_text() == key
        return False

    def note_initialised(self, key: str) -> None:
        """Record that `init` has been run for `key`; for nothing, if `key` is empty."""
        with _writing(self._folder):
            (self._folder / "initialised").write_text(key)

    def keep_state(self) -> None:
        """Copy a state that lies next to the module.

        `init` takes it for one without a backend, and empties it, where the backend names this file by
        another spelling of its path.
        """
        state = Path(self.root, _STATE)
        with raised_as(TransientError, f"{state} cannot be copied", code="TWS127", fix=_WRITE_FIX):
            if not self.made and _size(state):
                durable.replace(self._folder / _KEPT_STATE, state.read_bytes(), 0o600)

    def restore_state(self) -> None:
        """Undo what `init` has done to the state, or was doing when Lehr was killed."""
        state, kept = Path(self.root, _STATE), self._folder / _KEPT_STATE
        with raised_as(TransientError, f"{state} cannot be restored", code="TWS128", fix=_WRITE_FIX):
            if not kept.exists():
                return
            if not _size(state):
                mode = state.stat().st_mode & 0o777 if state.exists() else 0o600
                durable.replace(state, kept.read_bytes(), mode)
            kept.unlink()

    def secret_file(self, name: str, content: bytes = b"") -> Path:
        """A new file of the run, which only the user that runs Lehr can read."""
        path = self.run / name
        with _writing(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(content)
        return path

    def require_state_elsewhere(self, workspace: str) -> None:
        """Raises `StalledError` if the backend keeps the state in a folder that Lehr has made."""
        if not self.made:
            return
        try:
            backend = json.loads((self.data / "terraform.tfstate").read_bytes())["backend"]
            kind, config = backend["type"], backend.get("config") or {}
        except (OSError, ValueError, KeyError, TypeError):
            kind, config = "local", {}
        place = config.get("path") if workspace == "default" else config.get("workspace_dir")
        if kind == "local" and not os.path.isabs(place or ""):
            name = "path" if workspace == "default" else "workspace_dir"
            raise StalledError(
                "the module has no place for its state",
                code="TWS114",
                why="without another backend it would be in the folder that Lehr makes of `files`",
                fix=f'give the module a backend, such as `backend "local" {{}}`, with `backend: {{{name}: '
                "/absolute/path}`",
            )


def open_folder(
    folder: Path, name: str, module: TerraformWorkspace, base: str, contents: Contents
) -> RunFolder | None:
    """The locked folder of an asset, with the module of `module`; None while another run has it.

    Args:
        name: of the asset, for people who look into the folder.

    Raises:
        StalledError: the module is not there, or a state that could not be saved lies in it.
        TransientError: the folder cannot be written, or an `apply` of another process still runs.
    """
    with _writing(folder):
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "asset").write_text(f"{name}\n")
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    try:
        return _prepared(RunFolder(folder, lock), folder, module, base, contents)
    except BaseException:
        os.close(lock)
        raise


def _prepared(
    opened: RunFolder, folder: Path, module: TerraformWorkspace, base: str, contents: Contents
) -> RunFolder:
    if any(Mark(path).running() for path in sorted((folder / "operations").glob("*.lock"))):
        raise TransientError(
            "an `apply` of this asset still runs",
            code="TWS121",
            why="it was started by a Lehr process that has ended",
        )
    opened.made = bool(module.files)
    root = folder / "module" / module.root if opened.made else Path(base, module.root)
    opened.root = str(root)
    if (root / _UNSAVED).exists():
        raise StalledError(
            f"a state that could not be saved lies in {root / _UNSAVED}",
            code="TWS122",
            why="an `apply` has changed production, and the backend did not take its state",
            fix=f"run `terraform state push {_UNSAVED}` in that folder, and delete the file",
        )
    with _writing(folder):
        shutil.rmtree(opened.run, ignore_errors=True)
        opened.run.mkdir(mode=0o700)
        opened.data.mkdir(mode=0o700, exist_ok=True)
        if opened.made:
            opened.source = _make_module(folder, module.workspace_files, contents)
            return opened
    opened.restore_state()
    opened.source = _source(root)
    return opened


def _make_module(folder: Path, files: Sequence[WorkspaceFile], contents: Contents) -> str:
    """Make the folder `module` of files of the workspace; returns what identifies them."""
    source = digest(sorted((file.file, file.digest) for file in files))
    module, made = folder / "module", folder / "module.digest"
    with contextlib.suppress(OSError):
        if made.read_text() == source and module.is_dir():
            return source
    found = [(file.file, _content(file, contents)) for file in files]
    made.unlink(missing_ok=True)
    shutil.rmtree(module, ignore_errors=True)
    for path, content in found:
        place = module / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    made.write_text(source)
    return source


def _writing(path: Path) -> AbstractContextManager[None]:
    return raised_as(TransientError, f"{path} cannot be written", code="TWS120", fix=_WRITE_FIX)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _content(file: WorkspaceFile, contents: Contents) -> bytes:
    found = None if file.digest is None else contents(file.file, file.digest)
    if found is None:
        raise StalledError(
            f"the file {file.file} of this revision is not available",
            code="TWS111",
            why="the files of this incarnation were not kept, or are not on this machine",
            fix="publish it again: change the file, and commit it",
        )
    return found


def _source(root: Path) -> str:
    """Identifies the configuration in a folder of the machine, without its local modules."""
    try:
        names = sorted(os.listdir(root))
        known = [name for name in names if is_configuration(name) or name == LOCK_FILE]
        parts = [(name, (root / name).read_bytes().hex()) for name in known]
    except OSError as error:
        raise StalledError(
            f"the module {root} cannot be read",
            code="TWS119",
            why=error.strerror or str(error),
            fix="correct `root`, or put the module there",
        ) from error
    if not any(is_configuration(name) for name in known):
        raise StalledError(
            f"the folder {root} has no configuration",
            code="TWS125",
            fix="correct `root`, or put the module there",
        )
    return digest(parts)
