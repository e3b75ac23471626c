"""Counts requests by cluster, for rollouts: a Prometheus that asks the replicas, or else the audience."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from lehr.demo.shakespeare.audience import Audience

SOURCE = "requests"
"""Name of the source that has the counters."""

_STOP_SECONDS = 10.0


class CounterSource:
    """Where `lehr run --metrics` asks for the counters of the clusters.

    Args:
        port: one that is free.
        folder: for its files.

    Attributes:
        prometheus: path of the program; None if this machine has none.
        file: the file of `lehr run --metrics`.
    """

    def __init__(self, port: int, folder: Path) -> None:
        self.prometheus = os.environ.get("PROMETHEUS") or shutil.which("prometheus")
        self.file = folder / "metrics.yaml"
        self._port = port
        self._folder = folder
        self._process: asyncio.subprocess.Process | None = None
        self._server: asyncio.Server | None = None

    def write_file(self) -> None:
        """Write the file of `lehr run --metrics`."""
        kind = "http" if self.prometheus is None else "prometheus"
        self.file.write_text(
            f"sources:\n  {SOURCE}: {{type: {kind}, address: http://127.0.0.1:{self._port}}}\n"
        )

    def counters(self) -> dict[str, object]:
        """Queries for the counters of a unit, as a rollout policy has them."""
        if self.prometheus is None:
            return {name: {"query": "/${unit}", "value": f"/{name}"} for name in ("requests", "errors")}
        return {
            name: f'sum by (instance) (frontend_{name}_total{{place="${{unit}}"}})'
            for name in ("requests", "errors")
        }

    async def start(self, audience: Audience, replicas: Mapping[str, Iterable[int]]) -> None:
        """Start to count, unless it has been started.

        Args:
            replicas: ports by cluster.
        """
        if self._process is not None or self._server is not None:
            return
        if self.prometheus is None:
            self._server = await asyncio.start_server(_Answers(audience).serve, "127.0.0.1", self._port)
            return
        scrapes = [
            {
                "targets": [f"127.0.0.1:{port}" for port in ports],
                "labels": {"place": place},
            }
            for place, ports in replicas.items()
        ]
        settings = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "frontend", "static_configs": scrapes}],
        }
        file = self._folder / "prometheus.yml"
        file.write_text(json.dumps(settings))  # which is YAML as well
        with (self._folder / "prometheus.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                self.prometheus,
                f"--config.file={file}",
                f"--storage.tsdb.path={self._folder / 'prometheus'}",
                f"--web.listen-address=127.0.0.1:{self._port}",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def close(self) -> None:
        """End what was started."""
        if self._server is not None:
            self._server.close()
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()


class _Answers:
    """`GET /CLUSTER` is answered with the counts of the audience, as JSON."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            requests, errors = self._audience.counts(head.split(" ")[1].removeprefix("/"))
            body = json.dumps({"requests": requests, "errors": errors})
            about = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close"
            writer.write(f"HTTP/1.1 200 OK\r\n{about}\r\n\r\n{body}".encode())
            await writer.drain()
        writer.close()
