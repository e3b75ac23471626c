"""The screens of a rollout: its waves, its canary analysis, and its forecast."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from lehr.http.problems import ProblemError
from lehr.page.api import InPartition
from lehr.page.canary_view import canary_view
from lehr.page.forecast_view import forecast_view
from lehr.page.rollout_view import rollout_view

_EVENTS = 30


async def read_rollout(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """The waves of a rollout, and what happened in it."""
    id = asked["id"]
    rollout, events = await asyncio.gather(api.get("rollout", id=id), _events(api, id))
    return {"shown": rollout_view(rollout), "events": events, "policy": id}


async def _events(api: InPartition, policy: str) -> list[Any]:
    try:
        found = await api.get("rollout-history", policy=policy, limit=_EVENTS)
    except ProblemError as problem:
        if problem.code != "ROL137":
            raise
        return []  # it never had a rollout
    events: list[Any] = found["events"]
    return events


async def read_canary(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """The canary analysis of the newest rollout of a policy."""
    id = asked["id"]
    trace = await api.get("rollout-canary", policy=id)
    return {"shown": None if trace is None else canary_view(trace, api.partition), "policy": id}


async def read_forecast(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """The forecast of a rollout; and why there is none, if its policy has none."""
    id, every_unit = asked["id"], asked.get("every_unit") == "true"
    rollout = await api.get("rollout", id=id)
    values: dict[str, Any] = {"policy": id, "every_unit": every_unit, "shown": None, "problem": None}
    try:
        found = await api.get("rollout-forecast", policy=id, every_unit=asked.get("every_unit"))
    except ProblemError as problem:
        if problem.code not in _NONE:
            raise
        return values | {"problem": problem}
    compared = None if every_unit else rollout["forecast"]
    return values | {"shown": forecast_view(found["forecast"], compared)}


_NONE = ("ROL134", "ROL135", "ROL136")
"""Codes of rollouts that cannot be forecast."""
