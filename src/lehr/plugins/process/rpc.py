"""supervisord's XML-RPC over its Unix socket. Blocks, but never for long."""

from __future__ import annotations

import http.client
import os
import socket
import xml.parsers.expat
import xmlrpc.client
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lehr.base.errors import LehrError, TransientError

SOCKET = "supervisor.sock"
TIMEOUT = 5.0
"""Seconds; no call here waits for anything."""


class NotRunningError(LehrError):
    """No process listens on the socket."""


class RefusedError(TransientError):
    """supervisord refused a call.

    Attributes:
        number: supervisord's number for the reason.
    """

    ALREADY_STARTED = 60
    BAD_NAME = 10
    CANT_REREAD = 92
    NOT_RUNNING = 70
    SHUTDOWN_STATE = 6

    def __init__(self, number: int, text: str) -> None:
        super().__init__(f"supervisord refused: {text}", code="PRO115")
        self.number = number


class _Connection(http.client.HTTPConnection):
    """HTTP over the socket in `directory`, however long that path is.

    The address of a Unix socket holds 107 bytes. Through a handle of the directory the path is always short.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT)
        self._directory = directory

    def connect(self) -> None:
        handle = os.open(self._directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(TIMEOUT)
            self.sock.connect(f"/proc/self/fd/{handle}/{SOCKET}")
        finally:
            os.close(handle)


def call(directory: Path, method: str, *arguments: Any) -> Any:
    """The answer of `supervisor.<method>` from the supervisord of `directory`.

    Raises:
        NotRunningError: the supervisord does not run.
        RefusedError: it refused the call.
        TransientError: it did not answer in time, or its answer is invalid.
    """
    return _post(directory, f"supervisor.{method}", arguments)


def call_each(directory: Path, method: str, arguments: Sequence[str]) -> list[Any]:
    """The answers of `supervisor.<method>` to each argument, in one request; Faults as values.

    Raises:
        NotRunningError, TransientError: as `call`.
    """
    if not arguments:
        return []
    calls = [{"methodName": f"supervisor.{method}", "params": [item]} for item in arguments]
    answers = _post(directory, "system.multicall", (calls,))
    return [
        RefusedError(item["faultCode"], item["faultString"])
        if isinstance(item, dict) and "faultCode" in item
        else item
        for item in answers
    ]


def _post(directory: Path, method: str, arguments: tuple[Any, ...]) -> Any:
    connection = _Connection(directory)
    try:
        body = xmlrpc.client.dumps(arguments, method)
        connection.request("POST", "/RPC2", body, {"Content-Type": "text/xml"})
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise TransientError(
                f"supervisord of {directory} answered {response.status} {response.reason}", code="PRO116"
            )
        (answer,), _ = xmlrpc.client.loads(content)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NotRunningError(f"no supervisord runs in {directory}", code="PRO117") from error
    except xmlrpc.client.Fault as error:
        raise RefusedError(error.faultCode, error.faultString) from error
    except (OSError, http.client.HTTPException, xml.parsers.expat.ExpatError, ValueError) as error:
        raise TransientError(
            f"supervisord of {directory} does not answer",
            code="PRO118",
            why=str(error) or type(error).__name__,
            fix="if this persists, stop that supervisord; Lehr starts a new one",
        ) from error
    else:
        return answer
    finally:
        connection.close()
