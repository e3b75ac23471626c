"""Which commits wait for each other."""

from __future__ import annotations

from pathlib import Path

from lehr.model.asset import Partition
from lehr.model.decision import Reservation
from lehr.model.operation import DONE
from lehr.model.writes import (
    Admit,
    Adopt,
    Audit,
    Basis,
    Finish,
    Import,
    KeepLease,
    LiftControl,
    Prune,
    RecordDecision,
    Reschedule,
    SetControl,
    TakeLease,
    Write,
)
from lehr.store.postgres.locks import keys_of, lock_key
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    control,
    decision,
    entry,
    key,
    operation,
    publication,
)

BASIS = Basis(None, publication(0).candidate.generators, 0)


def admit(id: str, *limits: str) -> Admit:
    return Admit(operation(id), BASIS, tuple(Reservation(limit, 1) for limit in limits))


def share(one: list[Write], other: list[Write]) -> bool:
    """Whether one of two commits waits for the other."""
    return not set(keys_of("lehr", one)).isdisjoint(keys_of("lehr", other))


def test_all_that_is_written_of_one_partition_goes_one_after_the_other() -> None:
    writes: list[Write] = [
        publication(0),
        admit("o1"),
        Adopt(entry("a")),
        RecordDecision(decision("a")),
        Reschedule(key("a"), decision("a").condition, NOW),
        SetControl(control("c1")),
        LiftControl(PARTITION, "c1", 1.0),
        KeepLease(PARTITION, 1, 1.0),
        Finish(PARTITION, "o1", DONE, 1.0),
        Prune(PARTITION, 1, 1.0),
    ]
    for write in writes:
        assert share([write], [TakeLease(PARTITION, "one", 1.0)]), write


def test_partitions_do_not_wait_for_each_other() -> None:
    assert not share([TakeLease(PARTITION, "one", 1.0)], [publication(0, partition=OTHER)])
    assert not share([RecordDecision(decision("a"))], [RecordDecision(decision("a", partition=OTHER))])
    assert not share([Finish(PARTITION, "o1", DONE, 1.0)], [Finish(OTHER, "o2", DONE, 2.0)])


def test_who_takes_a_share_of_one_limit_waits_also_in_another_partition() -> None:
    elsewhere = Admit(operation("o2"), BASIS, (Reservation("limit", 1),))
    assert share([admit("o1", "limit")], [elsewhere])
    limits = [
        lock for lock in keys_of("lehr", [admit("o1", "limit")]) if lock not in keys_of("lehr", [admit("o1")])
    ]
    assert len(limits) == 1


def test_imports_go_one_after_the_other() -> None:
    assert share([Import(Path("a"), 1.0)], [Import(Path("b"), 1.0)])


def test_locks_are_taken_in_one_order_so_that_no_two_wait_for_each_other() -> None:
    writes: list[Write] = [
        admit("o1", "x", "y", "z"),
        TakeLease(OTHER, "one", 1.0),
        Finish(PARTITION, "o1", DONE, 1.0),
    ]
    found = keys_of("lehr", writes)
    assert found == sorted(found) == keys_of("lehr", writes[::-1])
    assert len(set(found)) == len(found)


def test_stores_in_one_database_do_not_wait_for_each_other() -> None:
    assert not set(keys_of("one", [TakeLease(PARTITION, "one", 1.0)])) & set(
        keys_of("two", [TakeLease(PARTITION, "one", 1.0)])
    )


def test_every_partition_has_a_lock_that_the_server_can_take() -> None:
    keys = [lock_key(Partition(f"p{number}")) for number in range(1000)]
    assert len(set(keys)) == 1000
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_the_audit_trail_is_of_a_partition_too() -> None:
    from lehr.model.control import AuditEntry

    said = AuditEntry(at=1.0, actor="ana", command="pause", arguments={}, result="ok")
    assert share([Audit(PARTITION, said)], [TakeLease(PARTITION, "one", 1.0)])
