"""A stand-in for a Kubernetes API server, for tests of what speaks to one. It is none, and says so.

It answers as the Kubernetes API is documented for namespaces and ConfigMaps: lists with `limit` and
`continue`, watches with `resourceVersion` and bookmarks, POST, PUT, and DELETE with preconditions. Everything
is in memory. Figures of it say nothing about Kubernetes.
"""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

VERSION = "stand-in of a test, no Kubernetes"
TOKEN = "let-me-in"

_BOOKMARK_SECONDS = 1.0
_ROOT = "kube-root-ca.crt"

Document = dict[str, Any]


class StateError(Exception):
    """What the API calls a Status: an answer that is no success."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Cluster:
    """Namespaces with their ConfigMaps, and all that has happened.

    Attributes:
        requests: methods and paths, in the order of their coming.
    """

    def __init__(self, *namespaces: str) -> None:
        self.requests: list[tuple[str, str]] = []
        self.namespaces: dict[str, Document] = {}
        self._objects: dict[tuple[str, str], Document] = {}
        self._events: list[tuple[int, str, str, Document]] = []
        self._newest = 0
        self._changed = threading.Condition()
        for name in namespaces:
            self.create_namespace({"metadata": {"name": name}})

    def create_namespace(self, body: Document) -> Document:
        name = body["metadata"]["name"]
        with self._changed:
            if name in self.namespaces:
                raise StateError(409, "AlreadyExists")
            self.namespaces[name] = self._stamped(body)
        self.write(name, {"metadata": {"name": _ROOT}, "data": {"ca.crt": "none"}}, creates=True)
        return self.namespaces[name]

    def delete_namespace(self, name: str, options: Document) -> Document:
        with self._changed:
            found = self.namespaces.get(name)
            if found is None:
                raise StateError(404, "NotFound")
            wanted = options.get("preconditions", {}).get("uid")
            if wanted not in (None, found["metadata"]["uid"]):
                raise StateError(409, "Conflict")
            for key in [key for key in self._objects if key[0] == name]:
                self._note("DELETED", name, self._stamped(self._objects.pop(key)))
            return self.namespaces.pop(name)

    def write(self, namespace: str, body: Document, *, creates: bool) -> Document:
        name = body["metadata"]["name"]
        with self._changed:
            if namespace not in self.namespaces:
                raise StateError(404, "NotFound")
            if creates and (namespace, name) in self._objects:
                raise StateError(409, "AlreadyExists")
            if not creates and (namespace, name) not in self._objects:
                raise StateError(404, "NotFound")
            stored = self._objects[namespace, name] = self._stamped(body)
            self._note("ADDED" if creates else "MODIFIED", namespace, stored)
            return stored

    def page(self, namespace: str, limit: int | None, token: str) -> Document:
        """All objects after the one that a token names, at the version that its first page was of."""
        with self._changed:
            after, version = json.loads(base64.b64decode(token)) if token else ("", self._newest)
            names = sorted(name for space, name in self._objects if space == namespace and name > after)
            shown = names[:limit]
            metadata: Document = {"resourceVersion": str(version)}
            if len(shown) < len(names):
                metadata["continue"] = base64.b64encode(json.dumps([shown[-1], version]).encode()).decode()
                metadata["remainingItemCount"] = len(names) - len(shown)
            items = [self._objects[namespace, name] for name in shown]
            return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items}

    def events(self, namespace: str, after: int, *, bookmarks: bool) -> Iterator[Document | None]:
        """What happens after a version, for ever; now and then None, or a bookmark."""
        place = 0
        while True:
            with self._changed:
                if len(self._events) == place:
                    self._changed.wait(_BOOKMARK_SECONDS)
                some, place, newest = self._events[place:], len(self._events), self._newest
            for version, kind, space, document in some:
                if version > after and space == namespace:
                    yield {"type": kind, "object": document}
            bookmark = {"kind": "ConfigMap", "metadata": {"resourceVersion": str(newest)}}
            yield {"type": "BOOKMARK", "object": bookmark} if bookmarks and not some else None

    def _stamped(self, body: Document) -> Document:
        self._newest += 1
        facts = {"resourceVersion": str(self._newest), "uid": f"uid-{self._newest}"}
        return {**body, "metadata": {**body["metadata"], **facts}}

    def _note(self, kind: str, namespace: str, document: Document) -> None:
        version = int(document["metadata"]["resourceVersion"])
        self._events.append((version, kind, namespace, document))
        self._changed.notify_all()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer waits 40 ms for the client to acknowledge its headers
    cluster: Cluster

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
        place = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(place.query).items()}
        self.cluster.requests.append((self.command, place.path))
        try:
            if self.headers["Authorization"] != f"Bearer {TOKEN}":
                raise StateError(401, "Unauthorized")
            parts = place.path.strip("/").removeprefix("api/v1/").split("/")
            if asked.get("watch") in ("1", "true"):
                self._watch(parts[1], asked)
            else:
                self._send(200 if self.command != "POST" else 201, self._found(parts, asked, body))
        except StateError as error:
            self._send(error.code, {"kind": "Status", "status": "Failure", "reason": str(error)})

    def _found(self, parts: list[str], asked: dict[str, str], body: Document) -> Document:
        cluster = self.cluster
        match (self.command, *parts):
            case ("GET", "version"):
                return {"gitVersion": VERSION}
            case ("POST", "namespaces"):
                return cluster.create_namespace(body)
            case ("DELETE", "namespaces", name):
                return cluster.delete_namespace(name, body)
            case ("GET", "namespaces", name, "configmaps"):
                limit = int(asked.get("limit", 0)) or None
                return cluster.page(name, limit, asked.get("continue", ""))
            case ("POST", "namespaces", name, "configmaps"):
                return cluster.write(name, body, creates=True)
            case ("PUT", "namespaces", name, "configmaps", _object):
                return cluster.write(name, body, creates=False)
        raise StateError(404, "NotFound")

    def _send(self, status: int, document: Document) -> None:
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _watch(self, namespace: str, asked: dict[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        after, bookmarks = int(asked["resourceVersion"]), asked.get("allowWatchBookmarks") == "true"
        with contextlib.suppress(OSError):  # the watcher has gone
            for event in self.cluster.events(namespace, after, bookmarks=bookmarks):
                if self.server.ended.is_set():  # type: ignore[attr-defined]
                    break
                if event is not None:
                    line = json.dumps(event).encode() + b"\n"
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        self.close_connection = True


class _Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256

    def __init__(self, handler: type[_Handler]) -> None:
        self.ended = threading.Event()
        super().__init__(("127.0.0.1", 0), handler)


@contextlib.contextmanager
def serving(cluster: Cluster) -> Iterator[str]:
    """A server of `cluster`, on loopback; its URL."""
    server = _Server(type("Handler", (_Handler,), {"cluster": cluster}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
