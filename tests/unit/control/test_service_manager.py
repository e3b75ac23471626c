"""Reports to the service manager: readiness, status, and a watchdog that is fed only while the loops work."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lehr.base.clock import SystemClock
from lehr.control.health import STALLED_SECONDS, Vitals
from lehr.control.service_manager import ServiceManager, notified


@contextlib.contextmanager
def listening(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(address)
        found.settimeout(20.0)
        yield found


def environment(address: str, seconds: float = 0.3) -> dict[str, str]:
    found = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": str(int(seconds * 1e6)), "PATH": "/bin"}
    return found | {"WATCHDOG_PID": str(os.getpid())}


def plane(**vitals: Any) -> Any:
    """A control plane as far as it is asked here."""
    enforcer = SimpleNamespace(assets=3, unsettled_count=1)
    return SimpleNamespace(
        started=True, standby="", partition="shop", enforcer=enforcer, vitals=lambda: Vitals(**vitals)
    )


async def reports(manager: ServiceManager, watched: Any, listener: socket.socket, count: int) -> list[str]:
    """The first reports, and the last one."""
    async with notified(manager, watched, SystemClock()):
        found = [(await asyncio.to_thread(listener.recv, 4096)).decode() for _ in range(count)]
    return [*found, *unread(listener)]


def unread(listener: socket.socket) -> list[str]:
    """Reports that were sent and not read yet."""
    listener.setblocking(False)
    found: list[str] = []
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(listener.recv(4096).decode())
    return found


def test_the_variables_are_not_left_for_other_processes() -> None:
    known = environment("/run/notify")
    manager = ServiceManager(known)
    assert known == {"PATH": "/bin"}
    assert manager.watchdog == pytest.approx(0.3)


def test_the_watchdog_of_another_process_is_not_ours() -> None:
    assert ServiceManager({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}).watchdog is None
    assert ServiceManager({"WATCHDOG_USEC": "soon"}).watchdog is None
    assert ServiceManager({}).watchdog is None


def test_without_a_service_manager_reports_go_nowhere(tmp_path: Path) -> None:
    ServiceManager({}).report(READY="1")
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).report(READY="1")


def test_ready_is_reported_once_and_the_watchdog_again_and_again(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as listener:
        manager = ServiceManager(environment(address))
        first, second, *rest = asyncio.run(reports(manager, plane(), listener, 5))
    assert (first, second) == ("STATUS=starting", "READY=1")
    assert rest[:3] == ["STATUS=enforcing shop; assets: 3, not settled: 1\nWATCHDOG=1"] * 3
    assert rest[-1].startswith("STOPPING=1\n")


def test_a_name_of_the_abstract_namespace_is_understood() -> None:
    name = f"lehr-test-notify-{os.getpid()}"
    with listening(f"\0{name}") as listener:
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).report(STATUS="two\nlines")
        assert listener.recv(4096) == b"STATUS=two lines"


@pytest.mark.parametrize(
    "vitals",
    [
        {"defect": "ValueError: broken"},
        {"overdue": STALLED_SECONDS + 1},
        {"queued": 1, "since_turn": STALLED_SECONDS + 1},
    ],
)
def test_a_loop_that_makes_no_progress_does_not_feed_the_watchdog(tmp_path: Path, vitals: Any) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as listener:
        found = asyncio.run(reports(ServiceManager(environment(address)), plane(**vitals), listener, 4))
    assert not any("WATCHDOG" in report for report in found)
    assert found[2].startswith("STATUS=")


def test_a_store_that_hangs_still_feeds_the_watchdog_because_no_restart_helps(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as listener:
        found = asyncio.run(
            reports(ServiceManager(environment(address)), plane(since_commit=1e6), listener, 3)
        )
    assert "WATCHDOG=1" in found[2]


def test_a_shutdown_is_reported_once_and_the_watchdog_is_fed_until_it_ends(tmp_path: Path) -> None:
    async def shut_down(manager: ServiceManager) -> None:
        async with notified(manager, plane(), SystemClock()):
            while await received() != "READY=1":
                pass
            manager.stop()
            while await received() != "WATCHDOG=1":
                pass

    async def received() -> str:
        found.append((await asyncio.to_thread(listener.recv, 4096)).decode())
        return found[-1]

    found: list[str] = []
    address = str(tmp_path / "notify")
    with listening(address) as listener:
        asyncio.run(shut_down(ServiceManager(environment(address))))
        found += unread(listener)
    assert sum("STOPPING=1" in report for report in found) == 1


def test_a_process_that_has_not_started_is_not_ready(tmp_path: Path) -> None:
    async def start() -> None:
        watched = plane()
        watched.started = False
        manager = ServiceManager(environment(address))
        async with notified(manager, watched, SystemClock()):
            assert await asyncio.to_thread(listener.recv, 4096) == b"STATUS=starting"
            await asyncio.sleep(0.3)
            listener.setblocking(False)
            with pytest.raises(BlockingIOError):
                listener.recv(4096)
            listener.settimeout(20.0)
            watched.started = True
            assert await asyncio.to_thread(listener.recv, 4096) == b"READY=1"

    address = str(tmp_path / "notify")
    with listening(address) as listener:
        asyncio.run(start())


def test_a_reload_that_fails_still_ends(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as listener:
        manager = ServiceManager(environment(address))
        with pytest.raises(LookupError), manager.reloading(SystemClock()):
            raise LookupError
        assert listener.recv(4096).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert listener.recv(4096) == b"READY=1"
