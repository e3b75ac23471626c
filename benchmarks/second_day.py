"""What an operator notices on the second day: an idle `lehr run`, a new nginx site, a line of a log.

SIZE is the number of files that the idle one keeps (1,000). Everything is real: the program, git, nginx.
A new site is timed from the start of `git commit` until nginx answers with it. Peers are the targets.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import figures
from tests.e2e.bad_input.workspace import LEHR, Workspace
from tests.e2e.web_host import web_host

IDLE_SECONDS = 60.0
SITES = 50
PAUSE_SECONDS = 1.0
"""Between two sites, so that the rate limit of the example holds none of them."""

OTHER_SITES = 18
RESTARTS = 5
ROUNDS = 3
"""New and retired sites between two restarts; each of both reloads nginx."""

LINES = 100
CLOCK = "import time\nwhile True:\n    print(time.time(), flush=True)\n    time.sleep(0.1)"


def session(pid: int) -> list[int]:
    """The processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        if int(fields[3]) == pid:
            found.append(int(stat.parent.name))
    return found


def proportional(pid: int) -> float:
    """The share of memory that counts as this process's own (PSS), in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def idle(size: int) -> None:
    """Processor and memory of `lehr run` when nothing happens."""
    with tempfile.TemporaryDirectory() as name:
        workspace = Workspace(Path(name))
        for number in range(size):
            workspace.declare_file(f"file-{number}", "x" * 600)
        workspace.commit()
        with workspace.run(prefix=("setsid",)) as running:
            workspace.wait()
            time.sleep(10)  # what follows a start is over by then
            before = figures.cpu_seconds(running.pid) - figures.cpu_seconds()
            began = time.perf_counter()
            time.sleep(IDLE_SECONDS)
            used = figures.cpu_seconds(running.pid) - figures.cpu_seconds() - before
            share = used / (time.perf_counter() - began) * 100
            processes = session(running.pid)
            memory = sum(map(proportional, processes))
    figures.report("idle_processor", share, "%", size, peer=figures.Peer("asked for", 1))
    asked = figures.Peer("asked for", 110)
    figures.report("idle_memory", memory, "MiB", size, peer=asked, processes=len(processes))


def new_sites() -> None:
    """From a commit to the first good answer of nginx, for one new site after the other."""
    took = []
    with web_host() as host:
        host.commit()
        with host.run():
            host.wait()
            for number in range(SITES):
                name, title = f"new-{number}", f"Site {number}"
                host.site(name, title)
                began = time.perf_counter()
                host.commit()
                while host.ask(name) != (200, f"<h1>{title}</h1>"):
                    assert time.perf_counter() - began < 20, f"{name} is not served"
                    time.sleep(0.005)
                took.append(time.perf_counter() - began)
                time.sleep(PAUSE_SECONDS)
    for percent in (50, 99):
        asked = figures.Peer("asked for as p99", 1.0)
        figures.report(f"new_site_p{percent}", figures.percentile(took, percent), "s", SITES, peer=asked)


def lost_requests() -> None:
    """Requests that nginx loses during thirty reloads and five restarts of the control plane."""
    with web_host() as host:
        load = host.changed_under_load(sites=OTHER_SITES, restarts=RESTARTS, rounds=ROUNDS)
    assert load.answers == {"<h1>The shop</h1>\n"}
    figures.report(
        "lost_requests",
        len(load.lost),
        "requests",
        load.asked,
        peer=figures.Peer("asked for", 0),
        reloads=RESTARTS * ROUNDS * 2,
        restarts=RESTARTS,
    )


def followed() -> None:
    """From a line that a program writes to the line that `lehr logs -f` shows."""
    with tempfile.TemporaryDirectory() as name:
        workspace = Workspace(Path(name))
        workspace.declare("clock", "lehr.Process", {"command": [sys.executable, "-c", CLOCK]})
        workspace.commit()
        with workspace.run():
            workspace.wait()
            command = [*LEHR, "logs", "clock", "-f"]
            with subprocess.Popen(
                command, cwd=name, env=workspace.environment, stdout=subprocess.PIPE, text=True
            ) as shown:
                assert shown.stdout is not None
                began = time.time()
                lines = (line for line in shown.stdout if float(line.split()[-1]) > began + 2)
                took = [
                    (time.time() - float(line.split()[-1])) * 1000 for line in itertools.islice(lines, LINES)
                ]
                shown.terminate()
        workspace.lehr("stop", "--processes")
    asked = figures.Peer("asked for", 300)
    figures.report("followed_line_p99", figures.percentile(took, 99), "ms", LINES, peer=asked)


def main() -> None:
    """Print the figures."""
    followed()
    new_sites()
    lost_requests()
    idle(figures.size(1000))


if __name__ == "__main__":
    main()
