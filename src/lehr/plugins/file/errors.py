"""Errors of the system about a path, as errors that name a fix."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator

from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.plugins.file import disk

_FIXES: dict[int, tuple[type[LehrError], str]] = {
    errno.EACCES: (
        StalledError,
        "run Lehr as a user that may do this, or change the directory's permissions",
    ),
    errno.EPERM: (StalledError, "run Lehr as a user that may do this; look for an immutable attribute"),
    errno.EROFS: (StalledError, "mount the file system for writing, or choose another path"),
    errno.ENOTDIR: (StalledError, "a part of the path is not a directory: remove it, or choose another path"),
    errno.EEXIST: (StalledError, "a part of the path is not a directory: remove it, or choose another path"),
    errno.EISDIR: (StalledError, "a directory is in the way: remove it by hand, or choose another path"),
    errno.ENAMETOOLONG: (StalledError, "choose a shorter path"),
    errno.ELOOP: (StalledError, "symbolic links on the path form a loop: fix them"),
    errno.EAGAIN: (
        TransientError,
        "another push is writing this file; this one continues when the other has ended",
    ),
    errno.ENOSPC: (TransientError, "free space or inodes on this file system; the old file is intact"),
    errno.EDQUOT: (TransientError, "free some of the quota; the old file is intact"),
}


@contextlib.contextmanager
def errors_of(path: str) -> Iterator[None]:
    """Translate the system's errors about `path`.

    Raises:
        StalledError: it must be fixed.
        TransientError: it may go away without a fix.
    """
    try:
        yield
    except disk.ChangedError as error:
        raise StalledError(
            f"`validate` of {path} changed the new content",
            code="FIL115",
            why="the file must have the content that is intended",
            fix="use a command that only reads; the file has not been changed",
        ) from error
    except disk.OwnerError as error:
        raise StalledError(
            f"{path} cannot get its intended `owner` and `group`",
            code="FIL126",
            why=error.strerror or str(error),
            fix="run Lehr as root, or delete `owner` and `group`",
        ) from error
    except OSError as error:
        kind, fix = _FIXES.get(error.errno or 0, (TransientError, ""))
        raise kind(
            f"{path} cannot be kept as intended", code="FIL104", why=error.strerror or str(error), fix=fix
        ) from error
