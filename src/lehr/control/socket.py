"""The Unix socket of the control channel, however long its path."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """A path to the same socket that fits the 108 bytes of a socket address."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def listening(path: Path) -> socket.socket:
    """A socket that listens at `path`, for its owner only. Replaces a stale one."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    before = os.umask(0o177)
    try:
        with short_path(path) as name:
            server.bind(name)
    finally:
        os.umask(before)
    server.listen(64)
    return server


def connected(path: Path, timeout: float) -> socket.socket:
    """A socket connected to `path`.

    Raises:
        OSError: no process listens there.
    """
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(timeout)
    try:
        with short_path(path) as name:
            client.connect(name)
    except BaseException:
        client.close()
        raise
    return client


def peer_user(connection: socket.socket) -> int:
    """The user id of the peer process, as the kernel reports it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(raw)[1])
