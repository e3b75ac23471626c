"""Forks of a process in which gRPC is busy live to do their work."""

from __future__ import annotations

import subprocess
import sys

FORKS = """
import asyncio, os
from collections import Counter
from lehr.plugins.grpc_library import grpc

async def main():
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    await channel.channel_ready()
    call = channel.unary_unary("/no/such")

    async def keep_busy():
        while True:
            try:
                await call(b"")
            except grpc.aio.AioRpcError:
                pass

    busy = [asyncio.create_task(keep_busy()) for _ in range(5)]
    ends = Counter()
    for _ in range(300):
        child = os.fork()
        if child == 0:
            os._exit(0)
        ends[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])] += 1
        await asyncio.sleep(0.001)
    print(dict(ends), flush=True)
    os._exit(0)

asyncio.run(main())
"""


def test_a_process_that_is_busy_with_grpc_can_be_forked() -> None:
    command = [sys.executable, "-c", FORKS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, "{0: 300}\n"), done.stderr
