"""From a file that is edited by hand until a browser shows it: all of `lehr run --listen`, with real files.

SIZE is the number of files (10,000), measured at a tenth and at all of them. Five are edited each second.
Lehr notices, repairs the file, and the page of pushes, which is open in Chromium, shows the repair. Chromium
must be installed.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import figures, manifests
from benchmarks.commit_to_push import git
from benchmarks.page import browser
from benchmarks.query import Client

CHANGES, PER_SECOND = 200, 5
PATIENCE = 30.0
WATCH = """
window.shown = {};
new MutationObserver(() => {
  for (const link of document.querySelectorAll("main a.id")) window.shown[link.textContent] ??= Date.now();
}).observe(document, { childList: true, subtree: true });
"""
"""Notes when each asset was first shown, in milliseconds since the epoch."""


@contextlib.contextmanager
def running(workspace: Path, state: Path) -> Iterator[str]:
    """`lehr run --listen` in a workspace; its URL."""
    command = [sys.executable, "-m", "lehr", "run", "--listen", "127.0.0.1:0", "--public-read"]
    environment = {**os.environ, "LEHR_STATE": str(state), "NO_COLOR": "1"}
    with subprocess.Popen(
        command, cwd=workspace, env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            found = (re.search(r"http://[\d.:]+", line) for line in process.stderr)
            url = next(match[0] for match in found if match)
            threading.Thread(target=process.stderr.read, daemon=True).start()  # lest the pipe fills up
            yield url
        finally:
            process.terminate()


def wait_for_all(url: str, size: int) -> None:
    """Until every file is as intended."""
    while True:
        with contextlib.closing(Client(url)) as client:
            counts = msgspec.json.decode(client.get("/counts"))
        if sum(item["count"] for item in counts if item["status"] == "Converged") == size:
            return
        time.sleep(1.0)


def edit(workspace: Path, ids: Sequence[str]) -> dict[str, float]:
    """Add a line to the file of each asset, at a steady rate; the time before each, wall-clock seconds."""
    edited, began = {}, time.monotonic()
    for number, id in enumerate(ids):
        time.sleep(max(0.0, began + number / PER_SECOND - time.monotonic()))
        edited[id] = time.time()
        with (workspace / "etc" / id).open("a") as file:
            file.write("edited by hand\n")
    return edited


def shown_after(tab: Any, edited: dict[str, float]) -> list[float]:
    """Seconds until the page showed the repair of each file."""
    deadline = time.monotonic() + PATIENCE
    while True:
        shown = tab.evaluate("window.shown")
        if edited.keys() <= shown.keys():
            return [shown[id] / 1000 - at for id, at in edited.items()]
        if time.monotonic() > deadline:
            raise RuntimeError(f"never shown: {sorted(edited.keys() - shown.keys())[:5]}")
        tab.wait_for_timeout(100)


def pushed_after(url: str, edited: dict[str, float]) -> list[float]:
    """Seconds until the push that repaired each file began."""
    with contextlib.closing(Client(url)) as client:
        newest = {
            id: msgspec.json.decode(client.get(f"/operations?asset={id}&limit=1"))["operations"][0]
            for id in edited
        }
    return [datetime.fromisoformat(newest[id]["started_at"]).timestamp() - at for id, at in edited.items()]


def measure(size: int) -> None:
    """At one size."""
    with tempfile.TemporaryDirectory() as name:
        workspace = Path(name, "intent")
        manifests.write(workspace, size)
        git(workspace, "init", "-q", "-b", "main")
        git(workspace, "add", ".")
        git(workspace, "commit", "-q", "-m", "first")
        with running(workspace, Path(name, "state")) as url, browser() as context:
            began = time.perf_counter()
            wait_for_all(url, size)
            print(f"{size:,} files in {time.perf_counter() - began:.0f} s", file=sys.stderr)
            tab = context.new_page()
            tab.add_init_script(WATCH)
            tab.goto(f"{url}/p/bench/pushes", wait_until="load")
            known = tab.evaluate("window.shown")
            every = (
                f"service{number}/cluster-{place:03}"
                for place in range(manifests.PLACES)
                for number in range(size // manifests.PLACES)
            )
            ids = [id for id, _ in zip((id for id in every if id not in known), range(CHANGES), strict=False)]
            edited: dict[str, float] = {}
            # The browser has the event loop of this thread.
            work = threading.Thread(target=lambda: edited.update(edit(workspace, ids)))
            work.start()
            while work.is_alive():
                tab.wait_for_timeout(100)
            for figure, took in (
                ("edit_to_push", pushed_after(url, edited)),
                ("edit_to_dom", shown_after(tab, edited)),
            ):
                for percent in (50, 99):
                    value = figures.percentile(took, percent) * 1000
                    figures.report(f"{figure}_p{percent}", value, "ms", size, changes=len(took))


def main() -> None:
    """Print the figures."""
    whole = figures.size(10_000)
    for size in sorted({max(10 * manifests.PLACES, whole // 10), whole}):
        measure(size)


if __name__ == "__main__":
    main()
