"""`lehr run --listen` under hostile clients: how long `/healthz` takes, and how long drift stays.

SIZE is the number of clients (16), in processes of their own, each on a connection of its own. For twenty
seconds each asks, again and again, for a page with a filter of 1.7 kB whose macros look at as many items as
one answer may. Meanwhile this process asks for `/healthz` five times a second, and damages one file after
the other, and waits until Lehr has put it right. What clients get is counted. Worst and median are reported,
in seconds, and both figures without clients as the peer. 300 assets `lehr.File`, SQLite, a plain directory.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks import figures

SECONDS = 20.0
MOST_SECONDS = 60.0
QUIET_SECONDS = 5.0
FILES = 300
LOOP = "[1,2,3,4,5,6,7,8,9,10].all(V, "
NUMBER_OF_LOOPS = 5
BODY = " && ".join(f"payload.content != 'nobody wrote this {number:03}'" for number in range(31))
FILTER = "".join(LOOP.replace("V", f"v{n}") for n in range(NUMBER_OF_LOOPS)) + BODY + ")" * NUMBER_OF_LOOPS

CLIENT = """
import http.client, sys, time
host, target, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
ends, pages = time.monotonic() + seconds, 0
while time.monotonic() < ends:
    connection = http.client.HTTPConnection(host, timeout=max(0.1, ends - time.monotonic()))
    try:
        connection.request("GET", target)
        pages += connection.getresponse().status == 200
    except OSError:
        pass
    finally:
        connection.close()
print(pages)
"""


def workspace(folder: Path) -> Path:
    """Files as intent; where they are made."""
    (folder / "assets").mkdir(parents=True)
    (folder / "lehr.yaml").write_text("partition: bench\n")
    declared = "".join(
        f"- {{id: f{number}, type: lehr.File, payload: {{path: out/{number}, content: hello}}}}\n"
        for number in range(FILES)
    )
    (folder / "assets/files.yaml").write_text(declared)
    return folder / "out"


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """`lehr run --listen`; yields host and port."""
    log = folder.parent / "log"
    command = [sys.executable, "-m", "lehr", "run", "--listen", "127.0.0.1:0", "--public-read"]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=folder, stderr=output, stdout=output)
    try:
        while "production is as intended" not in (said := log.read_text()):
            assert process.poll() is None, said
            time.sleep(0.1)
        found = re.search(r"serving at (http://\S+)", said)
        assert found is not None, said
        yield urlsplit(found[1]).netloc
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def asked_for_health(host: str, ends: float, took: list[float]) -> None:
    """Ask five times a second."""
    while time.monotonic() < ends:
        began = time.monotonic()
        connection = http.client.HTTPConnection(host, timeout=MOST_SECONDS)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse().read()
        except TimeoutError:
            pass  # which counts as so long
        finally:
            connection.close()
        took.append(time.monotonic() - began)
        time.sleep(0.2)


def healed(files: Iterator[Path], ends: float) -> list[float]:
    """Seconds from each damage to its repair. Each file is damaged once: nobody contests it."""
    took = []
    while time.monotonic() < ends:
        file = next(files)
        began = time.monotonic()
        file.write_text("damaged")
        while file.read_text() != "hello" and time.monotonic() < ends + MOST_SECONDS:
            time.sleep(0.005)
        took.append(time.monotonic() - began)
        time.sleep(0.5)
    return took


def measure(host: str, files: Iterator[Path], seconds: float) -> tuple[list[float], list[float]]:
    """Latencies of `/healthz`, and of repairs."""
    ends = time.monotonic() + seconds
    health: list[float] = []
    asking = threading.Thread(target=asked_for_health, args=(host, ends, health))
    asking.start()
    repairs = healed(files, ends)
    asking.join()
    return health, repairs


def main() -> None:
    clients = figures.size(16)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "bench"
        made_in = workspace(folder)
        files = (made_in / str(number) for number in range(FILES))
        os.environ["LEHR_STATE"] = str(Path(made) / "state")
        with running(folder) as host:
            quiet = measure(host, files, QUIET_SECONDS)
            target = f"/v1/partitions/bench/assets?filter={quote(FILTER, safe='')}"
            command = [sys.executable, "-c", CLIENT, host, target, str(SECONDS)]
            hostile = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(clients)]
            time.sleep(1.0)
            loaded = measure(host, files, SECONDS - 2.0)
            pages = [int(process.communicate()[0]) for process in hostile]
    for name, before, after in zip(("healthz", "drift to push"), quiet, loaded, strict=True):
        for word, percent in (("worst", 100), ("median", 50)):
            peer = figures.Peer("without clients", figures.percentile(before, percent))
            value = figures.percentile(after, percent)
            figures.report(f"{name} under hostile clients, {word}", value, "s", clients, peer=peer)
    figures.report("pages answered to hostile clients", sum(pages), "pages", clients)


if __name__ == "__main__":
    main()
