"""A writer that lost its lease writes nothing more."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from lehr.base.blocking import Inline
from lehr.base.clock import SystemClock
from lehr.enforce.committer import Committer
from lehr.model.asset import Partition
from lehr.model.control import AuditEntry
from lehr.model.writes import Audit, KeepLease, LeaseLostError, TakeLease
from lehr.store.sqlite import SqliteStore
from tests.codes import raises

TEST = Partition("test")


def audit(actor: str) -> Audit:
    return Audit(TEST, AuditEntry(at=1.0, actor=actor, command="pause", arguments={}, result="done"))


def test_who_keeps_the_lease_writes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    [epoch] = store.commit([TakeLease(TEST, "one", 1.0)])
    assert store.commit([KeepLease(TEST, epoch, 1.0), audit("ana")]) == [30.0, None]
    store.close()


@pytest.mark.parametrize("behind", [0, 1])
def test_who_lost_it_or_never_had_it_writes_nothing(tmp_path: Path, behind: int) -> None:
    store = SqliteStore(tmp_path / "state.sqlite")
    [epoch] = store.commit([TakeLease(TEST, "one", 1.0)])
    [newer] = store.commit([TakeLease(TEST, "one", 1.0)])
    assert newer == epoch + 1
    with raises("STO138", LeaseLostError, match="test"):
        store.commit([audit("ana"), KeepLease(TEST, epoch - behind, 1.0)])
    assert store.records.audit(TEST) == []
    store.close()


def test_a_committer_under_a_lost_lease_ends_and_what_it_was_asked_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "state.sqlite")
        committer = Committer(store, Inline(), SystemClock())
        running = asyncio.create_task(committer.run())
        [epoch] = await committer.ask(TakeLease(TEST, "one", 1.0))
        committer.under(KeepLease(TEST, epoch, 1.0))
        assert await committer.ask(audit("ana")) == [None]
        store.commit([TakeLease(TEST, "one", 1.0)])
        with raises("STO138", LeaseLostError):
            await committer.ask(audit("ben"))
        with raises("STO138", LeaseLostError):
            await running
        assert [entry.actor for _number, entry in store.records.audit(TEST)] == ["ana"]
        store.close()

    asyncio.run(main())
