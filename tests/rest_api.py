"""A small REST API on loopback: items with entity tags, a paginated collection, and faults on demand."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAGE = 2


class Api:
    """Items by path, and what happened to them.

    Attributes:
        token: what requests must have as a bearer token; empty for anyone.
        etags: whether items have entity tags, and writes heed them.
        trouble: asked first, with the handler; it answers if it returns True.
        after: the same after a write was carried out, in place of the answer.
        requests: methods and paths, in order.
        seen: headers of each request.
        hidden: fields that no answer has.
        extra: fields that the server adds to each item.
        at_location: whether POST answers with the place of the item.
    """

    def __init__(self) -> None:
        self.items: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.token = ""
        self.etags = True
        self.trouble: Callable[[Handler], bool] | None = None
        self.after: Callable[[Handler], bool] | None = None
        self.requests: list[str] = []
        self.seen: list[dict[str, str]] = []
        self.hidden: set[str] = set()
        self.extra: dict[str, Any] = {"created": "2026-01-01"}
        self.at_location = True
        self.lock = threading.RLock()
        self.count = 0
        self.base = ""

    def put(self, path: str, item: dict[str, Any]) -> None:
        with self.lock:
            self.items[path] = item
            self.versions[path] = self.versions.get(path, 0) + 1

    def delete(self, path: str) -> None:
        with self.lock:
            del self.items[path]
            self.versions[path] += 1

    def made(self, item: dict[str, Any]) -> str:
        with self.lock:
            self.count += 1
            path = f"/things/t{self.count}"
            self.put(path, {**item, "id": f"t{self.count}"})
            return path

    def writes(self) -> list[str]:
        return [request for request in self.requests if not request.startswith("GET")]

    def everything(self) -> object:
        with self.lock:
            return json.dumps(self.items, sort_keys=True)


class Handler(BaseHTTPRequestHandler):
    api: Api
    body: bytes

    def log_message(self, *_: object) -> None:
        pass

    def handle_any(self) -> None:
        api = self.api
        self.body = self.rfile.read(int(self.headers.get("content-length", 0)))
        api.requests.append(f"{self.command} {self.path}")
        api.seen.append({name.lower(): value for name, value in self.headers.items()})
        if api.trouble is not None and api.trouble(self):
            return
        if api.token and self.headers.get("authorization") != f"Bearer {api.token}":
            self.answer(401, {"message": f"not {self.headers.get('authorization')}"})
            return
        with api.lock:
            status, found, headers = self.carry_out()
        if self.command != "GET" and status < 300 and api.after is not None and api.after(self):
            return
        self.answer(status, found, headers)

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def carry_out(self) -> tuple[int, Any, dict[str, str]]:
        api, path = self.api, self.path.partition("?")[0]
        if path == "/things":
            return self.collection()
        refused = self.precondition(path)
        if refused:
            return refused, {"message": "precondition"}, {}
        if self.command in ("PUT", "POST"):
            status = 200 if path in api.items else 201
            kept = {key: value for key, value in api.items.get(path, {}).items() if key == "id"}
            api.put(path, {**kept, **json.loads(self.body)})
            return status, {}, {}
        if path not in api.items:
            return 404, {"message": "there is no such thing"}, {}
        if self.command == "PATCH":
            api.put(path, {**api.items[path], **json.loads(self.body)})
        elif self.command == "DELETE":
            api.delete(path)
            return 204, None, {}
        tag = {"ETag": self.tag(path)} if api.etags else {}
        return 200, self.shown(path), tag

    def collection(self) -> tuple[int, Any, dict[str, str]]:
        api = self.api
        if self.command == "POST":
            path = api.made(json.loads(self.body))
            if api.at_location:
                return 201, {}, {"Location": path}
            return 201, self.shown(path), {}
        start = int(self.path.partition("from=")[2] or 0)
        paths = [path for path in api.items if path.startswith("/things/")]
        page = [self.shown(path) for path in paths[start : start + PAGE]]
        more = start + PAGE < len(paths)
        link = {"Link": f'</things?from=0>; rel="first", </things?from={start + PAGE}>; rel="next"'}
        return 200, page, link if more else {}

    def precondition(self, path: str) -> int:
        wanted, none = self.headers.get("if-match"), self.headers.get("if-none-match")
        if none == "*" and path in self.api.items:
            return 412
        return 412 if self.api.etags and wanted is not None and wanted != self.tag(path) else 0

    def tag(self, path: str) -> str:
        return f'"{self.api.versions.get(path, 0)}"' if path in self.api.items else ""

    def shown(self, path: str) -> dict[str, Any]:
        found = {"id": path.rpartition("/")[2], **self.api.extra, **self.api.items[path]}
        return {key: value for key, value in found.items() if key not in self.api.hidden}

    def answer(self, status: int, found: Any, headers: dict[str, str] | None = None) -> None:
        content = b"" if found is None else found if isinstance(found, bytes) else json.dumps(found).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def reset(self) -> bool:
        """Break off in the middle of an answer."""
        with contextlib.suppress(OSError):
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RDWR)
        return True

    def hang(self, seconds: float) -> bool:
        time.sleep(seconds)
        return True


@contextlib.contextmanager
def serving() -> Iterator[Api]:
    """An API on a free port, with nothing in it."""
    api = Api()
    handler = type("ApiHandler", (Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    api.base = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        server.server_close()
