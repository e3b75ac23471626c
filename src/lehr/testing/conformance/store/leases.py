"""The rules of leases: one writer at a time, known by its epoch, for as long as it renews its lease."""

from __future__ import annotations

from typing import Any

from lehr.model.asset import Partition
from lehr.model.reason import Reason
from lehr.model.writes import (
    Adopt,
    KeepLease,
    LeaseLostError,
    RecordDecision,
    Refused,
    ReturnLease,
    TakeLease,
)
from lehr.sdk.store import Store
from lehr.testing.conformance.rules import hold, raises
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    RULES,
    commit,
    decision,
    entry,
    trace,
)

_LONG = 3600.0


def _take(store: Store, owner: str, seconds: float = _LONG, partition: Partition = PARTITION) -> Any:
    return commit(store, TakeLease(partition, owner, NOW, seconds))


@RULES.governed
def a_lost_lease_writes_nothing(store: Store) -> None:
    """`KeepLease` with any epoch but the newest raises, and takes the rest of its commit with it."""
    hold(commit(store, KeepLease(PARTITION, 1, NOW)) > 0, "the newest epoch continues")
    hold(commit(store, TakeLease(PARTITION, "one", NOW)) == 2, "another writer takes the lease")
    before = trace(store)
    for partition, epoch in ((PARTITION, 1), (PARTITION, 3), (Partition("never"), 1)):
        with raises(LeaseLostError, f"epoch {epoch} of {partition} is not the newest: the lease is lost"):
            store.commit([RecordDecision(decision("a")), KeepLease(partition, epoch, NOW), Adopt(entry("a"))])
        hold(trace(store) == before, "a commit under a lost lease writes nothing")


@RULES.opened
def a_lease_is_taken_when_it_is_free(store: Store) -> None:
    """It is free before the first, when it has ended, or when it was returned; otherwise it is refused."""
    hold(_take(store, "one") == 1, "the first lease is free")
    refused = _take(store, "two")
    hold(isinstance(refused, Refused), "a lease that has an owner is taken by no other")
    hold(refused.reason == Reason.LEASE_HELD, f"with reason LeaseHeld, not {refused.reason}")
    hold("one" in refused.message, "it names the owner")
    hold(refused.until is not None and NOW < refused.until <= NOW + _LONG, "and when the lease ends")
    hold(commit(store, KeepLease(PARTITION, 1, NOW)) > 0, "a refusal changes nothing")
    hold(_take(store, "two", partition=OTHER) == 1, "another partition has leases of its own")
    commit(store, ReturnLease(PARTITION, 1))
    hold(_take(store, "two", seconds=0.0) == 2, "a lease that was returned is free")
    hold(_take(store, "three") == 3, "and so is one that has ended")


@RULES.opened
def an_owner_takes_back_its_own_lease(store: Store) -> None:
    """It has ended, and started again: it does not wait for itself, and its former epoch is lost."""
    hold(_take(store, "one") == 1, "the first lease is free")
    hold(_take(store, "one") == 2, "its owner takes it again")
    with raises(LeaseLostError, "what had it before has lost it"):
        store.commit([KeepLease(PARTITION, 1, NOW)])


@RULES.opened
def a_lease_is_renewed(store: Store) -> None:
    """`KeepLease` makes a lease last, even one that has ended, and answers for how long."""
    hold(_take(store, "one", seconds=0.0) == 1, "the first lease is free")
    left = commit(store, KeepLease(PARTITION, 1, NOW, _LONG))
    hold(left == _LONG, f"a lease that is renewed lasts, not {left} s")
    left = commit(store, KeepLease(PARTITION, 1, NOW, _LONG))
    hold(_LONG / 2 < left <= _LONG, f"more than half of it is left after a commit, not {left} s")
    hold(isinstance(_take(store, "two"), Refused), "no other owner takes it")


@RULES.opened
def only_the_newest_lease_is_returned(store: Store) -> None:
    """A process that has lost its lease cannot return that of its successor."""
    hold((_take(store, "one", seconds=0.0), _take(store, "two")) == (1, 2), "the lease is taken over")
    commit(store, ReturnLease(PARTITION, 1))
    hold(isinstance(_take(store, "three"), Refused), "it is still the successor's")
