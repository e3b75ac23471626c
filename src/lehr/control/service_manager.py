"""Reports to the service manager that started this process, with the protocol of systemd (sd_notify)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator, MutableMapping

from lehr.base.clock import Clock
from lehr.control.health import alive
from lehr.control.plane import ControlPlane

_REPORT_SECONDS = 5.0
_START_SECONDS = 0.1
_VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class ServiceManager:
    """The service manager, if there is one; otherwise reports go nowhere.

    Attributes:
        watchdog: seconds within which it expects a report that this process works; None for never.
    """

    def __init__(self, environment: MutableMapping[str, str] | None = None) -> None:
        """Takes its variables out of the environment: they are not for processes that this one starts."""
        known = os.environ if environment is None else environment
        address, microseconds, process = (known.pop(name, "") for name in _VARIABLES)
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        asked = microseconds.isdecimal() and process in ("", str(os.getpid()))
        self.watchdog = int(microseconds) / 1e6 if asked and int(microseconds) else None
        self._stopping = False

    def report(self, **fields: str) -> None:
        """Send fields such as `READY`. A manager that does not listen is not fatal."""
        if not self._address:
            return
        text = "\n".join(f"{name}={' '.join(value.split())}" for name, value in fields.items())
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
            sending.setblocking(False)
            sending.connect(self._address)
            sending.send(text.encode(errors="backslashreplace"))

    def stop(self) -> None:
        """Report that the shutdown begins, once."""
        if not self._stopping:
            self._stopping = True
            self.report(STOPPING="1", STATUS="shutting down; production keeps running")

    @contextlib.contextmanager
    def reloading(self, clock: Clock) -> Iterator[None]:
        """Reports a reload and its end, also if it fails: the last incarnation stays in force."""
        self.report(RELOADING="1", MONOTONIC_USEC=str(int(clock.monotonic() * 1e6)))
        try:
            yield
        finally:
            self.report(READY="1")

    async def follow(self, plane: ControlPlane, clock: Clock) -> None:
        """Report readiness and status, and that the loops make progress, until cancelled.

        A process that stands by is ready as well.
        """
        self.report(STATUS="starting")
        while not plane.started:
            await clock.sleep(_START_SECONDS)
        self.report(READY="1")
        pause = min(_REPORT_SECONDS, self.watchdog / 3 if self.watchdog else _REPORT_SECONDS)
        while True:
            self._report_health(plane)
            await clock.sleep(pause)

    def _report_health(self, plane: ControlPlane) -> None:
        health = alive(plane.vitals())
        fields = {}
        if not self._stopping:
            fields["STATUS"] = _status(plane) if health.ok else health.checks[0].why
        if self.watchdog is not None and health.ok:  # during the shutdown as well: pushes are waited for
            fields["WATCHDOG"] = "1"
        if fields:
            self.report(**fields)


def _status(plane: ControlPlane) -> str:
    if plane.standby:
        return f"standing by: {plane.standby}"
    enforcer = plane.enforcer
    return f"enforcing {plane.partition}; assets: {enforcer.assets}, not settled: {enforcer.unsettled_count}"


@contextlib.asynccontextmanager
async def notified(manager: ServiceManager, plane: ControlPlane, clock: Clock) -> AsyncIterator[None]:
    """Keeps the service manager informed while in this context, and reports the shutdown at its end."""
    following = asyncio.create_task(manager.follow(plane, clock), name="service manager")
    try:
        yield
    finally:
        following.cancel()
        manager.stop()
