"""The file that configures sources of metrics. It belongs to the deployment: intent only names sources."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from lehr.model.secret import Secret

Seconds = Annotated[float, msgspec.Meta(gt=0, le=300)]


class _Web(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A server that is asked over HTTP.

    Attributes:
        address: URL that queries are appended to.
        headers: sent with each request.
        bearer_token: sent as `Authorization: Bearer`.
        username, password: sent as `Authorization: Basic`.
        ca_file: certificates to trust instead of the system's.
        timeout: seconds for each request.
    """

    address: str
    headers: dict[str, str | Secret] = {}
    bearer_token: Secret | None = None
    username: str = ""
    password: Secret | None = None
    ca_file: str | None = None
    timeout: Seconds = 10.0

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.address)
            usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
        except ValueError:
            usable = False
        if not usable:
            raise ValueError("address is not the URL of a server: use one such as http://127.0.0.1:9090")
        if parts.username or parts.password:
            raise ValueError("address has a password: use username and password instead")
        if parts.query or parts.fragment:
            raise ValueError("address has a query: write it into the query of the lehr.Monitor")


class PrometheusDefinition(
    _Web, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="prometheus"
):
    """A server with the HTTP API of Prometheus."""


class HttpDefinition(
    _Web, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="http"
):
    """Any server that answers with JSON.

    Attributes:
        method: POST for a server that starts something, such as a load test. It is asked again until it
            answers, so one that is asked twice must start it once.
    """

    method: Literal["GET", "POST"] = "GET"


class CommandDefinition(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="command"
):
    """A program that prints JSON.

    Attributes:
        command: the program and its arguments; the query follows as the last one.
        environment: variables in addition to `PATH`, `HOME` and `LANG`.
        timeout: seconds after which it is killed.
    """

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    environment: dict[str, str | Secret] = {}
    timeout: Seconds = 10.0


class InstalledDefinition(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="type", tag="installed"
):
    """A source of an installed package.

    Attributes:
        name: of its entry point in the group `lehr.metrics`.
        options: passed to it.
    """

    name: str
    options: dict[str, Any] = {}


SourceDefinition = PrometheusDefinition | HttpDefinition | CommandDefinition | InstalledDefinition


class MetricSources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sources of metrics, by the names that intent uses."""

    sources: dict[str, SourceDefinition]
