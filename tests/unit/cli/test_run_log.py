"""What libraries log comes in the form of our log."""

from __future__ import annotations

import json
import subprocess
import sys

PROGRAM = """
import asyncio, warnings
from lehr.cli.run_log import configure_logs

configure_logs(verbose=False, as_json=True)

async def fails():
    raise ValueError("caf\\udce9")

async def main():
    asyncio.create_task(fails())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_exception_handler({"message": "a transport broke", "more": 1})
    warnings.warn("this is old", UserWarning)

asyncio.run(main())
import gc; gc.collect()
"""


def test_asyncio_and_warnings_log_in_our_form() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    events = {line["event"]: line for line in lines}
    never = events["Task exception was never retrieved"]
    assert (never["logger"], never["level"]) == ("asyncio", "error")
    assert "ValueError" in never["exception"]
    assert events["a transport broke"]["details"] == "more: 1"
    assert any("this is old" in line.get("event", "") for line in lines)
