"""The floor of HTTP here: a server that answers the same bytes to everything, over bare asyncio.

python -m benchmarks.echo BYTES    prints its address
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def echoing(size: int) -> Iterator[str]:
    """Answers `size` bytes while in this context; its URL."""
    command = [sys.executable, "-m", "benchmarks.echo", str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def _main(size: int) -> None:
    answer = f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode() + b"x" * size

    async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    print(f"http://{host}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
