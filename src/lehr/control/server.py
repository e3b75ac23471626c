"""The server of the control channel."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from lehr.base.errors import DEFECT, LehrError, raised_as
from lehr.base.log import Log
from lehr.control.messages import AnyRequest, CommandResult
from lehr.control.socket import SOCKET, listening, peer_user

log = Log()

CarryOut = Callable[[AnyRequest, str], Awaitable[CommandResult]]

_MOST_BYTES = 1024 * 1024


class Server:
    """Accepts commands at `control.sock` in the state folder, from the same user and from root."""

    def __init__(self, state: Path, carry_out: CarryOut) -> None:
        self._path = state / SOCKET
        self._carry_out = carry_out
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_unix_server(
            self._converse, sock=listening(self._path), limit=_MOST_BYTES
        )

    async def stop(self) -> None:
        """Stop listening, and remove the socket."""
        if self._server is not None:
            self._server.close()
            self._path.unlink(missing_ok=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            connection: socket.socket = writer.get_extra_info("socket")
            user = peer_user(connection)
            while line := await reader.readline():
                answer = await self._answer(line, user)
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        except (ValueError, ConnectionError):
            log.warning("a command could not be read; the connection is closed")
        finally:
            writer.close()

    async def _answer(self, line: bytes, user: int) -> CommandResult:
        try:
            return await self._carry_out(_request(line, user), user_name(user))
        except LehrError as error:
            return CommandResult(False, error.what, error.why, error.fix, error.code)
        except Exception as error:
            log.exception("a command failed")
            return CommandResult(
                False, "the command failed", why=f"{type(error).__name__}: {error}", code=DEFECT
            )


def _request(line: bytes, user: int) -> AnyRequest:
    if user not in (os.getuid(), 0):
        raise LehrError(f"user {user} may not control this program", code="CTL122")
    with raised_as(LehrError, "the command is not valid", code="CTL123", on=msgspec.MsgspecError):
        request: AnyRequest = msgspec.json.decode(line, type=AnyRequest)
    return request


def user_name(user: int) -> str:
    """The name of a user of this machine, or the number of one without a name."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"uid {user}"
