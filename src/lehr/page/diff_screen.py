"""The screen of how one asset differs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from lehr.http.problems import ProblemError
from lehr.page.api import InPartition
from lehr.page.diff_view import (
    MOST_ROWS,
    Intended,
    Origin,
    origins_of_asset,
    origins_of_field,
    pointers_of,
    rows_of,
)

_MOST_LOOKED_UP = 20
"""Fields whose origins are looked up: each may read a repository."""
_AT_ONCE = 2
"""Of the few threads that also answer everyone else."""
_PATIENCE = 3.0
"""Seconds for the origins of all fields: a long history takes longer, and the values do not depend on it."""


async def read_diff(api: InPartition, asked: Mapping[str, str]) -> dict[str, Any]:
    """An asset as intended, in production and as last applied, with the origin of each field that differs."""
    id = asked["id"]
    why = await api.get("why", asset=id)
    content = why["decisions"][0]["content"] if why["decisions"] else 0
    at = content or "latest"
    ledger = why["ledger"]
    now, applied, whole = await asyncio.gather(
        _asset(api, id, at),
        _asset(api, id, ledger["content"]) if ledger else _none(),
        _blame(api, id, at),
    )
    rows = rows_of(why["diff"], Intended(now, applied))
    origins = await _origins(api, id, at, pointers_of(rows, _MOST_LOOKED_UP))
    return {
        "id": id,
        "why": why,
        "content": content,
        "rows": rows[:MOST_ROWS],
        "more": len(rows[MOST_ROWS:]),
        "origins": origins,
        "whole": () if whole is None else origins_of_asset(whole),
        "readable": whole is not None and whole["readable"],
    }


async def _origins(
    api: InPartition, id: str, at: object, pointers: Iterable[str]
) -> dict[str, tuple[Origin, ...]]:
    """Where each field comes from, by its pointer; without those that take too long."""
    places = asyncio.Semaphore(_AT_ONCE)
    found: dict[str, tuple[Origin, ...]] = {}

    async def look_up(pointer: str) -> None:
        async with places:
            answer = await _blame(api, id, at, pointer)
        found[pointer] = () if answer is None else origins_of_field(answer)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await asyncio.gather(*map(look_up, pointers))
    return found


async def _none() -> None:
    return None


async def _asset(api: InPartition, id: str, at: object) -> Any:
    """The asset in an incarnation; None if it has none, or is no longer kept."""
    try:
        return await api.get("asset", id=id, at=at)
    except ProblemError:
        return None


async def _blame(api: InPartition, id: str, at: object, field: str = "") -> Any:
    """Where an asset or a field comes from; None if that is not known."""
    try:
        return await api.get("blame", asset=id, field=field, at=at)
    except ProblemError:
        return None
