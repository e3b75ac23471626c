"""A small web program: `/` is a page, `/healthz` says that it is well.

    python3 server.py PORT PAGE

On SIGTERM it answers what it has begun, and ends.
"""

import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for answers under way


def main(port: int, page: Path) -> None:
    answers = {"/": page.read_bytes(), "/healthz": b"ok\n"}

    class Handler(BaseHTTPRequestHandler):
        timeout = 5  # seconds; a client that says nothing holds nobody up

        def do_GET(self) -> None:
            body = answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body or b"")))
            self.send_header("Process", str(os.getpid()))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *arguments: object) -> None:
            """Say nothing about single requests."""

    with Server(("127.0.0.1", port), Handler) as server:
        # `shutdown` waits for the loop that the signal has interrupted, so it needs a thread.
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
