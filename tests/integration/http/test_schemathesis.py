"""schemathesis makes requests out of the OpenAPI document, good and bad, and finds nothing.

It is a process of its own: its plugin for pytest slows down whoever never asks for it.
`SCHEMATHESIS_EXAMPLES=200 pytest tests/integration/http/test_schemathesis.py` asks more than usual.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from lehr.base.clock import SystemClock
from lehr.http.hooks import Hook
from lehr.testing.conformance.store.subject import asset
from tests.integration.http.served import served

EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "3"))
SETTINGS = Path(__file__).with_name("schemathesis.toml")
ENDLESS = "watch"


async def no_look() -> None:
    pass


@pytest.mark.timeout(300 + 10 * EXAMPLES)
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with served(tmp_path, hook=Hook(lambda: "secret", no_look, SystemClock())) as server:
            server.publish([asset("a", "x"), asset("x/b", "a")], mentions={"x/b": ["a"]})
            server.publish([asset("c", "1")])
            url = server.running.url
            asking = await asyncio.create_subprocess_exec(
                Path(sys.executable).with_name("st"),
                f"--config-file={SETTINGS}",
                "run",
                f"{url}/openapi.json",
                f"--url={url}",
                f"--max-examples={EXAMPLES}",
                f"--exclude-operation-id={ENDLESS}",
                "--phases=examples,coverage,fuzzing",
                "--continue-on-failure",
                "--generation-database=none",
                "--warnings=off",
                "--no-color",
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            said, _nothing = await asking.communicate()
            told = "\n".join(line[:300] for line in said.decode(errors="replace").splitlines())
            assert asking.returncode == 0, told
            assert "Tested: " in told

    asyncio.run(main())
