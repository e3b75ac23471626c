"""The common base of what reads a part of a store from a server."""

from __future__ import annotations

from typing import Any, TypeVar
from urllib.parse import quote

from lehr.base.errors import LehrError
from lehr.http.connection import Server
from lehr.model.asset import AssetId, Partition

T = TypeVar("T")

_MOST = 100_000


def path_of(partition: Partition, name: str = "") -> str:
    """The path of a resource of a partition, or of the partition itself."""
    return f"/v1/partitions/{quote(partition, safe='')}" + (f"/{name}" if name else "")


class RemotePart:
    """A part of a store, read from a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def _ask(self, partition: Partition, name: str, kind: type[T], **asked: Any) -> T:
        """The answer of a resource of a partition."""
        return self._server.asked(path_of(partition, name), kind, asked)

    def _newest(
        self,
        partition: Partition,
        name: str,
        kind: type[T],
        limit: int,
        asset: AssetId | None = None,
        before: int = 0,
    ) -> list[T]:
        """The newest items of a list that is ordered newest first; only those before one, unless that is 0.

        Raises:
            LehrError: there are more than fit in one answer, and all were requested.
        """
        asked = {"asset": asset, "limit": min(limit, _MOST), "before": before or None}
        found = self._ask(partition, name, list[kind], **asked)  # type: ignore[valid-type]
        if len(found) == _MOST < limit:
            raise LehrError(
                f"there are more than {_MOST:,}, the maximum that {self._server.url} returns",
                code="HTP122",
                fix="request fewer with --limit, or run this on the machine of `lehr run`, without --server",
            )
        return found
