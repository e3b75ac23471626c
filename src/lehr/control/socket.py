"""The Unix socket of the control channel, however long its path; and its client."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lehr.base.errors import LehrError
from lehr.control.messages import AnyRequest, CommandResult

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


# --- client of a running `lehr run` -------------------------------------------

SOCKET = "control.sock"
"""Name of the socket in the state folder."""

_MOST_BYTES = 64 * 1024 * 1024


class NotRunningError(LehrError):
    """No process listens on the socket."""


def send(state: Path, request: AnyRequest, *, timeout: float = 30.0) -> CommandResult:
    """Send a command to the `lehr run` of `state` and return its answer.

    Raises:
        NotRunningError: no `lehr run` is running.
        LehrError: it does not answer within `timeout` seconds.
    """
    try:
        with connected(state / SOCKET, timeout) as client:
            client.sendall(msgspec.json.encode(request) + b"\n")
            with client.makefile("rb") as answers:
                line = answers.readline(_MOST_BYTES)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
        raise NotRunningError(
            f"no `lehr run` is running on {state}",
            code="CTL101",
            why="commands that change something are carried out by a running `lehr run`",
            fix="start it with `lehr run`, or name the right state folder with --state",
        ) from error
    except PermissionError as error:
        raise LehrError(
            f"this user may not control the `lehr run` on {state}",
            code="CTL102",
            fix="run this as the user who started it",
        ) from error
    except OSError as error:
        raise LehrError(f"`lehr run` on {state} does not answer", code="CTL103", why=str(error)) from error
    if not line:
        raise LehrError(f"`lehr run` on {state} ended before it answered", code="CTL104")
    return msgspec.json.decode(line, type=CommandResult)
