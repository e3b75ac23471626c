"""Sample asset types, to test generation, validation and plugins with.

`registry` can be named to a generation worker: `lehr.testing.samples:registry`.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.model.addons import ADDONS
from lehr.model.types import AssetType, Reference, Registry

SERVICE = "sample.Service"
ROUTE = "sample.Route"
POLICY = "sample.Policy"


class Port(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named port."""

    name: str
    number: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that runs."""

    command: list[str] = []
    replicas: Annotated[int, msgspec.Meta(ge=0)] = 1
    ports: list[Port] = []
    owner: str | None = None

    def __post_init__(self) -> None:
        if any(not part for part in self.command):
            raise ValueError("no part of a command is empty")


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A path that leads to a service."""

    path: Annotated[str, msgspec.Meta(pattern="^/")]
    service: Annotated[str, Reference((SERVICE,))]


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A governing asset, without production."""

    text: str = ""


def registry() -> Registry:
    """A new registry of the sample types and of Lehr's own addons."""
    types = (AssetType(SERVICE, Service), AssetType(ROUTE, Route), AssetType(POLICY, Policy, governs=True))
    return Registry(types, ADDONS)
