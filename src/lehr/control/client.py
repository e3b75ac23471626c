"""Client of a running `lehr run`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from lehr.base.errors import LehrError
from lehr.control.messages import Answer, AnyRequest
from lehr.control.socket import connected

SOCKET = "control.sock"
"""Name of the socket in the state folder."""

_MOST_BYTES = 64 * 1024 * 1024


class NotRunningError(LehrError):
    """No process listens on the socket."""


def send(state: Path, request: AnyRequest, *, timeout: float = 30.0) -> Answer:
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
            why="commands that change something are carried out by the running program",
            fix="start it with `lehr run`, or name the right state folder with --state",
        ) from error
    except PermissionError as error:
        raise LehrError(
            f"this user may not command the `lehr run` on {state}",
            code="CTL102",
            fix="ask as the user who runs it",
        ) from error
    except OSError as error:
        raise LehrError(f"`lehr run` on {state} does not answer", code="CTL103", why=str(error)) from error
    if not line:
        raise LehrError(f"`lehr run` on {state} ended before it answered", code="CTL104")
    return msgspec.json.decode(line, type=Answer)
