"""The page in a browser: the first page of all assets, a filter over them, and how fast changes are shown.

SIZE is the number of assets (1,000,000), measured at a hundredth, a tenth and all of them. Chromium must be
installed. Changes come from a commit of another process each; what is shown of one is a changed text on the
page of its asset. 1,000 clients and 7 tabs then follow the feed, with a change a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec
from playwright.sync_api import Page, sync_playwright

from benchmarks import figures
from benchmarks.manifests import PLACES
from benchmarks.query import Client, serving
from benchmarks.store import PARTITION, assets, timed
from benchmarks.why import CONVERGED, FROZEN, decision, filled, waiting
from lehr.model.asset import AssetId
from lehr.store.sqlite import SqliteStore

ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")
CHANGES, PER_SECOND = 200, 5
MOST_FOLLOWED = 100_000
STREAMS, TABS, SECONDS = 1000, 7, 30
TIMES = 5
HERE = f"/p/{quote(PARTITION)}"
NOWHERE = "payload.content.contains('no such text')"
"""True of no asset, and found by no index."""


class _Page(msgspec.Struct):
    cursor: str = ""


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """A context of a Chromium without a window."""
    program = shutil.which("chromium")
    if program is None:
        sys.exit("chromium is not in PATH")
    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield opened.new_context()
        opened.close()


def first_page(url: str, tab: Page, size: int) -> None:
    """The list of assets: how long the server takes, and until a person sees it."""
    connection = Client(url, root="")
    with contextlib.closing(connection):
        content = connection.get(f"{HERE}/assets")
        server = min(timed(connection.get, f"{HERE}/assets") for _ in range(TIMES))
    figures.report("assets_page_server", server * 1000, "ms", size, best_of=TIMES, bytes=len(content))
    ready = []
    for _ in range(TIMES):
        tab.goto(f"{url}{HERE}/assets", wait_until="domcontentloaded")
        found = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
        ready.append(float(tab.evaluate(found)))
    figures.report("assets_page_dom_ready", min(ready), "ms", size, best_of=TIMES)


def filter_over_all(url: str, size: int) -> None:
    """Page by page, by cursor, until its end."""
    with contextlib.closing(Client(url)) as connection:
        began, cursor, pages = time.perf_counter(), "", 0
        asked = f"/assets?fields=type&limit=100&filter={quote(NOWHERE)}"
        while True:
            found = connection.get(asked + (f"&cursor={quote(cursor)}" if cursor else ""))
            cursor, pages = msgspec.json.decode(found, type=_Page).cursor, pages + 1
            if not cursor:
                break
        figures.report("filter_by_cursor", time.perf_counter() - began, "s", size, pages=pages)


def changes_shown(url: str, tab: Page, store: SqliteStore, size: int) -> None:
    """From a commit until the text of the page has changed."""
    id = AssetId(assets(0, 1)[0].id)
    tab.goto(f"{url}{HERE}/assets/{quote(id)}")
    took = []
    for number in range(CHANGES):
        began = time.perf_counter()
        frozen = msgspec.structs.replace(FROZEN, message=f"frozen {number}")
        store.commit([waiting(id, frozen) if number % 2 else decision(id, CONVERGED)])
        shown = f"frozen {number}" if number % 2 else "has converged"
        tab.get_by_role("heading", level=1).filter(has_text=shown).wait_for(timeout=30_000)
        took.append(time.perf_counter() - began)
        time.sleep(max(0.0, 1 / PER_SECOND - took[-1]))
    for percent in (50, 99):
        shown_in = figures.percentile(took, percent) * 1000
        figures.report(f"change_to_dom_p{percent}", shown_in, "ms", size, changes=CHANGES)


async def streams(url: str, store: SqliteStore, process: int, size: int) -> None:
    """What many clients that follow the feed cost the server."""
    place, target = urlsplit(url), f"/v1/partitions/{quote(PARTITION)}/events"
    id = AssetId(assets(0, 1)[0].id)
    before = _memory(process)
    writers, received = [], 0

    async def read(reader: asyncio.StreamReader) -> None:
        nonlocal received
        while line := await reader.readline():
            received += line.startswith(b"data:")

    tasks = []
    for _ in range(STREAMS):
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        writer.write(f"GET {target} HTTP/1.0\r\nHost: {place.netloc}\r\n\r\n".encode())
        writers.append(writer)
        tasks.append(asyncio.create_task(read(reader)))
    await asyncio.sleep(3.0)
    figures.report("memory_per_stream", (_memory(process) - before) / STREAMS, "KiB", size, streams=STREAMS)
    used, began = _cpu_of(process), time.perf_counter()
    for number in range(SECONDS):
        store.commit([decision(id, CONVERGED) if number % 2 else waiting(id, FROZEN)])
        await asyncio.sleep(1.0)
    share = (_cpu_of(process) - used) / (time.perf_counter() - began)
    figures.report("streams_processor", share, "cores", size, streams=STREAMS, tabs=TABS, received=received)
    for task in tasks:
        task.cancel()
    for writer in writers:
        writer.transport.abort()


def server() -> int:
    """The process that serves."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"serve" in (path / "cmdline").read_bytes().split(b"\0"):
                return int(path.name)
    raise RuntimeError("no process serves")


def _memory(process: int) -> float:
    """KiB that a process has resident."""
    status = Path(f"/proc/{process}/status").read_text()
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))


def _cpu_of(process: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def measure(size: int) -> None:
    """Everything at one size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store, _unconverged = filled(folder, size)
        try:
            with serving(folder) as url, browser() as context:
                tab = context.new_page()
                first_page(url, tab, size)
                filter_over_all(url, size)
                if size <= MOST_FOLLOWED:
                    changes_shown(url, tab, store, size)
                    for _ in range(TABS):
                        context.new_page().goto(f"{url}{HERE}")
                    # The browser has the event loop of this thread.
                    work = threading.Thread(target=lambda: asyncio.run(streams(url, store, server(), size)))
                    work.start()
                    work.join()
        finally:
            store.close()


def main() -> None:
    """Print the figures."""
    whole = figures.size(1_000_000)
    for size in sorted({max(PLACES, whole // 100), max(PLACES, whole // 10), whole}):
        measure(size)


if __name__ == "__main__":
    main()
