"""A server in a process of its own, so that what it takes of memory and processor can be looked at.

python -m tests.integration.http.server_process STATE LIMITS    LIMITS in JSON; prints its address
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import resource
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import structlog

from lehr.base.clock import SystemClock
from lehr.http.hooks import Hook
from lehr.http.limits import Limits
from lehr.http.server import Address, serving
from lehr.store.sqlite import SqliteStore
from tests.integration.http.served import INSTALLATION, Answer, parsed

ROOT = Path(__file__).resolve().parents[3]
SECRET = "open sesame"


class Process:
    """The server, from outside."""

    def __init__(self, pid: int, host: str, port: int) -> None:
        self.pid = pid
        self.host = host
        self.port = port

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def most_memory(self) -> int:
        """Bytes that it ever had."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    @property
    def processor(self) -> float:
        """Seconds of processor that it has taken."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)

    async def say(self, request: bytes) -> Answer:
        """Send bytes, and read until the server closes, whatever it has not taken of them."""
        reader, writer = await self.connect()
        with contextlib.suppress(ConnectionError):
            writer.write(request)
            await writer.drain()
        content = bytearray()
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(65_536):
                content += part
        writer.transport.abort()
        return parsed(bytes(content))

    async def get(self, target: str) -> Answer:
        return await self.say(
            f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )


@contextlib.asynccontextmanager
async def server_process(state: Path, **limits: Any) -> AsyncIterator[Process]:
    """The server over the store in `state`, while in this context."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __name__,
        str(state),
        msgspec.json.encode(limits).decode(),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        host, port = (await process.stdout.readline()).decode().split()
        yield Process(process.pid, host, int(port))
    finally:
        process.terminate()
        await process.wait()


async def _main(state: Path, limits: Limits) -> None:
    async def no_look() -> None:
        pass

    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # nobody reads the output
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    clock = SystemClock()
    async with serving(
        Address("127.0.0.1", 0),
        lambda: SqliteStore(state, read_only=True),
        INSTALLATION,
        clock,
        limits,
        hook=Hook(lambda: SECRET, no_look, clock),
    ) as running:
        sys.stdout.write(f"{running.address.host} {running.address.port}\n")
        sys.stdout.flush()
        await ended.wait()


def more_files(wanted: int) -> int:
    """How many files this process may have open now, at most `wanted`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=Limits)))
