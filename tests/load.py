"""Clients that ask a server all the time, and count the requests that it loses."""

from __future__ import annotations

import http.client
import threading
from typing import Self


class Load:
    """Requests by several clients, each over a new connection, until it is stopped.

    Attributes:
        answers: the bodies of all good answers.
        lost: one line for each request without a good answer.
        asked: requests so far.
    """

    def __init__(self, port: int, clients: int = 4, *, host: str = "127.0.0.1") -> None:
        """Ask on a port of the loopback interface for the site of `host`."""
        self._port = port
        self._headers = {"Host": host, "Connection": "close"}
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]
        self.answers: set[str] = set()
        self.lost: list[str] = []
        self.asked = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        while not self._stopped.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
            try:
                connection.request("GET", "/", headers=self._headers)
                answer = connection.getresponse()
                body = answer.read().decode()
                if answer.status == 200:
                    self.answers.add(body)
                else:
                    self.lost.append(f"{answer.status} {body}")
            except (OSError, http.client.HTTPException) as error:
                self.lost.append(repr(error))
            finally:
                self.asked += 1
                connection.close()
