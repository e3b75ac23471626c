"""What a push claims whose record is damaged is not given up: it may be under way."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lehr.base.blocking import Inline
from lehr.model.asset import AssetId
from lehr.model.operation import DONE
from lehr.model.writes import Adopt
from lehr.publish.moved import Moved
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import (
    PARTITION,
    admitted,
    commit,
    entry,
    finish,
    governed,
    request,
)


class _Registry:
    def claims(self, asset: Any) -> Sequence[str]:
        return (f"port {asset.id}",)


class _Taken:
    """Claims of which nobody else has any.

    Attributes:
        released: of whom all was given up that they do not claim now.
    """

    def __init__(self) -> None:
        self.released: set[AssetId] = set()

    async def moved(self, partition: str) -> list[AssetId]:
        return [AssetId("a"), AssetId("b")]

    async def take(self, partition: str, claimed: Any, *, only: bool) -> list[Any]:
        self.released |= set(claimed) if only else set()
        return []


@pytest.mark.parametrize("damage", [None, "UPDATE operation SET open = 0 WHERE id = 'o1'"])
def test_only_who_may_be_pushed_keeps_what_it_claimed(tmp_path: Path, damage: str | None) -> None:
    path, claims = tmp_path / "state.sqlite", _Taken()
    with contextlib.closing(SqliteStore(path)) as store:
        governed(store)
        for id in ("a", "b"):
            commit(store, Adopt(entry(id)))
        admitted(store, request(store, "o0", "b"))
        commit(store, finish("o0", DONE))
        admitted(store, request(store, "o1", "a"))
        if damage is not None:
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                assert db.execute(damage).rowcount == 1
        moved = Moved(claims, PARTITION, store, _Registry(), Inline())  # type: ignore[arg-type]
        asyncio.run(moved.settle())
    assert claims.released == {"b"}
