"""The conformance suite of stores catches stores that break its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.digest import Digest, digest
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.operation import Outcome, Result
from lehr.store import SqliteStore, Store
from lehr.store.interface import Head, Standing
from lehr.store.writes import (
    Admit,
    Adopt,
    Basis,
    Finish,
    LiftControl,
    Publish,
    Record,
    Refused,
    TakeLease,
    Touch,
)
from lehr.testing.conformance.store import Rule, Subject, admission, history, incarnations
from lehr.testing.conformance.store.subject import decision


class Wrapped:
    """A store that passes everything on; the broken ones below change one thing each."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Broken(Wrapped):
    """A store whose writes and answers go through `before` and `after`."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.intent = BrokenIntent(store.intent, self)
        self.records = BrokenRecords(store.records, self)

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        answers = self._store.commit([self.before(write) for write in writes])
        return [self.after(write, answer) for write, answer in zip(writes, answers, strict=True)]

    def before(self, write: Any) -> Any:
        return write

    def after(self, write: Any, answer: Any) -> Any:
        return answer

    def newest(self, partition: Partition) -> Incarnation | None:
        found: Incarnation | None = self._store.intent.newest(partition)
        return found


class BrokenIntent(Wrapped):
    def __init__(self, intent: Any, store: Broken) -> None:
        super().__init__(intent)
        self.store = store


class BrokenRecords(BrokenIntent):
    pass


def with_intent(**methods: Callable[..., Any]) -> type[Broken]:
    """A store whose reader of intent answers these questions wrongly; each gets the right reader."""
    return _with("intent", methods)


def with_records(**methods: Callable[..., Any]) -> type[Broken]:
    """The same for its reader of records."""
    return _with("records", methods)


def _with(part: str, methods: dict[str, Callable[..., Any]]) -> type[Broken]:
    class Lying(Broken):
        def __init__(self, store: Store) -> None:
            super().__init__(store)
            right = getattr(store, part)
            for name, method in methods.items():
                setattr(
                    getattr(self, part),
                    name,
                    lambda *args, _method=method, **kwargs: _method(right, *args, **kwargs),
                )

    return Lying


# --- writes ------------------------------------------------------------------


class Piecemeal(Broken):
    """Commits each write on its own."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        return [self._store.commit([write])[0] for write in writes]


class LastWriterWins(Broken):
    """Publishes over whatever is the newest."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, Publish):
            return write
        newest = self.newest(write.candidate.partition)
        return replace(write, candidate=replace(write.candidate, base=newest.sequence if newest else 0))


class SaysNothing(Broken):
    """Refuses without saying why."""

    def after(self, write: Any, answer: Any) -> Any:
        return replace(answer, message="") if isinstance(answer, Refused) else answer


def trusting(**parts: Callable[[Broken, Admit], Any]) -> type[Broken]:
    """A store that takes some parts of a push's basis as given instead of looking."""

    class Trusting(Broken):
        def before(self, write: Any) -> Any:
            if not isinstance(write, Admit):
                return write
            return replace(write, **{name: part(self, write) for name, part in parts.items()})

    return Trusting


def _basis(**fields: Callable[[Broken, AssetKey], Any]) -> Callable[[Broken, Admit], Basis]:
    def refreshed(store: Broken, admit: Admit) -> Basis:
        return replace(
            admit.basis, **{name: field(store, admit.operation.key) for name, field in fields.items()}
        )

    return refreshed


def _governance(store: Broken, key: AssetKey) -> Digest:
    newest = store.newest(key.partition)
    return newest.governance if newest else Digest("")


def _controls(store: Broken, key: AssetKey) -> int:
    version: int = store.records.controls(key.partition, 0.0)[0]
    return version


def _digest(store: Broken, key: AssetKey) -> Digest | None:
    heads: list[Head] = list(store.intent.heads(key.partition, [key.id]))
    return heads[0].digest if heads else None


class ForgetsUnknown(Broken):
    """Takes an unknown outcome for a failure."""

    def before(self, write: Any) -> Any:
        if isinstance(write, Finish) and write.outcome.result is Result.UNKNOWN:
            return replace(write, outcome=Outcome(Result.FAILED, write.outcome.message))
        return write


class NeverEnds(Broken):
    """Takes a stalled push for one that goes on."""

    def before(self, write: Any) -> Any:
        if isinstance(write, Finish) and write.outcome.result is Result.STALLED:
            return replace(write, outcome=Outcome(Result.UNKNOWN, write.outcome.message))
        return write


