"""A program that prints JSON."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.monitoring.configuration import CommandDefinition
from lehr.monitoring.json_values import samples_in
from lehr.monitoring.web import text_of
from lehr.sdk.metrics import MetricSource
from lehr.sdk.secrets import Secrets

_MOST_BYTES = 1 << 20
_DRAIN_SECONDS = 1.0


class CommandSource(MetricSource):
    """Runs a program with the query as its last argument."""

    def __init__(
        self, definition: CommandDefinition, secrets: Secrets, base: Path, environment: Mapping[str, str]
    ) -> None:
        self.timeout = definition.timeout
        self._definition = definition
        self._secrets = secrets
        self._base = base
        self._environment = environment

    async def ask(self, question: Question) -> Sequence[Sample]:
        if question.alerts is not None:
            raise MetricError(Cause.FAILED, "this source has no alerts: use a source of type prometheus")
        given = self._definition.environment
        extra = {name: await text_of(value, self._secrets) for name, value in given.items()}
        arguments = (*self._definition.command, *((question.query,) if question.query else ()))
        return samples_in(await self._output(arguments, extra), question)

    async def _output(self, arguments: Sequence[str], extra: Mapping[str, str]) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                cwd=self._base,
                env={**self._environment, **extra},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else "") or "it cannot be run"
            raise MetricError(Cause.FAILED, f"{arguments[0]} did not start: {why}") from error
        try:
            assert process.stdout is not None
            content = bytearray()
            while part := await process.stdout.read(_MOST_BYTES):
                content += part
                if len(content) > _MOST_BYTES:
                    raise MetricError(
                        Cause.TOO_LARGE, f"{arguments[0]} printed more than {_MOST_BYTES:,} bytes"
                    )
            if code := await process.wait():
                raise MetricError(Cause.FAILED, f"{arguments[0]} ended with exit code {code}")
            return bytes(content)
        finally:
            # With the processes that it has started, which may hold its output open.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            await _drained(process.stdout)


async def _drained(output: asyncio.StreamReader | None) -> None:
    """Read to the end, which closes the pipe."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            while output is not None and await output.read(_MOST_BYTES):
                pass
