"""Answers to programs that watch the process that serves: from memory, and whatever else is waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class ProbeAnswer(NamedTuple):
    """An answer; `ok` is False for the status 503."""

    ok: bool
    media: str
    content: bytes


Probe = Callable[[], ProbeAnswer]
"""Answers one path. Must not wait."""


def probe_routes(probes: Mapping[str, Probe]) -> list[Route]:
    """The route of each path."""
    return [Route(path, _endpoint(probe), methods=["GET"]) for path, probe in probes.items()]


def _endpoint(probe: Probe) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        found = probe()
        headers = {"cache-control": "no-store", "content-type": found.media}
        return Response(found.content, 200 if found.ok else 503, headers)

    return answer
