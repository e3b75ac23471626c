"""Subjects of the rules of stores, and the sample values that they write."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from lehr.base.digest import Digest, digest
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import Goal
from lehr.model.incarnation import Candidate, Incarnation, SourceRevision
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.reason import Reason
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.selector import Selector
from lehr.model.types import Mention
from lehr.model.writes import (
    Admit,
    Basis,
    Finish,
    Publish,
    Refused,
    TakeLease,
    Write,
    WriteReleases,
)
from lehr.sdk.store import Store
from lehr.testing.conformance.rules import Rules, hold

T = TypeVar("T")

PARTITION = Partition("one")
OTHER = Partition("two")
THING = "test.Thing"
RULE = "test.Rule"
NOW = 1_767_571_200.0
"""Wall-clock seconds at which the rules begin: Monday, 5 January 2026, 00:00 UTC."""


@dataclass(frozen=True)
class Subject:
    """A store that is empty.

    Attributes:
        open: opens it; called again, before or after a `close`, it opens the same state.
        troubles: each makes a context manager: entered, nothing can be written (locked, no room,
            unreachable); left, all is as before.
    """

    open: Callable[[], Store]
    troubles: tuple[Callable[[], AbstractContextManager[object]], ...] = ()

    @contextlib.contextmanager
    def opened(self) -> Iterator[Store]:
        """The store, closed in the end."""
        store = self.open()
        try:
            yield store
        finally:
            store.close()


Rule = Callable[[Subject], None]


class _Rules(Rules[Rule]):
    def opened(self, rule: Callable[[Store], None]) -> Rule:
        """Add a rule of an open store."""

        @functools.wraps(rule)
        def run(subject: Subject) -> None:
            with subject.opened() as store:
                rule(store)

        return self(run)

    def governed(self, rule: Callable[[Store], None]) -> Rule:
        """Add a rule of an open store that is `governed`."""

        @functools.wraps(rule)
        def run(store: Store) -> None:
            governed(store)
            rule(store)

        return self.opened(run)


RULES = _Rules()
"""The modules of this package add theirs."""


def only(items: Sequence[T], rule: str) -> T:
    """The one item; it breaks `rule` if there are more or none."""
    hold(len(items) == 1, f"{rule}, not {len(items)}")
    return items[0]


def commit(store: Store, write: Write) -> Any:
    """Commit one write; its answer."""
    return only(store.commit([write]), "one write has one answer")


def key(id: str, partition: Partition = PARTITION) -> AssetKey:
    """The key of an asset."""
    return AssetKey(partition, AssetId(id))


def asset(id: str, value: str = "", addons: Mapping[str, Any] | None = None, type: str = THING) -> Asset:
    """An asset whose payload is one value."""
    return make_asset(AssetId(id), type, {"value": value}, addons or {})


def publication(
    base: int,
    *upserts: Asset,
    removals: Sequence[str] = (),
    mentions: Mapping[str, Sequence[str]] | None = None,
    claims: Mapping[str, Sequence[str]] | None = None,
    at: float = NOW,
    partition: Partition = PARTITION,
) -> Publish:
    """The write that publishes over incarnation `base`.

    Args:
        mentions: target ids by source id.
        claims: claims by id.
    """
    sources = (SourceRevision("directory:/intent", f"revision {base + 1}"),)
    candidate = Candidate(
        partition, base, sources, digest("generators"), upserts, tuple(AssetId(id) for id in removals)
    )
    named = {
        AssetId(source): tuple(
            Mention(f"/payload/{place}", AssetId(target), ()) for place, target in enumerate(targets)
        )
        for source, targets in (mentions or {}).items()
    }
    claimed = {AssetId(id): tuple(names) for id, names in (claims or {}).items()}
    return Publish(candidate, named, (RULE,), at, claimed)


def published(store: Store, base: int, *upserts: Asset, **rest: Any) -> Incarnation:
    """Publish over incarnation `base`, which must be the newest."""
    answer = commit(store, publication(base, *upserts, **rest))
    hold(isinstance(answer, Incarnation), f"a candidate over the newest is published, not {answer}")
    assert isinstance(answer, Incarnation)
    return answer


def contents(store: Store, sequence: int, partition: Partition = PARTITION) -> list[Asset]:
    """All assets of an incarnation, as `assets` gives them."""
    return list(store.intent.assets(partition, sequence))


def basis(store: Store, id: str) -> Basis:
    """The current basis of verdicts about an asset."""
    newest = store.intent.newest(PARTITION)
    heads = list(store.intent.heads(PARTITION, [AssetId(id)]))
    version, _ = store.records.controls(PARTITION, NOW)
    releases, _ = store.records.released(PARTITION)
    last = store.intent.last(AssetKey(PARTITION, AssetId(id)))
    return Basis(
        heads[0].digest if heads else None,
        Digest("") if newest is None else newest.governance,
        version,
        versions=() if last is None else last[:1],
        releases=releases,
    )


def operation(id: str, asset: str = "a", *, epoch: int = 1, at: float = NOW, diff: str = "d") -> Operation:
    """A push of `asset` that is about to start."""
    return Operation(
        id,
        PARTITION,
        AssetId(asset),
        THING,
        Goal.PRESENT,
        content=1,
        governing=1,
        content_digest=digest("content"),
        diff_digest=digest(diff),
        epoch=epoch,
        started_at=at,
    )


def request(store: Store, id: str, asset: str = "a", *, at: float = NOW, **rest: Any) -> Admit:
    """Ask to push `asset` now; `rest` are further fields of `Admit`."""
    return Admit(operation(id, asset, at=at), basis(store, asset), **rest)


def governed(store: Store) -> None:
    """One incarnation with assets `a`, `b`, `c` and a governing one, and a lease of epoch 1."""
    published(store, 0, asset("a", "1"), asset("b", "1"), asset("c", "1"), asset("rule", "1", type=RULE))
    epoch = commit(store, TakeLease(PARTITION, "one", NOW))
    hold(epoch == 1, f"the first lease has epoch 1, not {epoch}")


def admitted(store: Store, admit: Admit) -> None:
    """Commit `admit`, which must be granted."""
    answer = commit(store, admit)
    hold(answer is None, f"a push whose basis still holds is admitted, not {answer}")


def refused(store: Store, admit: Admit, reason: str) -> Refused:
    """Commit `admit`, which must be refused for `reason` without a trace."""
    before = trace(store)
    answer = refusal(commit(store, admit), reason, f"{reason}: admission refuses")
    hold(bool(answer.message), "a refusal has a message")
    hold(trace(store) == before, "a refusal writes nothing")
    return answer


def refusal(answer: object, reason: str, rule: str) -> Refused:
    """`answer`, which must be a refusal for `reason`."""
    hold(isinstance(answer, Refused) and answer.reason == reason, f"{rule} for {reason}, not {answer}")
    assert isinstance(answer, Refused)
    return answer


def trace(store: Store) -> list[object]:
    """Everything that an admission could write."""
    records = store.records
    return [
        records.operations(PARTITION),
        records.open_operations(PARTITION),
        records.decisions(PARTITION),
        list(records.standings(PARTITION)),
        list(records.ledgers(PARTITION)),
    ]


def finish(id: str, outcome: Any, *, at: float = NOW + 1, ledger: LedgerEntry | None = None) -> Finish:
    """The end of the operation `id`."""
    return Finish(PARTITION, id, outcome, at, ledger)


def entry(id: str, *, content: int = 1, operation: str | None = None, at: float = NOW) -> LedgerEntry:
    """Production's state of an asset."""
    return LedgerEntry(
        PARTITION, AssetId(id), digest(f"content {content}"), content, Goal.PRESENT, operation, at
    )


