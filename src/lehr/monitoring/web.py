"""Sends questions to a configured address, with its credentials. Reads them as late as possible."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

from lehr.base.errors import LehrError
from lehr.base.http_answer import Answer
from lehr.model.monitoring import Cause, MetricError
from lehr.model.secret import Secret
from lehr.monitoring.configuration import HttpDefinition, PrometheusDefinition
from lehr.monitoring.http_exchange import exchange
from lehr.sdk.secrets import Secrets


class Web:
    """One address of the deployment."""

    def __init__(
        self, definition: PrometheusDefinition | HttpDefinition, secrets: Secrets, base: Path
    ) -> None:
        self._definition = definition
        self._secrets = secrets
        self._base = base
        self._trust: ssl.SSLContext | None = None

    async def ask(self, query: str) -> Answer:
        """The answer to a request to the address with `query` appended.

        Raises:
            MetricError: there is no answer, or a credential cannot be read.
        """
        if any(ord(letter) <= 32 or ord(letter) == 127 for letter in query):
            raise MetricError(
                Cause.FAILED, "the query has spaces or control characters, which a URL cannot have"
            )
        definition = self._definition
        method = definition.method if isinstance(definition, HttpDefinition) else "GET"
        address = definition.address.rstrip("/") + query
        return await exchange(method, address, await self._headers(), self._trusted())

    def _trusted(self) -> ssl.SSLContext | None:
        if self._trust is None and self._definition.address.startswith("https:"):
            file = self._definition.ca_file
            try:
                self._trust = ssl.create_default_context(
                    cafile=None if file is None else str(self._base / file)
                )
            except (OSError, ValueError) as error:
                raise MetricError(Cause.FAILED, f"the certificates in {file} cannot be read") from error
        return self._trust

    async def _headers(self) -> dict[str, str]:
        definition = self._definition
        headers = {name: await self._text(value) for name, value in definition.headers.items()}
        if definition.bearer_token is not None:
            headers["Authorization"] = f"Bearer {await self._text(definition.bearer_token)}"
        elif definition.password is not None:
            pair = f"{definition.username}:{await self._text(definition.password)}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        return headers

    async def _text(self, value: str | Secret) -> str:
        return await text_of(value, self._secrets)


async def text_of(value: str | Secret, secrets: Secrets) -> str:
    """A text, or the secret that it refers to.

    Raises:
        MetricError: the secret cannot be read.
    """
    if isinstance(value, str):
        return value
    try:
        return (await secrets.read(value)).text()
    except LehrError as error:
        raise MetricError(Cause.FAILED, str(error)) from error
