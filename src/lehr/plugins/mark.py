"""Marks: show whether the processes of a push still run, even after a crash of Lehr.

A push's first process inherits a locked file, as do all processes that it starts. The kernel keeps the lock
until the last of them has ended, whatever happens to Lehr.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class Mark:
    """The mark of one push. All methods block.

    Daemons that a push leaves behind on purpose hold the lock forever. They do not count once they have left
    the push's process group, as daemons do.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def held(self) -> Iterator[int]:
        """A descriptor for the first process to inherit. Ours is closed on exit.

        On an exception, nothing was started, and the mark is forgotten.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield descriptor
        except BaseException:
            self.forget()
            raise
        finally:
            os.close(descriptor)

    def note(self, group: int) -> None:
        """Record that the first process leads the process group `group`."""
        self.path.write_text(str(group))

    def running(self) -> bool:
        """Whether a process of the push still runs. Forgets the mark if none does."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # No note yet: Lehr ended between start and note. Every holder of the lock counts.
            group = os.read(descriptor, 32)
            if not group or _exists(int(group)):
                return True
        finally:
            os.close(descriptor)
        self.forget()
        return False

    def forget(self) -> None:
        """Record that the push has ended."""
        self.path.unlink(missing_ok=True)


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
