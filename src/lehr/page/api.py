"""Resources, as screens read them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

Parameters = Mapping[str, str]
NONE: Mapping[str, str] = MappingProxyType({})


class Api(Protocol):
    """Answers as clients of `/v1` get them."""

    async def get(self, name: str, parameters: Parameters = NONE) -> Any:
        """The answer of the resource of this name, decoded.

        Raises:
            ProblemError: the resource refuses to answer.
            LehrError: it cannot be read.
        """
        ...

    async def compares(self, partition: str) -> bool:
        """Whether dry runs of a partition are answered."""
        ...


class InPartition:
    """The resources of one partition.

    Attributes:
        partition: its name.
    """

    def __init__(self, api: Api, partition: str) -> None:
        self.partition = partition
        self._api = api

    async def get(self, name: str, **parameters: object) -> Any:
        """As `Api.get`. Parameters that are None or empty are left out."""
        given = {key: str(value) for key, value in parameters.items() if value not in (None, "")}
        return await self._api.get(name, {"partition": self.partition, **given})

    async def installation(self, name: str) -> Any:
        """The answer of a resource that belongs to no partition."""
        return await self._api.get(name)

    async def compares(self) -> bool:
        """Whether dry runs are answered."""
        return await self._api.compares(self.partition)
