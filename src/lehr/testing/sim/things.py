"""Production of `test.Thing`: one string, with capacity and version if the thing has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.model.asset import Asset, AssetId
from lehr.model.diff import Effects, Goal, Target
from lehr.model.types import Registry
from lehr.sdk.plugin import Reader
from lehr.testing.sim.production import Kind
from lehr.testing.world import THING, Thing


def _wish(target: Target, read: Reader) -> str:
    payload = read.payload(target.id, Thing)
    return "+".join([payload.value, *(read.payload(AssetId(id), Thing).value for id in payload.reads)])


def wished(assets: Mapping[str, Asset], id: str, registry: Registry) -> str:
    """Intended production of a thing for an incarnation's `assets`, without asking the program."""
    payload = registry.payload(assets[id], Thing)
    return "+".join(
        [payload.value, *(registry.payload(assets[other], Thing).value for other in payload.reads)]
    )


def _effects(target: Target, read: Reader, intended: Any, observed: Any) -> Effects:
    payload = read.payload(target.id, Thing)
    if payload.versioned:
        return Effects(version_from=observed, version_to=intended)
    capacity = None if "?" in (intended, observed) else _number(intended) - _number(observed)
    return Effects(capacity, destructive=payload.destroys and target.goal is Goal.PRESENT)


def _number(value: Any) -> int:
    return int(value) if isinstance(value, str) and value.isdigit() else 0


THINGS = Kind(THING, _wish, _effects)
