"""A Kubernetes API server, as far as benches need one: ConfigMaps in a namespace of their own.

Where it is comes from the environment, and from nowhere else: nothing is done to a cluster that
somebody happens to have chosen for their own work.

| variable | what |
|---|---|
| KUBERNETES_API | its URL, such as https://127.0.0.1:6443 |
| KUBERNETES_CA | file with the certificate that its own is signed with |
| KUBERNETES_TOKEN | a token of who may make namespaces and ConfigMaps; or |
| KUBERNETES_CERT, KUBERNETES_KEY | files with a client's certificate and its key |
| KUBECONFIG | instead of all these: a file whose current context says it, as kubectl reads it |
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import json
import ssl
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import h11
import msgspec

_READ = 65_536
_TIMEOUT = 60.0
_CONFLICT = 409


class RefusedError(Exception):
    """The server does not do what was asked."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Address(NamedTuple):
    """Where an API server is, and as whom it is asked."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    token: str

    def headers(self) -> dict[str, str]:
        """What every request has."""
        given = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"Accept": "application/json", "Content-Type": "application/json", **given}


def address_from(environment: Mapping[str, str]) -> Address | None:
    """What the environment says; None if it says nothing.

    Raises:
        SystemExit: it says what cannot be used.
    """
    if "KUBERNETES_API" in environment:
        return _address(
            environment["KUBERNETES_API"],
            ca=environment.get("KUBERNETES_CA", ""),
            cert=environment.get("KUBERNETES_CERT", ""),
            key=environment.get("KUBERNETES_KEY", ""),
            token=environment.get("KUBERNETES_TOKEN", ""),
        )
    if "KUBECONFIG" in environment:
        command = ["kubectl", "config", "view", "--raw", "--minify", "--flatten", "-o", "json"]
        shown = subprocess.run(command, check=True, capture_output=True, env=dict(environment)).stdout
        return _from_kubeconfig(json.loads(shown))
    return None


def _from_kubeconfig(config: dict[str, Any]) -> Address:
    """The address of a configuration with one context, whose files kubectl has put into it."""
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    if "exec" in user or "auth-provider" in user:
        raise SystemExit("KUBECONFIG has a program log in: set KUBERNETES_API and KUBERNETES_TOKEN instead")
    with tempfile.TemporaryDirectory() as folder:  # ssl reads a client's certificate from files only

        def file(name: str, content: str | None) -> str:
            path = Path(folder) / name
            path.write_bytes(base64.b64decode(content or ""))
            return str(path) if content else ""

        return _address(
            cluster["server"],
            ca=file("ca", cluster.get("certificate-authority-data")),
            cert=file("cert", user.get("client-certificate-data")),
            key=file("key", user.get("client-key-data")),
            token=user.get("token", ""),
        )


def _address(url: str, *, ca: str, cert: str, key: str, token: str) -> Address:
    place = urlsplit(url)
    if place.scheme not in ("http", "https") or not place.hostname:
        raise SystemExit(f"{url!r} is no URL of an API server: write https://127.0.0.1:6443")
    if place.scheme == "http":
        return Address(place.hostname, place.port or 80, None, token)
    tls = ssl.create_default_context(cafile=ca or None)
    if cert:
        tls.load_cert_chain(cert, key or None)
    return Address(place.hostname, place.port or 443, tls, token)


class Api:
    """One connection, kept, for one request at a time."""

    def __init__(self, address: Address) -> None:
        self._headers = address.headers()
        place = (address.host, address.port)
        self._connection = (
            http.client.HTTPConnection(*place, timeout=_TIMEOUT)
            if address.tls is None
            else http.client.HTTPSConnection(*place, timeout=_TIMEOUT, context=address.tls)
        )

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        """What the server answers.

        Raises:
            RefusedError: that is an error.
        """
        content = None if body is None else msgspec.json.encode(body)
        self._connection.request(method, path, content, self._headers)
        answer = self._connection.getresponse()
        found = answer.read()
        if answer.status >= 400:
            raise RefusedError(answer.status, found.decode(errors="replace")[:500])
        return found

    def version(self) -> str:
        """What the server says it is."""
        return str(json.loads(self.ask("GET", "/version"))["gitVersion"])

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


@contextlib.contextmanager
def own_namespace(api: Api, name: str) -> Iterator[None]:
    """A namespace that is made now, and deleted at the end with all that is in it.

    The server ends what is in it in its own time, after this has returned.

    Raises:
        SystemExit: there is one of that name. It may be somebody's, so it is not touched.
    """
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    try:
        made = json.loads(api.ask("POST", "/api/v1/namespaces", body))
    except RefusedError as error:
        if error.status != _CONFLICT:
            raise
        raise SystemExit(
            f"REFUSED: there is a namespace {name} already, which this run has not made, so it leaves it"
            f" alone. If it is of a run before: kubectl delete namespace {name}"
        ) from error
    try:
        yield
    finally:
        only = {"uid": made["metadata"]["uid"]}  # and not another that has come to have this name
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only}
        api.ask("DELETE", f"/api/v1/namespaces/{name}", options)


async def watched(address: Address, path: str, connected: Callable[[], None]) -> AsyncGenerator[bytes, None]:
    """The lines of a watch, each a `WatchEvent`, on a connection of its own.

    Args:
        connected: called when the server has begun to answer.

    Raises:
        RefusedError: the server does not let it be watched.
        EOFError: it has ended the watch.
    """
    reader, writer = await asyncio.open_connection(address.host, address.port, ssl=address.tls)
    try:
        state = h11.Connection(h11.CLIENT)
        headers = [("Host", f"{address.host}:{address.port}"), *address.headers().items()]
        writer.write(state.send(h11.Request(method="GET", target=path, headers=headers)) or b"")
        writer.write(state.send(h11.EndOfMessage()) or b"")
        rest = b""
        while True:
            event = state.next_event()
            if event is h11.NEED_DATA:
                state.receive_data(await reader.read(_READ))
            elif isinstance(event, h11.Response):
                if event.status_code != 200:
                    raise RefusedError(event.status_code, f"the watch of {path}")
                connected()
            elif isinstance(event, h11.Data):
                *lines, rest = (rest + bytes(event.data)).split(b"\n")
                for line in lines:
                    yield line
            else:
                raise EOFError(f"the watch of {path} has ended")
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
