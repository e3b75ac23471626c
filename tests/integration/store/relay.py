"""Stands between a client and a PostgreSQL server, and breaks the connection when it is told to."""

from __future__ import annotations

import contextlib
import enum
import select
import socket
import threading
from pathlib import Path

from tests.postgres import PORT

_COMMIT = b"COMMIT"


class Break(enum.Enum):
    """Where the connection of the next commit breaks."""

    NEVER = enum.auto()
    BEFORE = enum.auto()
    """The server never hears of the end, and is told that its client has gone."""
    UNHEARD = enum.auto()
    """The server never hears of the end, nor that its client has gone."""
    AFTER = enum.auto()
    """The server has committed; its answer is lost."""


class Relay:
    """Listens in `folder` on a socket of its own; `Relay.at` says what to do with the next COMMIT."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self.at = Break.NEVER
        self.broken = 0
        self._server = str(server / f".s.PGSQL.{PORT}")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / f".s.PGSQL.{PORT}"))
        self._listening.listen()
        self._kept: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept)
        self._serving: list[threading.Thread] = []
        self._accepting.start()

    def close(self) -> None:
        """Break all connections, and listen no more."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listening.close()
        for item in self._kept:
            with contextlib.suppress(OSError):  # it was broken before
                item.shutdown(socket.SHUT_RDWR)
        for thread in self._serving:
            thread.join()
        for item in self._kept:
            item.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # closed
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._kept += [client, server]
            self._serving.append(threading.Thread(target=self._relay, args=(client, server)))
            self._serving[-1].start()

    def _relay(self, client: socket.socket, server: socket.socket) -> None:
        other = {client: server, server: client}
        while True:
            for item in select.select([client, server], [], [])[0]:
                try:
                    content = item.recv(1 << 16)
                    if item is client and _COMMIT in content and self.at is not Break.NEVER:
                        self._break(client, server, content)
                        return
                    if not content:
                        other[item].shutdown(socket.SHUT_RDWR)
                        return
                    other[item].sendall(content)
                except OSError:
                    return

    def _break(self, client: socket.socket, server: socket.socket, content: bytes) -> None:
        at, self.at = self.at, Break.NEVER
        self.broken += 1
        if at is Break.AFTER:
            server.sendall(content)
            server.recv(1 << 16)
        if at is not Break.UNHEARD:
            server.shutdown(socket.SHUT_RDWR)
        client.shutdown(socket.SHUT_RDWR)
