"""A server of the store that hangs delays what needs it, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.store_hangs import hung
from tests.postgres import PostgresServer


@pytest.mark.timeout(120)
def test_drift_is_noticed_while_the_server_hangs_and_healed_afterwards(
    server: PostgresServer, tmp_path: Path
) -> None:
    seconds = 8.0
    hang = asyncio.run(hung(server, tmp_path, seconds))
    assert hang.seen < seconds, "noticed while the server hung"
    assert hang.ticks > 100, "the event loop went on all the while"
