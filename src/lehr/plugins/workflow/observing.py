"""Asks production for what intent declares: over HTTP, or by a program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lehr.base.blocking import Blocking
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, StalledError, TransientError
from lehr.plugins.command.payload import arguments
from lehr.plugins.environment import small_environment
from lehr.plugins.http_resource.answers import document_in
from lehr.plugins.http_resource.client import Client
from lehr.plugins.http_resource.compare import Intended
from lehr.plugins.http_resource.fields import MISSING, at
from lehr.plugins.launch import Launch
from lehr.plugins.processes import Processes
from lehr.plugins.workflow.payload import CommandObservation, HttpObservation, Observation
from lehr.sdk.secrets import Hidden, SecretValue

_GRACE = 2.0
_MOST_PRINTED = 1 << 16


class Revealed(NamedTuple):
    """The secrets of an observation.

    Attributes:
        credentials: of a request.
        variables: of a program, by name.
        hidden: hides these, and those of the engine.
    """

    credentials: SecretValue | None
    variables: Mapping[str, SecretValue]
    hidden: Hidden


class Observer:
    """Observes production.

    Args:
        base: where programs run, and what their directories are relative to.
        blocking: threads of its own, which start programs.
        seconds: for one request over HTTP.
    """

    def __init__(self, base: Path, blocking: Blocking, clock: Clock, seconds: float) -> None:
        self._base = base.absolute()
        self._client = Client(clock, seconds)
        self._blocking = blocking
        self._processes = Processes(blocking, clock, grace=_GRACE)
        self._environment = small_environment()

    async def observe(self, what: Observation, asset: str, secrets: Revealed) -> dict[str, Any] | None:
        """The object that production shows; None if there is nothing.

        Raises:
            LehrError: it cannot be asked, or does not show an object.
        """
        if what.http is not None:
            return await self._over_http(what.http, secrets)
        assert what.command is not None  # one of the two is given
        return await self._printed(what.command, asset, secrets)

    async def close(self) -> None:
        """End programs that still run."""
        await self._processes.close()
        self._blocking.close()

    async def _over_http(self, what: HttpObservation, secrets: Revealed) -> dict[str, Any] | None:
        intended = Intended(what.resource(), {}, secrets.credentials, secrets.hidden)
        answer = await self._client.read(what.url, intended)
        if answer is None:
            return None
        found = at(document_in(answer, what.url), what.at)
        return _object(None if found is MISSING else found, f"{what.url}#{what.at}")

    async def _printed(
        self, what: CommandObservation, asset: str, secrets: Revealed
    ) -> dict[str, Any] | None:
        plain = {name: value for name, value in what.environment.items() if isinstance(value, str)}
        environment = {**self._environment, **plain, "LEHR_ASSET": asset}
        directory = os.path.join(self._base, what.directory or "")
        launch = Launch(
            arguments(what.run),
            environment,
            directory,
            what.timeout_seconds,
            secrets=secrets.variables,
            whole=_MOST_PRINTED,
        )
        ended = await self._processes.run(launch)
        if ended.timed_out or ended.code != 0:
            how = "did not end in time" if ended.timed_out else f"exit code {ended.code}"
            raise TransientError(
                f"the observation failed: {how}",
                code="WFL101",
                why=ended.errors.last() or ended.output.last(),
                fix="the program must print a JSON object and exit with 0",
            )
        if ended.whole is None:
            raise StalledError(
                "the observation prints too much",
                code="WFL102",
                fix="print only the fields that `intended` declares, such as with jq",
            )
        try:
            return _object(msgspec.json.decode(ended.whole), "the observation")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _no_object("the observation") from None


def _object(found: Any, place: str) -> dict[str, Any] | None:
    if found is None or isinstance(found, dict):
        return found
    raise _no_object(place)


def _no_object(place: str) -> LehrError:
    return TransientError(
        f"{place} does not show a JSON object",
        code="WFL103",
        fix="correct `at`, or what the program prints",
    )
