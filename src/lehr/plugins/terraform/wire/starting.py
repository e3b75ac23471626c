"""Starts providers: their process, the connection to it, and their schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from lehr.base.errors import StalledError, TransientError
from lehr.plugins.handshake import Handshake
from lehr.plugins.plugin_process import PluginProcesses, Program
from lehr.plugins.terraform.provider import ProviderGoneError, ProviderSchema, Severity
from lehr.plugins.terraform.wire import calls, messages
from lehr.plugins.terraform.wire.calls import diagnostics_of
from lehr.plugins.terraform.wire.client import LONGEST_CALL, WireProvider
from lehr.plugins.terraform.wire.connection import Connection
from lehr.plugins.terraform.wire.schema_codec import SchemaAnswer, provider_schema
from lehr.sdk.secrets import NOTHING_HIDDEN, Hidden

HANDSHAKE = Handshake(
    "TF_PLUGIN_MAGIC_COOKIE", "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2", (5, 6)
)

_GREETED = 60.0
"""Seconds to the handshake. A large provider takes one; a busy machine many times that."""

_GRACE = 5.0

_CHATTER = ("[TRACE]", "[DEBUG]")
"""Beginnings of lines of old libraries, which no variable turns off. They may quote what is sent."""

_PROGRAM = re.compile(r"terraform-provider-([A-Za-z0-9-]+)")


class Kept(Protocol):
    """Schemas by the SHA-256 of a provider's program, as `plugins.terraform.kept_schemas.KeptSchemas`."""

    async def known(self, sha256: str) -> ProviderSchema | None: ...

    async def keep(self, sha256: str, version: int, answer: bytes) -> None: ...


class Providers:
    """Starts providers, each in a process of its own.

    A large provider takes a second of processor time and much memory to answer with its schemas, so one that
    need not be asked is asked once.

    Args:
        kept: schemas that earlier processes have answered with.
    """

    def __init__(self, processes: PluginProcesses, kept: Kept | None = None) -> None:
        self._kept = kept
        self._processes = processes
        self._schemas: dict[str, ProviderSchema] = {}

    async def start(
        self,
        program: Program,
        *,
        log: Callable[[str], None],
        hidden: Hidden = NOTHING_HIDDEN,
        greeted: float = _GREETED,
        seconds: float = LONGEST_CALL,
    ) -> WireProvider:
        """Start a provider that is not configured yet.

        Args:
            log: gets each line that it prints, without the secrets that are `hidden`.
            greeted: seconds until it must have answered the handshake.
            seconds: that any later call may take but an apply.

        Raises:
            StalledError, TransientError: as `PluginProcesses.start`.
            TransientError: it does not answer with its schemas.
        """

        def noted(line: str) -> None:
            if not line.startswith(_CHATTER):
                log(line)

        process = await self._processes.start(
            program._replace(environment={**less_logs(program.arguments[0]), **program.environment}),
            HANDSHAKE,
            seconds=greeted,
            log=noted,
            hidden=hidden,
        )
        connection = Connection(
            process.address, process.version, process, lambda line: log(hidden.shown(line))
        )

        async def end() -> None:
            await process.stop(_GRACE)

        try:
            schema = await self._schema(connection, process.version, program.sha256, seconds)
        except BaseException:
            await connection.close()
            await process.stop()
            raise
        return WireProvider(connection, schema, end, seconds=seconds)

    async def _schema(
        self, connection: Connection, version: int, sha256: str, seconds: float
    ) -> ProviderSchema:
        known = self._schemas.get(sha256)
        if known is None and sha256 and self._kept is not None:
            known = await self._kept.known(sha256)
        if known is None or not known.need_not_be_asked:
            known = await self._asked(connection, version, sha256, seconds)
        if sha256 and known.need_not_be_asked:
            self._schemas[sha256] = known
        return known

    async def _asked(
        self, connection: Connection, version: int, sha256: str, seconds: float
    ) -> ProviderSchema:
        try:
            answer = await connection.call(calls.SCHEMA, messages.GetProviderSchema.Request(), seconds)
        except ProviderGoneError as error:
            raise TransientError("the provider has no schemas", code="TFW101", why=str(error)) from error
        schema = _understood(answer)
        if sha256 and self._kept is not None:
            await self._kept.keep(sha256, version, answer.SerializeToString())
        return schema


def less_logs(path: str) -> dict[str, str]:
    """Variables for the provider at `path`, without which it logs every call and request, with secrets.

    Terraform would filter what it logs. The variable of the provider itself ends with the provider's name.
    """
    variables = {"TF_LOG_SDK": "off", "TF_LOG_PROVIDER": "error"}
    if found := _PROGRAM.match(path.rpartition("/")[2]):
        name = found[1].upper().replace("-", "_")
        variables[f"TF_LOG_PROVIDER_{name}"] = "error"
    return variables


def _understood(answer: SchemaAnswer) -> ProviderSchema:
    what = "the provider's schemas cannot be understood"
    errors = [one.summary for one in diagnostics_of(answer.diagnostics) if one.severity is Severity.ERROR]
    if errors:
        raise StalledError(
            what, code="TFW102", why="; ".join(errors), fix="use another version of the provider"
        )
    try:
        return provider_schema(answer)
    except ProviderGoneError as error:
        raise StalledError(
            what, code="TFW103", why=str(error), fix="use another version of the provider"
        ) from error
