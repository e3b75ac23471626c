"""Two tiers of tests: those that `make test` runs, and the slow rest, which `make test-rest` runs.

A test is slow if its id begins with a line of `tests/slow.txt`; so each is in exactly one tier. No test
touches what belongs to whoever runs the tests: all state goes to a folder of the run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import hypothesis
import pytest

from lehr.base import log

TESTS = Path(__file__).parent
ROOT = TESTS.parent

# Tests start some thousand processes. Each would compile all that it imports: half of what the tests cost.
# So compiled code is kept, also where the environment turns that off, as images for containers do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A test that takes long says something about the machine.
hypothesis.settings.register_profile("lehr", deadline=None)
hypothesis.settings.load_profile("lehr")

_SLOW_SECONDS = 300
"""After which a slow test has hung, on however busy a machine."""

_STATES = pytest.StashKey[tuple[Path, list[str], Path]]()


def slow() -> tuple[str, ...]:
    """Beginnings of the ids of slow tests: a folder, a file, a test, or one case of it."""
    lines = (line.strip() for line in (TESTS / "slow.txt").read_text().splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--shard K/N` keeps about one in N planted bugs: which ones depends on their names alone."""
    parser.addoption("--shard", type=_shard, default=(1, 1), metavar="K/N", help="plant the K-th part of N")


def _shard(text: str) -> tuple[int, int]:
    number, _slash, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shard such as 1/6")
    return int(number), int(parts)


def _in_shard(item: pytest.Item, number: int, parts: int) -> bool:
    return item.get_closest_marker("planted") is None or zlib.crc32(item.name.encode()) % parts == number - 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, parts = config.getoption("shard")
    if parts > 1:
        left_out = [item for item in items if not _in_shard(item, number, parts)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if _in_shard(item, number, parts)]
    beginnings = slow()
    for item in items:
        if item.nodeid.startswith(beginnings):
            item.add_marker(pytest.mark.slow)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_SLOW_SECONDS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for processes, and would leave a core idle."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def _free_claims() -> None:
    """A free port is given to many tests in turn: the claims of one are not in another's way."""
    for file in Path(os.environ["XDG_STATE_HOME"], "lehr").glob("claims-*"):
        file.unlink(missing_ok=True)


class _Process(subprocess.Popen[Any]):
    """A process that a test runs. If the test fails or takes too long, nothing waits for it."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, traceback)


@pytest.fixture(autouse=True)
def _killed_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", _Process)


@pytest.fixture
def default_signals() -> Iterator[None]:
    """SIGHUP and SIGINT do what they do at a terminal, also under nohup and in the background of a script."""
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGINT)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_configure(config: pytest.Config) -> None:
    """Have all state go to a folder of this run. States of tests do not meet: each has its own workspace."""
    os.environ.pop("STATE_DIRECTORY", None)
    os.environ.pop("LEHR_STATE", None)
    real = Path("/var/lib/lehr") if os.geteuid() == 0 else Path("~/.local/state/lehr").expanduser()
    home = Path(tempfile.mkdtemp(prefix="lehr-tests-"))
    os.environ["XDG_STATE_HOME"] = str(home)
    config.stash[_STATES] = (real, _listed(real), home)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test that forgot it is found at the end, and not by the one whose home it is."""
    real, before, home = session.config.stash[_STATES]
    shutil.rmtree(home, ignore_errors=True)
    new = sorted({*_listed(real)} - {*before})
    if new:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        sys.stderr.write(f"\ntests made state outside of their own folder: {real}: {', '.join(new)}\n")


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


@pytest.fixture(autouse=True)
def _logging_ends_with_its_test() -> Iterator[None]:
    """A command that runs within a test configures the log of the whole process."""
    yield
    log.configure_later(lambda: None)
    if (structlog := sys.modules.get("structlog")) is not None and structlog.is_configured():
        structlog.reset_defaults()