def decision(
    id: str,
    reason: str = Reason.AS_INTENDED,
    *,
    at: float = NOW,
    next_at: float | None = None,
    partition: Partition = PARTITION,
) -> Decision:
    """A turn's record."""
    return Decision(
        partition=partition,
        asset=AssetId(id),
        at=at,
        content=1,
        governing=1,
        goal=Goal.PRESENT,
        condition=Condition(Status.CONVERGED, reason, next_at=next_at),
        event="start",
    )


def control(
    id: str,
    kind: ControlKind = ControlKind.FREEZE,
    *,
    selects: str = "*",
    diff: str | None = None,
    expires_at: float | None = None,
    partition: Partition = PARTITION,
    at: float = NOW,
) -> Control:
    """A person's word; `diff` as in `operation`."""
    return Control(
        id=id,
        kind=kind,
        partition=partition,
        selector=Selector(ids=(selects,)),
        reason="because",
        actor="ana",
        at=at,
        expires_at=expires_at,
        diff_digest=None if diff is None else digest(diff),
    )


def release(
    id: str,
    asset: str = "a",
    target: int | None = 1,
    *,
    kind: ReleaseKind = ReleaseKind.FORWARD,
    at: float = NOW,
    partition: Partition = PARTITION,
) -> Release:
    """A release of `asset` to incarnation `target`."""
    basis = ReleaseBasis(digest("governance"), AssetId("policy"), 7)
    return Release(
        id=id,
        partition=partition,
        asset=AssetId(asset),
        target=target,
        kind=kind,
        basis=basis,
        at=at,
        content_key=digest("content"),
        reads=(AssetId("b"),),
        rollout="r1",
        reason="because",
    )


def releasing(
    store: Store,
    *releases: Release,
    withdrawn: Sequence[str] = (),
    at: float = NOW,
    partition: Partition = PARTITION,
) -> WriteReleases:
    """Release and withdraw, resting on what the store holds now."""
    version, _ = store.records.released(partition)
    newest = store.intent.newest(partition)
    governance = Digest("") if newest is None else newest.governance
    return WriteReleases(partition, version, governance, at, releases, tuple(withdrawn))


def released(store: Store, *releases: Release, **rest: Any) -> None:
    """Commit such a write, which must be carried out."""
    answer = commit(store, releasing(store, *releases, **rest))
    hold(answer is None, f"what rests on the newest releases is written, not {answer}")
