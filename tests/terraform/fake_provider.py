"""A Terraform provider for tests: a program that speaks version 5 or 6 of the protocol.

    python fake_provider.py     (as Lehr, or terraform, starts it)

Its resources are files below `store`, in the provider's configuration (`fake_store`). Variables:

    FAKE_PROTOCOL         5 or 6 (default)
    FAKE_SCHEMA_VERSION   version of all schemas, 1 by default; 2 renames `title` to `text`
    FAKE_PLAN_DESTROY     no: does not want to plan deletions
    FAKE_SCHEMA_OPTIONAL  no: has to be asked for its schemas
    FAKE_RECORD           file that gets each request, as a line of JSON
    FAKE_START            a bad day before the handshake: silent, closed, garbage, version, dies

`bad_days` in its configuration has calls, by their names in version 6, and what happens to them:

    crash        ends at once             damaged   answers with a value of another type
    crash_after  does it, and then ends   large     answers with 2 MiB
    hang         never answers            chatter   prints 8 MB on both outputs, then answers
    garbage      answers no message       error     answers with an error that quotes the configuration
    empty        answers an empty message slow      answers after half a second
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # started by its path, from anywhere
    _ROOT = Path(__file__).parents[2]
    sys.path[:0] = [str(_ROOT), str(_ROOT / "src")]

from lehr.plugins.grpc_library import grpc
from lehr.plugins.terraform.wire import calls, messages
from lehr.plugins.terraform.wire.calls import Call
from tests.terraform.fake_answers import FakeProvider
from tests.terraform.fake_messages import PROTOCOL, error

COOKIE = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2"


class Server:
    """Serves a provider, and its bad days."""

    def __init__(self, provider: FakeProvider) -> None:
        self.provider = provider
        self.record = os.environ.get("FAKE_RECORD", "")

    def handler(self, call: Call, request_type: Any) -> Any:
        async def serve(data: bytes, context: Any) -> bytes:
            request = request_type.FromString(data)
            self._note(call, request)
            bad_day = self.provider.bad_days.get(call.name6, "")
            await self._before(bad_day)
            answer = await self.provider.answer(call, request)
            return self._after(bad_day, answer)

        return grpc.unary_unary_rpc_method_handler(serve)

    async def _before(self, bad_day: str) -> None:
        match bad_day:
            case "crash":
                _crash()
            case "hang":
                await asyncio.Event().wait()
            case "slow":
                await asyncio.sleep(0.5)
            case "chatter":
                for _ in range(8):
                    os.write(1, b"x" * 999_999 + b"\n")
                    os.write(2, (b"y" * 99 + b"\n") * 10_000)

    def _after(self, bad_day: str, answer: Any) -> bytes:
        match bad_day:
            case "crash_after":
                _crash()
            case "garbage":
                return b"\xff\xff\xff\xff"
            case "large":
                return bytes(2 << 20)
            case "empty":
                return b""
            case "damaged":
                for field, value in answer.ListFields():
                    if isinstance(value, messages.DynamicValue):
                        getattr(answer, field.name).msgpack = b"\x93\x01\x02\x03"
            case "error":
                config = self.provider.config
                del answer.diagnostics[:]
                answer.diagnostics.append(error("it failed", f"configuration: {config}"))
        return bytes(answer.SerializeToString())

    def _note(self, call: Call, request: Any) -> None:
        if self.record:
            fields = {field.name: _noted(value) for field, value in request.ListFields()}
            with open(self.record, "a") as file:
                file.write(json.dumps({"call": call.name6, **fields}) + "\n")


def _noted(value: Any) -> Any:
    if isinstance(value, messages.DynamicValue):
        return {"msgpack": base64.b64encode(value.msgpack).decode()}
    return value if isinstance(value, str | int) else repr(value)


def _crash() -> None:
    os.write(2, b"panic: runtime error: invalid memory address or nil pointer dereference\n")
    os._exit(2)


_REQUESTS = {
    calls.SCHEMA: messages.GetProviderSchema.Request,
    calls.VALIDATE_PROVIDER: messages.ValidateProviderConfig.Request,
    calls.CONFIGURE: messages.ConfigureProvider.Request,
    calls.VALIDATE_RESOURCE: messages.ValidateConfig.Request,
    calls.VALIDATE_DATA: messages.ValidateConfig.Request,
    calls.UPGRADE: messages.UpgradeResourceState.Request,
    calls.READ: messages.ReadResource.Request,
    calls.PLAN: messages.PlanResourceChange.Request,
    calls.APPLY: messages.ApplyResourceChange.Request,
    calls.IMPORT: messages.ImportResourceState.Request,
    calls.READ_DATA: messages.ReadDataSource.Request,
    calls.STOP: messages.StopProvider.Request,
}


async def serve() -> None:
    """Listen, answer the handshake, and serve until the host wants the end."""
    folder = os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or os.environ.get("TMPDIR", "/tmp")
    path = f"{folder}/fake-{os.getpid()}.sock"
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", 64 << 20)])
    fake, ended = Server(FakeProvider()), asyncio.Event()

    async def shut_down(_request: bytes, _context: Any) -> bytes:
        ended.set()
        return b""

    async def stdio(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield messages.StdioData(channel=2, data=b"over the connection\n").SerializeToString()
        await ended.wait()

    handlers = {
        call.name5 if PROTOCOL == 5 else call.name6: fake.handler(call, _REQUESTS[call]) for call in _REQUESTS
    }
    services = {
        f"tfplugin{PROTOCOL}.Provider": handlers,
        "plugin.GRPCStdio": {"StreamStdio": grpc.unary_stream_rpc_method_handler(stdio)},
        "plugin.GRPCController": {"Shutdown": grpc.unary_unary_rpc_method_handler(shut_down)},
    }
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items()]
    )
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    _say(f"1|{PROTOCOL}|unix|{path}|grpc|")
    await ended.wait()
    await server.stop(0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def start() -> None:
    """Start, or have a bad day."""
    if os.environ.get("TF_PLUGIN_MAGIC_COOKIE") != COOKIE:
        sys.exit("This is a provider for Terraform. It is not meant to be started by hand.")
    match os.environ.get("FAKE_START", ""):
        case "silent":
            signal.pause()
        case "closed":
            os.close(1)
            signal.pause()
        case "garbage":
            _say("hello, world")
            signal.pause()
        case "version":
            _say("1|4|unix|/tmp/x|grpc|")
            signal.pause()
        case "dies":
            sys.exit("error: no license")
        case _:
            asyncio.run(serve())


if __name__ == "__main__":
    start()
