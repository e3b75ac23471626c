"""Where the state of a workspace is, and whether it may be trusted.

    $STATE_DIRECTORY/<name>-<digest>           where systemd sets it
    $XDG_STATE_HOME/lehr/<name>-<digest>       where that is set; else
    /var/lib/lehr/<name>-<digest>              for root
    ~/.local/state/lehr/<name>-<digest>        for all other users

<name> is the workspace's folder, <digest> that of its real path. The state is never in the workspace: git
writes there, and overwrites and deletes files that it ignores, so anyone who can commit could put a state
there.

Architecture invariants: every command finds the state through this module; nothing in a state folder is read
before `require_own` has verified that only this user can access it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from lehr.base.digest import digest_bytes, short
from lehr.base.durable import replace
from lehr.base.errors import LehrError, raised_as
from lehr.base.real_paths import weakness
from lehr.base.text import writable

UNUSED = ".lehr"
"""A folder of this name in a workspace is reported, never read."""

WORKSPACE_FILE = "lehr.yaml"

_RECORD = "workspace.json"
_KEY = "age-identity.txt"  # users of the file refuse a mode that is too wide: others may have read it
_SYSTEM = Path("/var/lib/lehr")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]+")


class Record(msgspec.Struct, frozen=True):
    """Whose state it is, as recorded in the state folder.

    Attributes:
        folder: the workspace, as a `file:` URL, which can hold any path.
        partition: whose incarnations are in it; empty while unknown.
        device, inode: of the workspace; they stay the same when it is moved within a file system.
    """

    folder: str
    partition: str = ""
    device: int = 0
    inode: int = 0

    @property
    def path(self) -> Path:
        """The workspace."""
        return Path(os.fsdecode(urllib.parse.unquote_to_bytes(urllib.parse.urlsplit(self.folder).path)))


# --- location ------------------------------------------------------------------


def states(environment: Mapping[str, str] | None = None) -> Path:
    """The folder of all states of this user.

    Raises:
        LehrError: the user has no home folder.
    """
    known = os.environ if environment is None else environment
    given = known.get("STATE_DIRECTORY", "").split(":")[0]  # systemd can list several
    if given.startswith("/"):
        return Path(given)
    home = known.get("XDG_STATE_HOME", "")
    if home.startswith("/"):  # the specification requires ignoring relative paths
        return Path(home) / "lehr"
    if os.geteuid() == 0:
        return _SYSTEM
    try:
        return Path("~/.local/state/lehr").expanduser().absolute()
    except RuntimeError as error:
        raise LehrError(
            "there is no default place for state",
            code="CTL125",
            why="this user has no home directory",
            fix="set XDG_STATE_HOME, or name a folder with --state",
        ) from error


def default_state(folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """The state folder of the workspace in `folder`, which may not exist."""
    real = os.path.realpath(folder)
    name = _NOT_IN_NAMES.sub("-", os.path.basename(real))[:40].strip(".-") or "workspace"
    return states(environment) / f"{name}-{short(digest_bytes(os.fsencode(real)))}"


def named_state(place: Path) -> Path:
    """The state folder that `place` names: `place` itself, or that of the workspace at `place`."""
    return default_state(place) if (place / WORKSPACE_FILE).is_file() else place


# --- trust ----------------------------------------------------


def require_own(state: Path, *, repair: bool = True) -> tuple[str, ...]:
    """Check that a state folder, if it exists, is this user's alone, and that no other user can replace it.

    A folder of mode 0755 in the default place is changed to 0700: before states had a folder of their own,
    others made the folder above. One that was named explicitly may be shared on purpose, so it is refused.

    Args:
        state: the folder.
        repair: whether to change modes; if not, a folder that others can read is refused.

    Returns:
        What was repaired, as a message.

    Raises:
        LehrError: another user can, git writes there, or its path is not UTF-8.
    """
    state = state.absolute()
    if (real := os.path.realpath(state)) != writable(real):
        raise LehrError(
            f"the path of state folder {real} is not UTF-8",
            code="CTL135",
            why="registers of claims, which other programs read, hold it as text",
            fix="name another folder with --state",
        )
    _require_outside_git(state)
    user = os.geteuid()
    with usable(state):
        found = weakness(state, user, itself=False)
        status = state.stat() if found is None and state.exists() else None
    if found is not None:
        raise _replaceable(state, found.path, found.why, found.fix)
    if status is None:
        return ()
    if not stat.S_ISDIR(status.st_mode):
        raise LehrError(
            f"state folder {state} is not a folder", code="CTL126", fix="name another one with --state"
        )
    if status.st_uid != user:
        raise LehrError(
            f"state folder {state} belongs to user {status.st_uid}",
            code="CTL127",
            why="its owner controls its content",
            fix="run this as that user, or name another folder with --state",
        )
    return (*_require_mode(state, status, repair=repair), *_require_files(state, user, repair=repair))


def _require_outside_git(state: Path) -> None:
    """Where git has a work tree, a commit can replace a file of the state, and `git clean` deletes it.

    A home folder that is a work tree is exempt: states are in it, like everything else of its owner.
    """
    real, home = Path(os.path.realpath(state)), Path(os.path.realpath(os.path.expanduser("~")))
    for folder in (real, *real.parents):
        if folder.name == ".git" or (folder.joinpath(".git").exists() and not home.is_relative_to(folder)):
            raise LehrError(
                f"state folder {state} is in the git work tree {folder}",
                code="CTL128",
                why="pulling a commit can overwrite state there, and `git clean` can delete it",
                fix="name a folder outside it with --state, or omit --state",
            )


def _is_default(state: Path) -> bool:
    """Whether it is in the default place."""
    try:
        return state.parent == states()
    except LehrError:
        return False


def _require_mode(state: Path, status: os.stat_result, *, repair: bool) -> tuple[str, ...]:
    mode = stat.S_IMODE(status.st_mode)
    if not mode & 0o077:
        return ()
    if not (repair and _is_default(state)):
        raise LehrError(
            f"other users can read state folder {state}",
            code="CTL129",
            why=f"its mode is {mode:04o}; only its owner should have access",
            fix=f"chmod 700 {state}",
        )
    os.chmod(state, 0o700)
    return (f"other users could read {state} (mode {mode:04o}); its mode is now 0700",)


def _require_files(state: Path, user: int, *, repair: bool) -> tuple[str, ...]:
    """The files directly in the folder; its mode protects the folders below."""
    wide = []
    with os.scandir(state) as entries:
        found = list(entries)
    for entry in found:
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # a running `lehr run` removes its own files
            continue
        if stat.S_ISLNK(status.st_mode) or status.st_uid != user:
            what = "a symbolic link" if stat.S_ISLNK(status.st_mode) else f"of user {status.st_uid}"
            raise _replaceable(state, entry.path, f"it is {what}", f"rm {entry.path}")
        if repair and stat.S_ISREG(status.st_mode) and status.st_mode & 0o077 and entry.name != _KEY:
            os.chmod(entry.path, 0o600)
            wide.append(entry.name)
    return (f"changed the mode of files in {state} to 0600: {', '.join(sorted(wide))}",) if wide else ()


def _replaceable(state: Path, path: str, why: str, fix: str) -> LehrError:
    return LehrError(
        f"state folder {state} is not safe to use",
        code="CTL130",
        why=f"{path}: {why}, so another user could replace the state",
        fix=fix or "name another folder with --state",
    )


def usable(state: Path) -> AbstractContextManager[None]:
    """An error of the system means that a state folder cannot be used."""
    fix = "choose another with --state, or make it writable for this user"
    return raised_as(LehrError, f"state folder {state} cannot be used", code="CTL119", fix=fix)


def make(state: Path) -> None:
    """Make a state folder for its owner alone, and the folder of all states if it belongs there.

    Raises:
        OSError: it cannot be created.
    """
    if _is_default(state):
        state.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    state.mkdir(mode=0o700, parents=True, exist_ok=True)


# --- ownership ------------------------------------------------------------------


def record_of(state: Path) -> Record | None:
    """Whose state it is; None if not recorded.

    Raises:
        LehrError: it cannot be read.
    """
    path, fix = state / _RECORD, "remove it; the next `lehr run` writes it again"
    broken = (OSError, msgspec.DecodeError)
    with (
        raised_as(LehrError, f"{path} cannot be read", code="CTL131", fix=fix, on=broken),
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
    ):
        return msgspec.json.decode(path.read_bytes(), type=Record)
    return None


def write_record(state: Path, folder: Path, partition: str) -> None:
    """Record that `state` belongs to the workspace in `folder`.

    Raises:
        LehrError: it cannot be written.
    """
    real = Path(os.path.realpath(folder))
    path = state / _RECORD
    with raised_as(LehrError, f"{path} cannot be written", code="CTL132", fix="check its disk"):
        status = real.stat()
        record = Record(real.as_uri(), partition, status.st_dev, status.st_ino)
        if record != record_of(state):
            replace(path, msgspec.json.encode(record), 0o600)


def require_partition(state: Path, partition: str) -> None:
    """Check that `state` does not belong to another partition.

    Raises:
        LehrError: it is.
    """
    record = record_of(state)
    if record is None or not record.partition or record.partition == partition:
        return
    raise LehrError(
        f"the workspace belongs to partition {partition}, but state folder {state} to {record.partition}",
        code="CTL133",
        why="pins, freezes and running pushes of one partition mean nothing to another",
        fix=f"name another folder with --state; or, if {record.partition} is gone for good, remove this one",
    )


def moved_from(folder: Path, partition: str = "") -> Iterator[tuple[Path, Record]]:
    """States of workspaces that are gone and have the same inode as `folder`: they may be its own.

    File systems give an inode again once its folder is deleted: so a state of another partition than
    `partition`, if that is known, is not among them.
    """
    here = folder.stat()
    for path in sorted(states().glob(f"*/{_RECORD}")):
        try:
            record = record_of(path.parent)
        except LehrError:
            continue  # `lehr state show` and `lehr run` there report it
        if record is None or (record.device, record.inode) != (here.st_dev, here.st_ino):
            continue
        if partition and record.partition and partition != record.partition:
            continue
        if path.parent != default_state(folder) and not record.path.exists():
            yield path.parent, record


def require_not_moved(folder: Path, partition: str = "") -> None:
    """Check that a workspace without a state, of `partition` if that is known, was not moved away from one.

    Raises:
        LehrError: it is.
    """
    for state, record in moved_from(folder, partition):
        raise LehrError(
            f"{folder} has no state, but was probably {record.path} before",
            code="CTL134",
            why=f"state folder {state} belongs to partition {record.partition} there, which is gone",
            fix=f"run `lehr state move {record.path}` to take its state along; "
            f"or, to start over, remove {state}",
        )
