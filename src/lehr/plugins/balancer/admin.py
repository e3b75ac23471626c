"""Reads what an Envoy runs from its admin interface. Blocks for at most two seconds."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.base.errors import TransientError
from lehr.plugins.balancer.payload import split
from lehr.plugins.balancer.running_state import Running, parse, values

_TIMEOUT = 2.0
_COUNTED = "version_text|update_attempt|update_rejected|update_failure|upstream_rq_total"
_STATISTICS = f"/stats?format=json&filter=({_COUNTED}|total_listeners_draining|warming_clusters)$"


class UnreachableError(TransientError):
    """Nothing listens at the address of the admin interface: no Envoy runs there."""


def running(admin: str) -> Running:
    """The state of the Envoy with the admin interface at `admin` (`host:port`).

    Raises:
        UnreachableError: nothing listens there.
        TransientError: it does not answer in time, or not like an Envoy.
    """
    answers = _ask(admin, "/config_dump", "/clusters?format=json", _STATISTICS)
    with _understood(admin):
        return parse(*answers)


def statistics(admin: str) -> dict[str, Any]:
    """Only `Running.statistics`. Raises as `running` does."""
    answers = _ask(admin, _STATISTICS)
    with _understood(admin):
        return values(*answers)


@contextlib.contextmanager
def _understood(admin: str) -> Iterator[None]:
    """Answers that another program would give become a `TransientError`."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise TransientError(
            f"{admin} does not answer like an Envoy", code="BAL101", why=repr(error)
        ) from error


def _ask(admin: str, *paths: str) -> list[Any]:
    host, port = split(admin)
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    try:
        answers = []
        for path in paths:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                raise TransientError(
                    f"Envoy at {admin} answered {response.status} {response.reason}", code="BAL102"
                )
            answers.append(msgspec.json.decode(body))
    except ConnectionRefusedError as error:
        raise UnreachableError(
            f"Envoy at {admin} does not answer",
            code="BAL103",
            why="nothing listens there",
            fix="start Envoy there",
        ) from error
    except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
        raise TransientError(
            f"Envoy at {admin} does not answer", code="BAL104", why=str(error) or type(error).__name__
        ) from error
    else:
        return answers
    finally:
        connection.close()
