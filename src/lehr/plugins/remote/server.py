"""Serves a plugin in Python to Lehr: what a plugin's program calls.

if __name__ == "__main__":
    serve("lines", lambda secrets: LinePlugin(), types=TYPES)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from lehr.base.blocking import Threads
from lehr.model.types import AssetType, Registry
from lehr.plugins.grpc_library import grpc
from lehr.plugins.remote.channel import MOST_BYTES
from lehr.plugins.remote.given import GivenSecrets
from lehr.plugins.remote.opening import HANDSHAKE
from lehr.plugins.remote.service import NoAssets, Served, Service
from lehr.sdk.check import CheckPlugin
from lehr.sdk.plugin import AssetPlugin
from lehr.sdk.secrets import Secrets
from lehr.sdk.target_selection import TargetSelector
from lehr.sdk.validator import Validator

_DRAIN_SECONDS = 25.0
_MOST_THREADS = 4
_HEALTHY = b"\x08\x01"  # HealthCheckResponse{status: SERVING}


def serve(
    name: str,
    make: Callable[[Secrets], AssetPlugin] = NoAssets,
    *,
    version: str = "0",
    types: Iterable[AssetType] = (),
    selections: Mapping[str, TargetSelector] = MappingProxyType({}),
    checks: Iterable[CheckPlugin] = (),
    validators: Mapping[str, Validator] = MappingProxyType({}),
) -> None:
    """Serve a plugin until Lehr ends it.

    A program that a person has started explains itself, and exits with 1.

    Args:
        make: makes the plugin; it reads the secrets that its assets refer to with its argument. By default,
            it serves no types.
        types: those whose payloads the plugin, a check or a validator reads as classes.
        validators: functions of a `lehr.sdk.validator.Proposal`, by name. Each call is about a part of a
            change, and the function is run again when something it looked up was missing.
    """
    if os.environ.get(HANDSHAKE.cookie_name) != HANDSHAKE.cookie:
        sys.exit(f"{name} is a plugin of Lehr, which starts it: see `lehr plugin --help`")
    if str(HANDSHAKE.versions[0]) not in os.environ.get("PLUGIN_PROTOCOL_VERSIONS", "").split(","):
        sys.exit(
            f"{name} speaks version {HANDSHAKE.versions[0]} of the protocol of plugins, and Lehr does not"
        )
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    threads = Threads("selections and validators", _MOST_THREADS)
    by_name = {check.name: check for check in checks}
    plugin, registry = make(GivenSecrets()), Registry(types)
    served = Served(name, version, plugin, registry, selections, threads, by_name, validators)
    asyncio.run(_serve(served))


async def _serve(served: Served) -> None:
    service, over = Service(served), asyncio.Event()
    server = grpc.aio.server(
        options=(
            ("grpc.max_receive_message_length", MOST_BYTES),
            ("grpc.max_send_message_length", MOST_BYTES),
        )
    )
    server.add_generic_rpc_handlers((service.handlers(), _health()))
    path = Path(os.environ["PLUGIN_UNIX_SOCKET_DIR"]) / "plugin.sock"
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    print(f"1|{HANDSHAKE.versions[0]}|unix|{path}|grpc", flush=True)  # noqa: T201 - the handshake
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    watching = asyncio.ensure_future(_host_gone(over))
    await over.wait()
    watching.cancel()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            await service.drained()
    await server.stop(None)
    await served.plugin.close()


async def _host_gone(over: asyncio.Event) -> None:
    """Set `over` when standard input is closed."""
    stream = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stream), sys.stdin
    )
    while await stream.read(4096):
        pass
    over.set()


def _health() -> grpc.GenericRpcHandler:
    """`grpc.health.v1.Health`, as far as Lehr asks: it serves as long as it answers."""

    async def check(_request: bytes, _context: object) -> bytes:
        return _HEALTHY

    return grpc.method_handlers_generic_handler(
        "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)}
    )
