"""Calls of a plugin over gRPC, whose errors become Lehr's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.grpc_library import grpc
from lehr.plugins.remote import messages as m

MOST_BYTES = 4 << 20
"""Of one message."""

_SERVICE = "/lehr.plugin.v1.Plugin/"
_HEALTH = "/grpc.health.v1.Health/Check"
_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", MOST_BYTES),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),  # else a new channel waits as long as one that has failed
)


class Method(NamedTuple):
    """A method of the protocol: its name, and the type of its answers."""

    name: str
    answer: Any

    @property
    def path(self) -> str:
        """Its name in gRPC."""
        return _SERVICE + self.name


DESCRIBE = Method("Describe", m.DescribeResponse)
DIFF = Method("Diff", m.DiffResponse)
DIFF_MANY = Method("DiffMany", m.DiffManyResponse)
PUSH = Method("Push", m.PushResponse)
CANCEL = Method("Cancel", m.CancelResponse)
STATUS = Method("Status", m.StatusResponse)
WATCH = Method("Watch", m.WatchResponse)
DISCOVER = Method("Discover", m.DiscoverResponse)
CHECK = Method("Check", m.CheckResponse)
SELECT = Method("Select", m.SelectResponse)
VALIDATE = Method("Validate", m.ValidateResponse)


class Tls(NamedTuple):
    """For mutual TLS: PEM texts, and the name that the server's certificate must have."""

    authority: bytes
    certificate: bytes
    key: bytes
    name: str


class LostError(TransientError):
    """Nothing serves the plugin's address any more, or not yet."""


class SilentError(TransientError):
    """The plugin has not answered in time."""


class Channel:
    """A connection to one plugin.

    Args:
        address: in gRPC's notation.
        tls: None for a Unix socket.
    """

    def __init__(self, address: str, tls: Tls | None = None) -> None:
        if tls is None:
            self._channel = grpc.aio.insecure_channel(address, _OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(tls.authority, tls.key, tls.certificate)
            named = (("grpc.ssl_target_name_override", tls.name), *_OPTIONS[1:])
            self._channel = grpc.aio.secure_channel(address, credentials, named)
        self._unary: dict[Method, Any] = {}

    async def call(self, method: Method, request: Any, seconds: float) -> Any:
        """The answer to `request`.

        Raises:
            TransientError: there is none.
            LostError, SilentError: of these kinds.
            StalledError: the plugin does not have the method.
        """
        if method not in self._unary:
            self._unary[method] = self._channel.unary_unary(
                method.path,
                request_serializer=_serialized,
                response_deserializer=method.answer.FromString,
            )
        try:
            return await self._unary[method](request, timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise _error(method, error) from None

    async def stream(self, method: Method, request: Any) -> AsyncGenerator[Any, None]:
        """The answers to `request`, one after the other.

        Raises:
            TransientError: they have ended with an error.
            StalledError: the plugin does not have the method.
        """
        call = self._channel.unary_stream(
            method.path, request_serializer=_serialized, response_deserializer=method.answer.FromString
        )(request)
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise _error(method, error) from None
        finally:
            call.cancel()

    async def is_healthy(self, seconds: float) -> bool:
        """Whether it answers a question about its health (`grpc.health.v1`), whatever the answer is."""
        ask = self._channel.unary_unary(_HEALTH)  # without serializers, messages are bytes
        try:
            await ask(b"", timeout=seconds)
        except grpc.aio.AioRpcError as error:
            return error.code() not in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
        return True

    async def close(self) -> None:
        """End it, and all calls under way."""
        await self._channel.close()


def _serialized(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def _error(method: Method, error: grpc.aio.AioRpcError) -> TransientError | StalledError:
    """Why there is no answer, without details: they may come from the plugin, and repeat a secret."""
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return StalledError(f"the plugin does not have {method.name}", code="PLG122", fix="update the plugin")
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return SilentError(f"the plugin has not answered {method.name} in time", code="PLG123")
    kind = LostError if error.code() is grpc.StatusCode.UNAVAILABLE else TransientError
    what, why = f"the plugin has not answered {method.name}", f"status {error.code().name}"
    return kind(what, code="PLG124", why=why)
