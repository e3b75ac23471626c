"""A simulated network switch: python bin/switch.py --port 8421 [--version 4.1.0] [--state FILE]

    GET  /state     {"version": "4.1.0", "serving": true}
    POST /drain     no traffic any more
    POST /flash     {"version": "4.2.0"}, refused while it has traffic
    POST /reboot    runs what was flashed; until then it answers 503
    POST /undrain   takes traffic again

A version that ends with `-broken` can be flashed, and does not start: after the reboot, the old one runs.
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Switch:
    """A switch, kept in a file so that it survives the end of this program."""

    def __init__(self, version: str, path: Path | None, reboot_seconds: float) -> None:
        self.lock = threading.Lock()
        self.path = path
        self.reboot_seconds = reboot_seconds
        self.booting_until = 0.0
        self.state = {"version": version, "serving": True, "flashed": version, "actions": []}
        if path is not None and path.exists():
            self.state = json.loads(path.read_text())

    def act(self, action: str, body: dict) -> tuple[int, dict]:
        with self.lock:
            if time.monotonic() < self.booting_until:
                return 503, {"message": "booting"}
            if action == "state":
                return 200, {name: self.state[name] for name in ("version", "serving")}
            if action in ("flash", "reboot") and self.state["serving"]:
                return 409, {"message": f"{action} is refused while there is traffic"}
            answer = getattr(self, action)(body)
            self.state["actions"].append(action)
            if self.path is not None:
                new = self.path.with_suffix(".new")
                new.write_text(json.dumps(self.state))
                new.replace(self.path)
            return 200, answer

    def drain(self, body: dict) -> dict:
        self.state["serving"] = False
        return {}

    def flash(self, body: dict) -> dict:
        self.state["flashed"] = body["version"]
        return {}

    def reboot(self, body: dict) -> dict:
        if not self.state["flashed"].endswith("-broken"):
            self.state["version"] = self.state["flashed"]
        self.booting_until = time.monotonic() + self.reboot_seconds
        return {}

    def undrain(self, body: dict) -> dict:
        self.state["serving"] = True
        return {}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--version", default="4.1.0")
    parser.add_argument("--state", type=Path)
    parser.add_argument("--reboot-seconds", type=float, default=0.3)
    given = parser.parse_args()
    switch = Switch(given.version, given.state, given.reboot_seconds)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.answer({"/state"})

        def do_POST(self) -> None:
            self.answer({"/drain", "/flash", "/reboot", "/undrain"})

        def answer(self, known: set[str]) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, found = 404, {"message": "unknown"}
            if self.path in known:
                status, found = switch.act(self.path[1:], json.loads(body or b"{}"))
            content = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
