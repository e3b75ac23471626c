"""Counts the visits of each site in Redis, and writes each down in SQLite.

Use: visits.py PORT REDIS_PORT DATABASE. GET /NAME answers with the number of visits of the site.
"""

import socket
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT, REDIS_PORT, DATABASE = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def increment(site: str) -> int:
    """The number of visits, with this one."""
    key = f"visits:{site}".encode()
    with socket.create_connection(("127.0.0.1", REDIS_PORT), timeout=2) as redis:
        redis.sendall(b"*2\r\n$4\r\nINCR\r\n$%d\r\n%s\r\n" % (len(key), key))
        answer = redis.makefile("rb").readline()
    if not answer.startswith(b":"):
        raise OSError(f"Redis answered {answer!r}")
    return int(answer[1:])


def note(site: str) -> None:
    """Write down a visit."""
    with sqlite3.connect(DATABASE, timeout=2) as database:
        database.execute("INSERT INTO visit (site, at) VALUES (?, ?)", (site, time.time()))


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site = self.path.strip("/")
        try:
            answer = "ok" if site == "healthz" else str(increment(site))
            if site != "healthz":
                note(site)
            self.answer(200, answer)
        except (OSError, sqlite3.Error) as error:
            self.answer(503, f"{type(error).__name__}: {error}")

    def answer(self, status: int, text: str) -> None:
        body = f"{text}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Log nothing for each request."""


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
