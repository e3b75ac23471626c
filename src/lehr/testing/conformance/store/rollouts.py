"""The rules of evidence: written together with releases, kept in order, and pruned by whole rollouts."""

from __future__ import annotations

from msgspec.structs import replace

from lehr.base.digest import digest
from lehr.model.asset import AssetId, Partition
from lehr.model.evidence import (
    Begun,
    Commanded,
    Ended,
    Evidence,
    Fact,
    Looked,
    RolloutCommand,
    RolloutEnd,
    UnitLook,
    Updated,
)
from lehr.model.reason import Reason
from lehr.model.writes import Prune
from lehr.rollouts.course import folded
from lehr.sdk.store import Store
from lehr.testing.conformance.rules import hold
from lehr.testing.conformance.store.subject import (
    NOW,
    OTHER,
    PARTITION,
    RULES,
    Subject,
    commit,
    governed,
    refusal,
    release,
    releasing,
)

_LONG = 365 * 86_400.0


def evidence(
    rollout: str,
    fact: Fact,
    policy: str = "policy",
    at: float = NOW,
    partition: Partition = PARTITION,
) -> Evidence:
    """A fact about a rollout."""
    return Evidence(partition=partition, policy=AssetId(policy), rollout=rollout, at=at, fact=fact)


def witnessed(store: Store, *found: Evidence, partition: Partition = PARTITION) -> None:
    """Write evidence down, which must be carried out."""
    answer = commit(store, replace(releasing(store, partition=partition), evidence=found))
    hold(answer is None, f"evidence that rests on the newest releases is written, not {answer}")


def _facts(store: Store, after: int = 0, limit: int = 1000) -> list[tuple[str, Fact]]:
    return [(item.rollout, item.fact) for item in store.records.evidence(PARTITION, after, limit)]


@RULES
def evidence_is_kept_in_the_order_in_which_it_was_written(subject: Subject) -> None:
    """Invariant: I12. Whole, over a restart, whatever the clock shows; each partition has its own."""
    looked = Looked({"eu": UnitLook(True, 10.5, 12.0), "us": UnitLook(False, 0.0, 12.0, 2, "no answer")})
    with subject.opened() as store:
        governed(store)
        witnessed(store, evidence("r1", Begun(1), at=NOW + 100), evidence("r1", looked, at=NOW))
        witnessed(store, evidence("r2", Begun(1), policy="another", at=NOW - 100))
    with subject.opened() as store:
        expected = [("r1", Begun(1)), ("r1", looked), ("r2", Begun(1))]
        hold(_facts(store) == expected, "evidence is as it was written, in order")
        found = store.records.evidence(PARTITION)
        numbers = [item.number for item in found]
        hold(numbers == sorted(set(numbers)), f"numbers ascend, not {numbers}")
        hold(found[0] == replace(evidence("r1", Begun(1), at=NOW + 100), number=numbers[0]), "it is whole")
        hold(_facts(store, numbers[0]) == expected[1:], "what comes after a number is listed")
        hold(_facts(store, 0, 2) == expected[:2], "no more than asked, the oldest first")
        hold(_facts(store, numbers[-1]) == [], "nothing comes after the newest")
        hold(store.records.evidence(OTHER) == [], "another partition has its own")


@RULES.governed
def evidence_is_written_with_its_releases_or_not_at_all(store: Store) -> None:
    """Without its evidence, a release could not be distinguished from one of another writer."""
    witnessed(store, evidence("r1", Begun(1)))
    late = replace(
        releasing(store, release("1", "a")), version=0, evidence=(evidence("r1", Ended(RolloutEnd.ABORTED)),)
    )
    refusal(commit(store, late), Reason.RELEASES_CHANGED, "evidence raises the version of the releases")
    hold(_facts(store) == [("r1", Begun(1))], "a refusal writes no evidence")
    both = replace(releasing(store, release("1", "a"), release("2", "b", 9)), evidence=late.evidence)
    refusal(commit(store, both), Reason.PRUNED, "a release to what is not there is refused")
    hold(_facts(store) == [("r1", Begun(1))], "a refused release writes no evidence")


@RULES.governed
def the_last_rollout_of_a_policy_is_not_pruned(store: Store) -> None:
    """Of those before it, only the beginning, the end, and what people commanded is kept."""
    updated, told = Updated(("eu",), {AssetId("a"): 1}), Commanded(RolloutCommand.PAUSE, "ana", "why")
    witnessed(store, evidence("r1", Begun(1)), evidence("r1", updated), evidence("r1", told))
    witnessed(store, evidence("r1", Ended(RolloutEnd.COMPLETED)))
    witnessed(store, evidence("r2", Begun(1)), evidence("r2", updated))
    witnessed(store, evidence("s1", Begun(1), policy="another"), evidence("s1", updated, policy="another"))
    witnessed(store, evidence("r2", Ended(RolloutEnd.FAILED), at=NOW + 2 * _LONG))
    witnessed(store, evidence("r3", Begun(1)), evidence("r3", updated))
    expected = [item for item in _facts(store) if item != ("r1", updated)]
    _prune(store)
    left = _facts(store)
    hold(left == expected, f"what happened in an old rollout is pruned, and nothing else: not {left}")


@RULES.governed
def no_failure_of_content_is_pruned(store: Store) -> None:
    """Invariant: I10. Whatever is pruned, the same content is quarantined."""
    bad = Ended(RolloutEnd.FAILED, "no", {AssetId("a"): digest("bad"), AssetId("b"): digest("worse")})
    good, retry = Ended(RolloutEnd.COMPLETED), Commanded(RolloutCommand.RETRY, "ana", "repaired")
    for turn in range(2):  # of the second, nothing was retried
        witnessed(store, evidence(f"f{turn}", Begun(1)), evidence(f"f{turn}", bad))
        if not turn:
            witnessed(store, evidence(f"f{turn}", retry))
        witnessed(store, evidence(f"g{turn}", Begun(1)), evidence(f"g{turn}", good))
    before = folded(store.records.evidence(PARTITION))
    _prune(store)
    after = folded(store.records.evidence(PARTITION))
    hold(after == before, f"old evidence has the same meaning, and not that of {after}")
    hold(after.failures(AssetId("a"), digest("bad")) == 1, "content that failed long ago is quarantined")


def _prune(store: Store) -> None:
    write: Prune | None = Prune(PARTITION, keep=1, before=NOW + _LONG)
    while write is not None:
        write = commit(store, write).rest
