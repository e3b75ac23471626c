"""A small web program: `/` answers with the greeting of its configuration, `/healthz` says that it is well.

    python3 shop.py PORT VERSION CONFIGURATION

On SIGTERM it answers what it has begun, and ends.
"""

import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for answers under way


def main(port: int, version: str, configuration: Path) -> None:
    pairs = (line.partition("=") for line in configuration.read_text().splitlines())
    values = {name.strip(): value.strip() for name, _, value in pairs}
    answers = {"/": f"{values['greeting']} ({version})\n", "/healthz": "ok\n"}

    class Handler(BaseHTTPRequestHandler):
        timeout = 5  # seconds; a client that says nothing holds nobody up

        def do_GET(self) -> None:
            body = answers.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing about single requests."""

    with Server(("127.0.0.1", port), Handler) as server:
        # `shutdown` waits for the loop that the signal has interrupted, so it needs a thread.
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        server.serve_forever(poll_interval=0.05)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
