"""Lists and watches of SIZE ConfigMaps (10,000) of about 600 bytes: against a Kubernetes API server.

The same objects are put into a git repository that `lehr run --listen` follows, and into a namespace of
the API server that `benchmarks.kubernetes` finds in the environment; without one, this is skipped. Both
are then asked over HTTP from this process, on connections that are kept, without compression; both lists are
of the newest state, and of both answers no more is decoded than it takes to count them.

A write is what people do: for Kubernetes one PUT, until it is answered; for Lehr one `git commit`, which is
then found, generated, validated and published before anybody hears of it. Commits that come together may
become one incarnation. One object of each hundred is written, so SIZE / 100 of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode, urlsplit

import msgspec
import yaml

from benchmarks import figures, kubernetes, versus_kustomize
from benchmarks.generate_cold import git
from benchmarks.versus_kustomize import PER_FILE
from lehr.client.http import HttpWatch
from lehr.model.asset import Partition

NAMESPACE = "lehr-versus-kubernetes"
PARTITION = Partition("bench")
PAGE = 500
MOST_TO_A_PAGE = 10_000  # of Lehr
LISTS = 5
WATCHERS = 100

SKIPPED = """SKIPPED: no Kubernetes API server is named. NOTHING WAS MEASURED.
Set KUBERNETES_API=https://HOST:PORT, with KUBERNETES_CA and KUBERNETES_TOKEN (or KUBERNETES_CERT and
KUBERNETES_KEY); or KUBECONFIG, a file whose current context names a cluster that may be written to. The
namespace {namespace} is made there, filled with {size:,} ConfigMaps, and deleted."""


class Heard(NamedTuple):
    """The first object of a file has come to a watcher in a version."""

    file: int
    version: int


class Side(Protocol):
    """One of the two that are compared."""

    def list(self, limit: int | None) -> tuple[int, int]:
        """All objects, `limit` to a page or as many as it gives; how many, and in how many bytes."""
        ...

    def write(self, file: int, version: int) -> None:
        """Give the first object of a file another version."""
        ...

    def watch(self, connected: Callable[[], None]) -> AsyncGenerator[Heard, None]:
        """What changes from now on; `connected` is called once nothing can be missed."""
        ...


def _heard(settings: dict[str, str]) -> Heard:
    _value, _line, file, _item, version = settings["setting0"].split("-")
    return Heard(int(file), int(version))


# --- Kubernetes ----------------------------------------------------------------------------


class _Metadata(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815
    next: str = msgspec.field(default="", name="continue")


class _ConfigMaps(msgspec.Struct):
    metadata: _Metadata
    items: list[msgspec.Raw]


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Kubernetes:
    """A namespace of an API server."""

    def __init__(self, address: kubernetes.Address, api: kubernetes.Api) -> None:
        self._address = address
        self._api = api
        self._path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

    def fill(self, size: int) -> None:
        """Make all objects, one after the other."""
        for file in range(size // PER_FILE):
            for document in config_maps(versus_kustomize.objects(file)):
                self._api.ask("POST", self._path, document)

    def list(self, limit: int | None) -> tuple[int, int]:
        number = size = 0
        asked: dict[str, object] = {} if limit is None else {"limit": limit}
        while True:
            content = self._api.ask("GET", f"{self._path}?{urlencode(asked)}")
            page = msgspec.json.decode(content, type=_ConfigMaps)
            number, size = number + len(page.items), size + len(content)
            if not page.metadata.next:
                return number, size
            asked["continue"] = page.metadata.next

    def write(self, file: int, version: int) -> None:
        document = next(config_maps(versus_kustomize.objects(file, version)))
        self._api.ask("PUT", f"{self._path}/{document['metadata']['name']}", document)

    async def watch(self, connected: Callable[[], None]) -> AsyncGenerator[Heard, None]:
        content = self._api.ask("GET", f"{self._path}?limit=1")
        newest = msgspec.json.decode(content, type=_ConfigMaps).metadata.resourceVersion
        asked = urlencode({"watch": 1, "allowWatchBookmarks": "true", "resourceVersion": newest})
        path = f"{self._path}?{asked}"
        async with contextlib.aclosing(kubernetes.watched(self._address, path, connected)) as lines:
            async for line in lines:
                event = msgspec.json.decode(line, type=_Event)
                if event.type == "ERROR":
                    raise RuntimeError(bytes(event.object).decode())
                if event.type == "MODIFIED":
                    yield _heard(msgspec.json.decode(event.object, type=_ConfigMap).data)


def config_maps(text: str) -> Iterator[dict[str, Any]]:
    """The objects of a file, with the prefix and the label that the generator gives them."""
    for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
        metadata = {"name": f"bench-{document['metadata']['name']}", "labels": {"team": "bench"}}
        yield {**document, "metadata": metadata}


# --- Lehr ----------------------------------------------------------------------------------


class _Assets(msgspec.Struct):
    assets: list[msgspec.Raw]
    cursor: str = ""


class Lehr:
    """A `lehr run` that follows a repository, and answers over HTTP."""

    def __init__(self, repository: Path, url: str) -> None:
        self._repository = repository
        self._url = url
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._root = f"/v1/partitions/{quote(PARTITION)}"

    def newest(self) -> int:
        """The number of the newest incarnation."""
        return int(json.loads(self._get("incarnations/latest"))["sequence"])

    def list(self, limit: int | None) -> tuple[int, int]:
        number = size = 0
        asked: dict[str, object] = {"limit": limit or MOST_TO_A_PAGE}
        while True:
            content = self._get(f"assets?{urlencode(asked)}")
            page = msgspec.json.decode(content, type=_Assets)
            number, size = number + len(page.assets), size + len(content)
            if not page.cursor:
                return number, size
            asked["cursor"] = page.cursor

    def write(self, file: int, version: int) -> None:
        path = versus_kustomize.path(self._repository, file)
        path.write_text(versus_kustomize.objects(file, version))
        git(self._repository, "commit", "-am", f"version {version}")

    async def watch(self, connected: Callable[[], None]) -> AsyncGenerator[Heard, None]:
        # What the newest incarnation has changed comes at once: so one knows that the watch has begun.
        before = self.newest() - 1
        async for batch in HttpWatch(self._url, PARTITION).watch(before):
            if batch.sequence == before + 1:
                connected()
                continue
            for asset in batch.changed:
                yield _heard(asset.document()["payload"]["data"])

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _get(self, path: str) -> bytes:
        self._connection.request("GET", f"{self._root}/{path}")
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != http.client.OK:
            raise RuntimeError(content.decode())
        return content


@contextlib.contextmanager
def running(folder: Path, size: int) -> Iterator[Lehr]:
    """`lehr run` over a repository of `size` objects, once they are published; then one of them changes."""
    repository, state = folder / "intent", folder / "state"
    versus_kustomize.write(repository, size)
    options = ["--state", str(state), "--listen", "127.0.0.1:0", "--public-read"]
    command = [sys.executable, "-m", "lehr", "run", str(repository), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if " serving at " in line:
                    break
            else:
                raise RuntimeError(f"lehr run has ended: {''.join(said)}")
            # What it says later must not fill the pipe, or it would stand still.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            ours = Lehr(repository, said[-1].partition(" serving at ")[2].split()[0])
            ours.write(0, 2)
            while ours.newest() < 2:
                time.sleep(0.05)
            yield ours
            ours.close()
        finally:
            process.terminate()


# --- what is measured ----------------------------------------------------------------------


class Measured(NamedTuple):
    """Of one side: seconds for each figure, and the bytes of a list."""

    seconds: dict[str, float]
    size: int


def measure(side: Side, size: int) -> Measured:
    """Everything, of one side."""
    files = size // PER_FILE
    everything, content = listed(side, None, size)
    pages, _content = listed(side, PAGE, size)
    late = asyncio.run(write_to_watch(side, files))
    seconds = {
        "list_all": everything,
        f"list_in_pages_of_{PAGE}": pages,
        "write_to_watch_p50": figures.percentile(late, 50),
        "write_to_watch_p99": figures.percentile(late, 99),
        "all_watchers_have_all": asyncio.run(all_have_all(side, files)),
    }
    return Measured(seconds, content)


def listed(side: Side, limit: int | None, size: int) -> tuple[float, int]:
    """Seconds of the fastest list, and its bytes."""
    seconds = []
    for _ in range(LISTS):
        began = time.perf_counter()
        number, content = side.list(limit)
        seconds.append(time.perf_counter() - began)
        assert number >= size, f"{number} of {size} objects are listed"
    return min(seconds), content


async def write_to_watch(side: Side, files: int) -> list[float]:
    """Seconds from the beginning of each write, one to each file, until a watcher has heard of it."""
    heard: asyncio.Queue[tuple[Heard, float]] = asyncio.Queue()
    connected = asyncio.Event()

    async def listen() -> None:
        async with contextlib.aclosing(side.watch(connected.set)) as changes:
            async for item in changes:
                heard.put_nowait((item, time.perf_counter()))

    seconds = []
    async with asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen())
        await connected.wait()
        for file in range(files):
            wanted = Heard(file, 3)
            began = time.perf_counter()
            await asyncio.to_thread(side.write, *wanted)
            found, at = await heard.get()
            assert found == wanted, f"{found} was heard, and not {wanted}"
            seconds.append(at - began)
        listening.cancel()
    return seconds


async def all_have_all(side: Side, files: int) -> float:
    """Seconds from the first write, one to each file, until each watcher has heard of all."""
    written = [Heard(file, 4) for file in range(files)]
    waiting = WATCHERS
    connected = asyncio.Event()

    def one_is_connected() -> None:
        nonlocal waiting
        waiting -= 1
        if waiting == 0:
            connected.set()

    async def watch() -> None:
        missing = set(written)
        async with contextlib.aclosing(side.watch(one_is_connected)) as changes:
            async for item in changes:
                missing.discard(item)
                if not missing:
                    return

    async with asyncio.TaskGroup() as tasks:
        for _ in range(WATCHERS):
            tasks.create_task(watch())
        await connected.wait()
        began = time.perf_counter()
        for item in written:
            await asyncio.to_thread(side.write, *item)
    return time.perf_counter() - began


def main() -> None:
    """Print the figures."""
    size = figures.size(10_000)
    address = kubernetes.address_from(os.environ)
    if address is None:
        sys.exit(SKIPPED.format(namespace=NAMESPACE, size=size))
    api = kubernetes.Api(address)
    # Whoever answers there says what it is: these are figures of that, whatever it be.
    name = f"API server {api.version()}"
    with kubernetes.own_namespace(api, NAMESPACE):
        other = Kubernetes(address, api)
        other.fill(size)
        theirs = measure(other, size)
    api.close()
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), size) as lehr:
        ours = measure(lehr, size)
    facts = {"list_bytes": ours.size, "peer_list_bytes": theirs.size}
    facts |= {"watchers": WATCHERS, "writes": size // PER_FILE}
    for figure, seconds in ours.seconds.items():
        peer = figures.Peer(name, theirs.seconds[figure] * 1000)
        figures.report(figure, seconds * 1000, "ms", size, peer=peer, **facts)


if __name__ == "__main__":
    main()
