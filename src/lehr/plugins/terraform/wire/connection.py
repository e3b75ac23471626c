"""The connection to a provider's process: calls, and its way of logging."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from google.protobuf.message import DecodeError

from lehr.base.text import one_line
from lehr.plugins.grpc_library import grpc
from lehr.plugins.terraform.provider import ProviderGoneError
from lehr.plugins.terraform.wire import messages
from lehr.plugins.terraform.wire.calls import Call

MOST_BYTES = 256 << 20
"""Bytes of one answer. The schemas of the largest providers have 5 MiB."""

_OPTIONS = (
    ("grpc.default_authority", "localhost"),  # Go refuses the path of a socket as a name
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),  # whether something happened is asked before it is tried again
)
_STDIO = "/plugin.GRPCStdio/StreamStdio"
_MOST_DETAILS = 300

_SHORT_WHILE = 2.0
"""Seconds that a process has to end after its connection broke."""


class Program(Protocol):
    """The process at the other end: `lehr.plugins.plugin_process.PluginProcess`."""

    async def ended(self) -> str:
        """Wait until it has ended. Returns how."""
        ...


class Connection:
    """Calls a provider in one version of the protocol.

    Attributes:
        gone: why calls no longer have an answer; empty while they have.
    """

    def __init__(self, address: str, version: int, program: Program, log: Callable[[str], None]) -> None:
        """Connect.

        Args:
            log: gets what the provider writes to its standard output and error.
        """
        self.gone = ""
        self._version = version
        self._channel = grpc.aio.insecure_channel(address, options=[*_OPTIONS, *_limits()])
        self._tasks = [
            asyncio.ensure_future(self._watch(program)),
            asyncio.ensure_future(self._drain(log)),
        ]
        self._ended = asyncio.Event()

    async def call(self, call: Call, request: Any, seconds: float | None) -> Any:
        """The answer to `request`, waiting at most so many seconds.

        Raises:
            ProviderGoneError: there is none, or none that can be read.
        """
        if self.gone:
            raise ProviderGoneError(f"the provider {self.gone}")
        method = self._channel.unary_unary(call.path(self._version))
        try:
            data = await method(request.SerializeToString(), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise ProviderGoneError(await self._reason(call, error, seconds)) from None
        try:
            return call.answer(self._version).FromString(data)
        except DecodeError:
            raise ProviderGoneError(f"the provider answered {call.name6} with damaged data") from None

    async def close(self) -> None:
        """Let go of the process; does not end it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channel.close()

    async def _reason(self, call: Call, error: grpc.aio.AioRpcError, seconds: float | None) -> str:
        code, details = error.code(), one_line(error.details() or "")[:_MOST_DETAILS]
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"the provider has not answered {call.name6} within {seconds:g} seconds"
        if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
            return f"the provider answered {call.name6} with more than {MOST_BYTES >> 20} MiB"
        if code is grpc.StatusCode.UNAVAILABLE:
            # A connection breaks a little before the process has ended, and that explains more.
            waiting = asyncio.ensure_future(self._ended.wait())
            await asyncio.wait({waiting}, timeout=_SHORT_WHILE)
            waiting.cancel()
        if self.gone:
            return f"the provider {self.gone} during {call.name6}"
        return f"the provider cannot carry out {call.name6}: {code.name.lower()}: {details}"

    async def _watch(self, program: Program) -> None:
        self.gone = f"ended ({await program.ended()})"
        self._ended.set()

    async def _drain(self, log: Callable[[str], None]) -> None:
        """Read its output, which its library sends over the connection: it would block some day."""
        stream = self._channel.unary_stream(_STDIO)
        try:
            async for data in stream(messages.Empty().SerializeToString()):
                for line in messages.StdioData.FromString(data).data.decode(errors="replace").splitlines():
                    if line.strip():
                        log(one_line(line))
        except (grpc.aio.AioRpcError, DecodeError):
            return  # a provider without this service


def _limits() -> list[tuple[str, int]]:
    return [(f"grpc.max_{way}_message_length", MOST_BYTES) for way in ("receive", "send")]