class EntersLateEnds(Broken):
    """Writes the ledger of whoever claims to have ended."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        answers = super().commit(writes)
        entries = [write.ledger for write in writes if isinstance(write, Finish) and write.ledger]
        self._store.commit([Adopt(entry) for entry in entries])
        return answers


class DecidesApart(Broken):
    """Forgets the decision that comes with an admission."""

    def before(self, write: Any) -> Any:
        return replace(write, decision=None) if isinstance(write, Admit) else write


class DecidesAnyway(Broken):
    """Records the decision of a push that it refuses."""

    def commit(self, writes: Sequence[Any]) -> list[Any]:
        for write in writes:
            if isinstance(write, Admit):
                self._store.commit([Record(decision(write.operation.asset, "Pushing"))])
        return super().commit(writes)


class LosesReservations(Broken):
    """Counts a windowed start only while its push runs."""

    def before(self, write: Any) -> Any:
        if isinstance(write, Admit):
            return replace(write, reservations=tuple(replace(r, window=None) for r in write.reservations))
        return write


class OneLease(Broken):
    """Hands the same epoch to everybody."""

    def after(self, write: Any, answer: Any) -> Any:
        return 1 if isinstance(write, TakeLease) else answer


class TouchDecides(Broken):
    """Takes a touch for a decision."""

    def before(self, write: Any) -> Any:
        if not isinstance(write, Touch):
            return write
        return Record(replace(decision(write.key.id), condition=write.condition))


class LiftsForeignControls(Broken):
    """Says that everything was lifted."""

    def after(self, write: Any, answer: Any) -> Any:
        return True if isinstance(write, LiftControl) else answer


# --- reads -------------------------------------------------------------------


def _latest_asset(right: Any, key: AssetKey, sequence: int) -> Asset | None:
    last: tuple[Asset, int] | None = right.last(key)
    return last[0] if last else None


def _newest_assets(right: Any, partition: Partition, sequence: int, types: Any = None) -> Iterator[Asset]:
    newest = right.newest(partition)
    found: Iterator[Asset] = right.assets(partition, newest.sequence if newest else 0, types)
    return found


def _without_last_asset(right: Any, *args: Any) -> Iterator[Asset]:
    return iter(list(right.assets(*args))[:-1])


def _unsorted_assets(right: Any, *args: Any) -> Iterator[Asset]:
    return iter(sorted(right.assets(*args), key=lambda item: (item.type, item.id)))


def _made_up_digests(right: Any, partition: Partition, limit: int) -> list[Incarnation]:
    return [replace(item, digest=digest(item.name)) for item in right.incarnations(partition, limit)]


def _forth_only(right: Any, partition: Partition, before: int, after: int) -> Iterator[AssetChange]:
    low, high = sorted((before, after))
    found: Iterator[AssetChange] = right.changes(partition, low, high)
    return found


def _youngest_standing(right: Any, key: AssetKey) -> Standing | None:
    standing: Standing | None = right.standing(key)
    decisions = right.decisions(key.partition, key.id, 1)
    return replace(standing, since=decisions[0][1].at) if standing else None


def _since_last_version(right: Any, key: AssetKey, addon: str) -> float | None:
    since: float | None = right.addon_since(key, addon)
    last = right.last(key)
    header = right.incarnation(key.partition, last[1]) if last else None
    return header.created_at if since is not None and header else since


def _all_heads(right: Any, partition: Partition, ids: Iterable[AssetId] | None = None) -> Iterator[Head]:
    found: Iterator[Head] = right.heads(partition)
    return found


def _version_for_ever(right: Any, partition: Partition, now: float) -> tuple[int, list[Any]]:
    return 0, right.controls(partition, now)[1]


def _controls_for_ever(right: Any, partition: Partition, now: float) -> tuple[int, list[Any]]:
    found: tuple[int, list[Any]] = right.controls(partition, 0.0)
    return found


BREAKS: list[tuple[Rule, type[Broken]]] = [
    (incarnations.a_commit_is_whole_or_not_at_all, Piecemeal),
    (incarnations.publishing_compares_the_base, LastWriterWins),
    (incarnations.past_incarnations_never_change, with_intent(asset=_latest_asset)),
    (incarnations.past_incarnations_never_change, with_intent(assets=_newest_assets)),
    (incarnations.digests_can_be_recomputed, with_intent(incarnations=_made_up_digests)),
    (incarnations.digests_can_be_recomputed, with_intent(assets=_without_last_asset)),
    (incarnations.the_last_version_outlives_a_removal, with_intent(last=lambda right, key: None)),
    (incarnations.types_select, with_intent(assets=_unsorted_assets)),
    (incarnations.heads_are_of_the_newest_incarnation, with_intent(heads=_all_heads)),
    (incarnations.changes_go_both_ways, with_intent(changes=_forth_only)),
    (
        incarnations.mentions_follow_the_newest_incarnation,
        with_intent(mentioned_by=lambda right, key: [(AssetId("a"), "/payload/0")]),
    ),
    (
        incarnations.mentions_of_the_past_are_remembered,
        with_intent(
            once_mentioned_by=lambda right, key: [id for id, _ in right.mentioned_by(key)],
        ),
    ),
    (
        incarnations.claims_follow_the_newest_incarnation,
        with_intent(claimed_by=lambda right, partition, claim: [AssetId("a"), AssetId("b")]),
    ),
    (incarnations.an_addon_stands_since_it_came, with_intent(addon_since=_since_last_version)),
    (admission.admission_starts_an_operation, DecidesApart),
    (admission.an_overtaken_lease_admits_nothing, OneLease),
    (admission.changed_governance_refuses, trusting(basis=_basis(governance=_governance))),
    (admission.changed_governance_refuses, SaysNothing),
    (admission.changed_governance_refuses, DecidesAnyway),
    (admission.changed_controls_refuse, trusting(basis=_basis(controls=_controls))),
    (admission.changed_content_refuses, trusting(basis=_basis(newest_digest=_digest))),
    (admission.vanished_content_refuses, trusting(basis=_basis(newest_digest=_digest))),
    (admission.changed_dependency_refuses, trusting(basis=_basis(looked_at=lambda store, key: ()))),
    (admission.vanished_dependency_refuses, trusting(basis=_basis(looked_at=lambda store, key: ()))),
    (admission.pushed_dependency_refuses, trusting(basis=_basis(looked_at=lambda store, key: ()))),
    (admission.at_most_one_push_per_asset, ForgetsUnknown),
    (admission.unknown_keeps_an_operation_open, ForgetsUnknown),
    (admission.every_outcome_but_unknown_ends_it, NeverEnds),
    (admission.an_operation_ends_once, EntersLateEnds),
    (admission.a_window_counts_starts, trusting(reservations=lambda store, admit: ())),
    (admission.a_window_counts_starts, LosesReservations),
    (admission.what_is_held_is_released_by_the_outcome, trusting(reservations=lambda store, admit: ())),
    (admission.what_is_held_is_released_by_the_outcome, ForgetsUnknown),
    (
        admission.all_limits_or_none,
        trusting(reservations=lambda store, admit: tuple(r for r in admit.reservations if r.limit > 1)),
    ),
    (
        admission.an_approval_is_of_exactly_one_diff_of_one_asset,
        trusting(approval=lambda store, admit: False),
    ),
    (admission.epochs_only_grow, OneLease),
    (
        history.decisions_come_newest_first,
        with_records(decisions=lambda right, *args, **rest: right.decisions(*args, **rest)[::-1]),
    ),
    (history.a_standing_is_as_old_as_its_verdict, with_records(standing=_youngest_standing)),
    (history.a_touch_is_no_decision, TouchDecides),
    (history.controls_stand_until_lifted_or_run_out, with_records(controls=_controls_for_ever)),
    (history.controls_stand_until_lifted_or_run_out, LiftsForeignControls),
    (history.the_version_of_controls_grows_with_every_word, with_records(controls=_version_for_ever)),
]


def _name(case: object) -> str:
    return str(getattr(case, "__name__", case))


@pytest.mark.parametrize(("rule", "broken"), BREAKS, ids=_name)
def test_a_store_that_breaks_a_rule_is_caught_by_it(rule: Rule, broken: type[Broken], tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        rule(Subject(lambda: broken(SqliteStore(tmp_path / "state"))))


def test_a_store_that_forgets_is_caught(tmp_path: Path) -> None:
    files = iter(range(10))
    forgetful = Subject(lambda: SqliteStore(tmp_path / f"state-{next(files)}"))
    with pytest.raises(AssertionError, match="after opening again"):
        incarnations.what_was_committed_outlives_the_process(forgetful)


def test_a_store_that_only_passes_on_keeps_the_rules(tmp_path: Path) -> None:
    for rule in dict.fromkeys(rule for rule, _ in BREAKS):
        rule(Subject(lambda name=rule.__name__: Broken(SqliteStore(tmp_path / name))))  # type: ignore[misc]
