"""The conformance suite of stores catches stores that break its rules."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lehr.base.digest import digest
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.evidence import Ended
from lehr.model.feed import FeedEntry
from lehr.model.incarnation import AssetChange, Incarnation
from lehr.model.operation import Operation
from lehr.model.writes import Pruned
from lehr.sdk.store import Head, PrunedError, Standing, Store, Unsettled
from lehr.sdk.watch import FeedGoneError
from lehr.store.sqlite import SqliteStore, connection
from lehr.testing.conformance.store import (
    RULES,
    Rule,
    Subject,
    admission,
    feed,
    history,
    imports,
    incarnations,
    leases,
    releases,
    retention,
    rollouts,
    transactions,
)
from lehr.testing.conformance.store.subject import NOW, PARTITION
from tests.integration.store.broken_stores import (
    AdmitsFirst,
    AdmitsWhatIsNotReleased,
    AnswersInReverse,
    AnyReleaseRefusesAll,
    Broken,
    DecidesAnyway,
    DecidesApart,
    DigestsHistory,
    EnforcesImports,
    EntersLateEnds,
    EverythingGoverns,
    EvidenceAfterARefusal,
    FirstHandleStays,
    FirstWordStands,
    Forgets,
    ForgetsInputsOfPushes,
    ForgetsUnknown,
    HoldsLeasesAgainstTheirOwner,
    ImportsAnything,
    KeepsLostLeases,
    LastWriterWins,
    LiftsForeignControls,
    LosesReservations,
    NeverEnds,
    NeverRenewsLeases,
    NeverReturnsLeases,
    NeverWithdraws,
    OneLease,
    OutputsAddUp,
    OutputsStay,
    Piecemeal,
    PinsToAnything,
    PrunesFeedsByTime,
    PrunesTooMuch,
    PrunesWhatIsReleased,
    ReadsAsItWasOpened,
    ReleasesForAnyone,
    ReleasesOneByOne,
    ReplacesImports,
    ReportsRefusals,
    ReturnsForeignLeases,
    SaysNothing,
    SaysWhatSqliteSays,
    StaysWhereAReadBegan,
    TakesAnyLease,
    TouchDecides,
    WritesAscii,
    WritesAtTheEnd,
    WritesHalf,
    WritesLater,
    _basis,
    _controls,
    _digest,
    _gone,
    _governance,
    _newer,
    _under_the_newest,
    forgetting,
    locked,
    pruning,
    refusing,
    trusting,
    with_intent,
    with_records,
)


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


def _whole_assets(
    right: Any, partition: Partition, sequence: int, types: Any = None, span: Any = None
) -> Iterator[Asset]:
    found: Iterator[Asset] = right.assets(partition, sequence, types)
    return found


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


def _all_released(right: Any, partition: Partition, since: int = 0) -> tuple[int, list[Any]]:
    found: tuple[int, list[Any]] = right.released(partition)
    return found


def _released_now(right: Any, partition: Partition, since: int = 0) -> tuple[int, list[Any]]:
    version, found = right.released(partition, since)
    return version, [item for item in found if item.release is not None]


def _evidence_by_time(right: Any, partition: Partition, after: int = 0, limit: int = 1000) -> list[Any]:
    return sorted(right.evidence(partition, after, limit), key=lambda item: float(item.at))


def _evidence_of_late(right: Any, partition: Partition, after: int = 0, limit: int = 1000) -> list[Any]:
    """Without what was written long ago."""
    return [item for item in right.evidence(partition, after, limit) if item.at > NOW]


def _evidence_without_ends(right: Any, partition: Partition, after: int = 0, limit: int = 1000) -> list[Any]:
    """Without the ends of all rollouts but the last."""
    found = right.evidence(partition, after, limit)
    ends = [item for item in found if isinstance(item.fact, Ended)][:-1]
    return [item for item in found if item not in ends]


def _releases_by_time(right: Any, key: AssetKey, limit: int = 100) -> list[Any]:
    return sorted(right.releases(key, limit), key=lambda item: -float(item.at))


def _version_for_ever(right: Any, partition: Partition, now: float) -> tuple[int, list[Any]]:
    return 0, right.controls(partition, now)[1]


def _controls_for_ever(right: Any, partition: Partition, now: float) -> tuple[int, list[Any]]:
    found: tuple[int, list[Any]] = right.controls(partition, 0.0)
    return found


def _live_assets(right: Any, partition: Partition, sequence: int, types: Any = None) -> Iterator[Asset]:
    ids = [item.id for item in right.assets(partition, sequence, types)]
    for id in ids:
        found = right.last(AssetKey(partition, id))
        if found is not None:
            yield found[0]


def _live_standings(right: Any, partition: Partition) -> Iterator[Standing]:
    for asset in [item.asset for item in right.standings(partition)]:
        found = right.standing(AssetKey(partition, asset))
        if found is not None:
            yield found


def _nothing_instead(right: Any, key: AssetKey, sequence: int) -> Asset | None:
    try:
        found: Asset | None = right.asset(key, sequence)
    except PrunedError:
        return None
    return found


def _since_it_first_came(right: Any, key: AssetKey, addon: str) -> float | None:
    first = right.incarnation(key.partition, 1)
    return first.created_at if first else None


def _first_changes(right: Any, *args: Any) -> list[FeedEntry]:
    return [replace(item, changes=item.changes[:1]) for item in right.feed(*args)]


def _every_other_entry(right: Any, *args: Any) -> list[FeedEntry]:
    return [item for item in right.feed(*args) if item.position % 2]


def _newest_entry(right: Any, *args: Any) -> list[FeedEntry]:
    entries: list[FeedEntry] = right.feed(*args)
    return entries[-1:]


def _nothing_instead_of_an_error(right: Any, *args: Any) -> list[FeedEntry]:
    try:
        entries: list[FeedEntry] = right.feed(*args)
    except FeedGoneError:
        return []
    return entries


def _what_is_left(right: Any, partition: Partition, after: int, limit: int = 100) -> list[FeedEntry]:
    for position in range(after, right.position(partition) + 1):
        with contextlib.suppress(FeedGoneError):
            entries: list[FeedEntry] = right.feed(partition, position, limit)
            return entries
    return []


def _without_steps(found: Operation | None) -> Operation | None:
    return None if found is None else replace(found, steps=())


BREAKS: list[tuple[Rule, type[Broken]]] = [
    (feed.every_change_has_its_entry, with_records(feed=_first_changes)),
    (feed.what_changes_nothing_has_no_entry, ReportsRefusals),
    (feed.positions_count_commits_without_a_gap, with_records(feed=_every_other_entry)),
    (
        feed.positions_count_commits_without_a_gap,
        with_records(feed=lambda right, partition, after, limit: right.feed(partition, after)),
    ),
    (feed.a_commit_that_failed_takes_no_position, Piecemeal),
    (feed.a_reader_misses_nothing_of_concurrent_commits, with_records(feed=_newest_entry)),
    (feed.a_position_that_never_was_is_refused, with_records(feed=_nothing_instead_of_an_error)),
    (feed.what_the_feed_has_lost_is_never_skipped, with_records(feed=_what_is_left)),
    (feed.what_the_feed_has_lost_is_never_skipped, forgetting("feed")),
    (feed.a_clock_that_goes_back_leaves_no_gap_in_the_feed, PrunesFeedsByTime),
    (
        incarnations.an_empty_store_knows_nothing,
        with_intent(partitions=lambda right: right.partitions() or [PARTITION]),
    ),
    (incarnations.what_was_committed_outlives_the_process, Forgets),
    (incarnations.answers_come_in_the_order_of_the_writes, AnswersInReverse),
    (
        incarnations.headers_say_what_an_incarnation_is,
        with_intent(incarnations=lambda right, *args: right.incarnations(*args)[::-1]),
    ),
    (incarnations.equal_contents_have_equal_digests, DigestsHistory),
    (incarnations.governance_is_of_governing_assets_alone, EverythingGoverns),
    (
        incarnations.partitions_do_not_see_each_other,
        with_intent(mentioned_by=lambda right, key: right.mentioned_by(AssetKey(PARTITION, key.id))),
    ),
    (admission.unrelated_content_does_not_refuse, refusing(_newer)),
    (admission.an_asset_that_left_intent_can_be_pushed, refusing(_gone)),
    (
        admission.a_clock_that_was_ahead_blocks_nothing,
        with_records(usage=lambda right, limit, now: right.usage(limit, now + 1e6)),
    ),
    (
        history.an_empty_store_has_no_history,
        with_records(controls=lambda right, *args: (1 + right.controls(*args)[0], right.controls(*args)[1])),
    ),
    (
        history.standings_come_by_id,
        with_records(standings=lambda right, partition: reversed(list(right.standings(partition)))),
    ),
    (
        history.standings_are_counted_by_status_and_reason,
        with_records(standing_counts=lambda right, partition: right.standing_counts(partition)[::-1]),
    ),
    (
        admission.an_operation_keeps_what_its_plugin_reported,
        with_records(operation=lambda right, partition, id: _without_steps(right.operation(partition, id))),
    ),
    (
        history.what_is_unsettled_comes_with_what_it_waits_for,
        with_records(unsettled=lambda right, partition: map(Unsettled, right.standings(partition))),
    ),
    (
        history.what_is_unsettled_comes_with_what_it_waits_for,
        with_records(
            unsettled=lambda right, partition: (
                Unsettled(item.standing) for item in right.unsettled(partition)
            )
        ),
    ),
    (history.what_had_no_turn_is_told, with_records(without_turn=lambda right, partition: [])),
    (history.the_ledger_keeps_the_last_word, FirstWordStands),
    (history.the_last_handle_is_kept_until_it_is_forgotten, FirstHandleStays),
    (history.the_last_outputs_are_kept_until_they_are_forgotten, OutputsAddUp),
    (history.the_last_outputs_are_kept_until_they_are_forgotten, OutputsStay),
    (
        history.the_last_attempt_is_kept,
        with_records(
            attempt=lambda right, partition: (
                (found := right.attempt(partition)) and replace(found, diagnostics=())
            )
        ),
    ),
    (
        history.commands_are_kept_for_ever,
        with_records(audit=lambda right, partition, limit=100, before=None: right.audit(partition, 1)),
    ),
    (retention.what_nobody_needs_is_pruned, pruning(keep=1000)),
    (retention.what_nobody_needs_is_pruned, with_intent(asset=_nothing_instead)),
    (retention.reads_that_were_given_up_hold_back_no_others, StaysWhereAReadBegan),
    (retention.what_is_kept_reads_as_before, pruning(before=1e12)),
    (retention.what_is_kept_reads_as_before, PrunesTooMuch),
    (retention.what_is_young_stays, pruning(before=1e12)),
    (retention.what_is_young_stays, pruning(keep=1)),
    (retention.what_is_pinned_stays, forgetting("control")),
    (retention.what_is_applied_stays, forgetting("ledger")),
    (retention.what_is_under_way_stays, forgetting("operation")),
    (retention.the_last_to_hold_what_is_not_turned_down_stays, forgetting("standing")),
    (retention.a_pin_to_what_is_pruned_is_refused, PinsToAnything),
    (retention.old_records_are_pruned, pruning(decisions_above=2**60)),
    (retention.old_records_are_pruned, pruning(before=1e12)),
    (retention.old_records_are_pruned, forgetting("audit")),
    (retention.a_pruned_version_vouches_for_no_addon, with_intent(addon_since=_since_it_first_came)),
    (retention.what_would_be_pruned_is_told, with_records(prunable=lambda right, write: Pruned())),
    (retention.shares_that_were_over_long_ago_are_pruned, forgetting("reservation")),
    (retention.shares_that_were_over_long_ago_are_pruned, pruning(before=0.0)),
    (releases.releases_have_a_version_of_their_own, with_records(released=_all_released)),
    (releases.releases_outlive_the_process, Forgets),
    (releases.a_release_rests_on_what_its_writer_saw, ReleasesForAnyone),
    (releases.releases_are_written_together_or_not_at_all, ReleasesOneByOne),
    (releases.the_newest_release_counts, with_records(releases=_releases_by_time)),
    (releases.a_withdrawn_release_does_not_count, NeverWithdraws),
    (releases.changed_releases_refuse_pushes_of_their_assets, AdmitsWhatIsNotReleased),
    (releases.releases_of_other_assets_do_not_refuse, AnyReleaseRefusesAll),
    (releases.released_incarnations_are_kept, PrunesWhatIsReleased),
    (releases.what_counts_after_withdrawals_is_kept, PrunesWhatIsReleased),
    (releases.pruning_leaves_an_asset_governed, with_records(released=_released_now)),
    (
        rollouts.evidence_is_kept_in_the_order_in_which_it_was_written,
        with_records(evidence=_evidence_by_time),
    ),
    (rollouts.evidence_is_written_with_its_releases_or_not_at_all, EvidenceAfterARefusal),
    (rollouts.the_last_rollout_of_a_policy_is_not_pruned, forgetting("evidence")),
    (rollouts.no_failure_of_content_is_pruned, with_records(evidence=_evidence_of_late)),
    (rollouts.no_failure_of_content_is_pruned, with_records(evidence=_evidence_without_ends)),
    (imports.what_is_imported_is_read_and_never_in_force, EnforcesImports),
    (imports.a_damaged_file_imports_nothing, ImportsAnything),
    (imports.another_of_the_same_name_replaces_only_when_told, ReplacesImports),
    (transactions.what_was_committed_needs_no_close, WritesAtTheEnd),
    (transactions.handles_see_each_others_commits, ReadsAsItWasOpened),
    (transactions.answers_are_of_one_moment, with_intent(assets=_live_assets)),
    (transactions.answers_are_of_one_moment, with_records(standings=_live_standings)),
    (transactions.values_come_back_as_they_were, WritesAscii),
    (
        transactions.partitions_are_known_from_the_first_word,
        with_intent(partitions=lambda right: [name for name in right.partitions() if right.newest(name)]),
    ),
    (leases.a_lost_lease_writes_nothing, KeepsLostLeases),
    (leases.a_lease_is_taken_when_it_is_free, TakesAnyLease),
    (leases.a_lease_is_taken_when_it_is_free, NeverReturnsLeases),
    (leases.an_owner_takes_back_its_own_lease, HoldsLeasesAgainstTheirOwner),
    (leases.a_lease_is_renewed, NeverRenewsLeases),
    (leases.only_the_newest_lease_is_returned, ReturnsForeignLeases),
    (transactions.trouble_is_named_and_loses_nothing, WritesLater),
    (transactions.trouble_is_named_and_loses_nothing, SaysWhatSqliteSays),
    (transactions.trouble_is_named_and_loses_nothing, WritesHalf),
    (incarnations.a_commit_is_whole_or_not_at_all, Piecemeal),
    (incarnations.publishing_compares_the_base, LastWriterWins),
    (incarnations.past_incarnations_never_change, with_intent(asset=_latest_asset)),
    (incarnations.past_incarnations_never_change, with_intent(assets=_newest_assets)),
    (incarnations.digests_can_be_recomputed, with_intent(incarnations=_made_up_digests)),
    (incarnations.digests_can_be_recomputed, with_intent(assets=_without_last_asset)),
    (incarnations.the_last_version_outlives_a_removal, with_intent(last=lambda right, key: None)),
    (
        incarnations.the_next_change_is_found,
        with_intent(next_change=lambda right, key, sequence: sequence + 1),
    ),
    (incarnations.types_select, with_intent(assets=_unsorted_assets)),
    (incarnations.spans_select, with_intent(assets=_whole_assets)),
    (
        incarnations.rows_are_the_assets,
        with_intent(rows=lambda right, partition, sequence, *_narrower: right.rows(partition, sequence)),
    ),
    (incarnations.heads_are_of_the_newest_incarnation, with_intent(heads=_all_heads)),
    (incarnations.changes_go_both_ways, with_intent(changes=_forth_only)),
    (
        incarnations.mentions_follow_the_newest_incarnation,
        with_intent(mentioned_by=lambda right, key: [(AssetId("a"), "/payload/0")]),
    ),
    (
        incarnations.mentions_of_the_past_are_remembered,
        with_intent(
            past_and_present_referrers=lambda right, key: [id for id, _ in right.mentioned_by(key)],
        ),
    ),
    (
        incarnations.claims_follow_the_newest_incarnation,
        with_intent(claimed_by=lambda right, partition, claim: [AssetId("a"), AssetId("b")]),
    ),
    (incarnations.an_addon_stands_since_it_came, with_intent(addon_since=_since_last_version)),
    (admission.admission_starts_an_operation, DecidesApart),
    (admission.an_overtaken_lease_admits_nothing, OneLease),
    (admission.an_admission_sees_the_writes_before_it, AdmitsFirst),
    (admission.changed_governance_refuses, trusting(basis=_basis(governance=_governance))),
    (admission.changed_governance_refuses, SaysNothing),
    (admission.changed_governance_refuses, DecidesAnyway),
    (admission.changed_controls_refuse, trusting(basis=_basis(controls=_controls))),
    (admission.changed_controls_of_a_dependency_refuse, trusting(basis=_basis(others=lambda store, key: ()))),
    (admission.lifted_controls_refuse, trusting(basis=_basis(controls=_controls))),
    (
        admission.controls_of_other_assets_do_not_refuse,
        trusting(basis=_basis(versions=lambda store, key: ())),
    ),
    (admission.changed_content_refuses, trusting(basis=_basis(newest_digest=_digest))),
    (admission.vanished_content_refuses, trusting(basis=_basis(newest_digest=_digest))),
    (admission.changed_dependency_refuses, trusting(basis=_basis(looked_at=lambda store, key: ()))),
    (admission.vanished_dependency_refuses, trusting(basis=_basis(looked_at=lambda store, key: ()))),
    (admission.a_newer_incarnation_refuses_a_turndown, trusting(operation=_under_the_newest)),
    (admission.pushed_dependency_refuses, trusting(basis=_basis(looked_at=lambda store, key: ()))),
    (admission.at_most_one_push_per_asset, ForgetsUnknown),
    (admission.unknown_keeps_an_operation_open, ForgetsUnknown),
    (admission.every_outcome_but_unknown_ends_it, NeverEnds),
    (admission.an_operation_ends_once, EntersLateEnds),
    (admission.a_window_counts_starts, trusting(reservations=lambda store, admit: ())),
    (admission.a_window_counts_starts, LosesReservations),
    (
        admission.what_is_tried_again_counts_once,
        trusting(reservations=lambda store, admit: tuple(replace(r, once=False) for r in admit.reservations)),
    ),
    (
        admission.one_share_counts_against_several_limits,
        trusting(reservations=lambda store, admit: admit.reservations[:1]),
    ),
    (
        admission.a_long_turn_counts_what_started_in_between,
        trusting(reservations=lambda store, admit: admit.reservations if admit.operation.id == "o1" else ()),
    ),
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
    (history.a_decision_keeps_its_inputs, ForgetsInputsOfPushes),
    (
        history.a_decision_keeps_its_inputs,
        with_records(decision=lambda right, partition, number: right.decision(PARTITION, number)),
    ),
    (history.a_standing_is_as_old_as_its_verdict, with_records(standing=_youngest_standing)),
    (history.a_touch_is_no_decision, TouchDecides),
    (history.controls_stand_until_lifted_or_run_out, with_records(controls=_controls_for_ever)),
    (history.controls_stand_until_lifted_or_run_out, LiftsForeignControls),
    (
        history.the_controls_of_another_time_are_those_that_were_active_then,
        with_records(past_controls=lambda right, partition, at: right.controls(partition, at)[1]),
    ),
    (history.the_version_of_controls_grows_with_every_word, with_records(controls=_version_for_ever)),
]


def _name(case: object) -> str:
    return str(getattr(case, "__name__", case))


def subject(make: Callable[[Store], Store], path: Path) -> Subject:
    return Subject(lambda: make(SqliteStore(path)), troubles=(lambda: locked(path),))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)


@pytest.mark.parametrize(("rule", "broken"), BREAKS, ids=_name)
def test_a_store_that_breaks_a_rule_is_caught_by_it(rule: Rule, broken: type[Broken], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=f"^{rule.__name__}: "):
        rule(subject(broken, tmp_path / "state"))


def test_every_rule_of_stores_has_a_store_that_breaks_it() -> None:
    assert {rule for rule, _ in BREAKS} == set(RULES)


def test_a_store_that_only_passes_on_keeps_the_rules(tmp_path: Path) -> None:
    for rule in dict.fromkeys(rule for rule, _ in BREAKS):
        rule(subject(Broken, tmp_path / rule.__name__))
