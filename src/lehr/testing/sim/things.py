"""Production of `test.Thing`: one string, with capacity and version if the thing has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lehr.model.asset import Asset, AssetId
from lehr.model.diff import Effects, Goal, Target
from lehr.model.types import Registry
from lehr.sdk.plugin import Reader
from lehr.testing.sim.simulated_type import SimulatedType
from lehr.testing.world import THING, Thing


def _value(id: AssetId, payload: Callable[[AssetId], Thing]) -> str:
    own = payload(id)
    return "+".join([own.value, *(payload(AssetId(other)).value for other in own.reads)])


def _intended(target: Target, read: Reader) -> str:
    return _value(target.id, lambda id: read.payload(id, Thing))


def intended_value(
    assets: Mapping[str, Asset],
    id: str,
    registry: Registry,
    read: Callable[[str], Asset] | None = None,
) -> str:
    """Intended production of a thing for an incarnation's `assets`, without asking the program.

    Args:
        read: another asset as the thing reads it; the default is that of the same incarnation.
    """

    def payload(other: AssetId) -> Thing:
        return registry.payload(assets[other] if read is None or other == id else read(other), Thing)

    return _value(AssetId(id), payload)


def _effects(target: Target, read: Reader, intended: Any, observed: Any) -> Effects:
    payload = read.payload(target.id, Thing)
    if payload.versioned:
        return Effects(version_from=observed, version_to=intended)
    capacity = None if "?" in (intended, observed) else _number(intended) - _number(observed)
    return Effects(capacity, destructive=payload.destroys and target.goal is Goal.PRESENT)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, str) and value.isdigit() else 0


def _connected(target: Target, read: Reader) -> list[AssetId]:
    return [AssetId(id) for id in read.payload(target.id, Thing).reads]


THINGS = SimulatedType(THING, _intended, _effects, _connected)
