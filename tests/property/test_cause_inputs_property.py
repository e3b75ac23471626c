"""Inputs of root causes that are kept up to date are the same as those that are read at once."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lehr.model.asset import AssetId, make_asset
from lehr.model.decision import Condition, Status, Verdict
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.reason import Reason
from lehr.model.writes import Prune, RecordDecision, Reschedule, SetControl, Write
from lehr.query import cause_inputs as module
from lehr.query.cause_inputs import CauseInputs, cause_inputs
from lehr.query.cause_reader import read_root_causes
from lehr.query.partition_view import Reading
from lehr.sdk.store import Store
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    THING,
    asset,
    control,
    decision,
    key,
    publication,
)

Step = Write | str | tuple[list[str], bool]

IDS = ("a", "b")
WAVES = {"select": {"ids": ["*"]}, "target_selection": {"waves": [{"where": {"stage": "none"}}]}}

ids = st.sampled_from(IDS)
conditions = st.sampled_from(
    [
        Condition(Status.CONVERGED, Reason.AS_INTENDED, "as intended"),
        Condition(Status.CONVERGED, Reason.AWAITING_RELEASE, "not released yet"),
        Condition(Status.WAITING, Reason.DEPENDENCY_DIFFERS, "b differs"),
        Condition(Status.STALLED, Reason.PUSH_STALLED, "exit 1"),
    ]
)
waits = st.lists(ids.map(AssetId), max_size=2, unique=True).map(tuple)
recorded = st.builds(
    lambda id, condition, awaits, others: RecordDecision(
        replace(
            decision(id),
            condition=condition,
            awaits=awaits,
            verdicts=(Verdict("depends-on", allow=not others, message="", wait_for=others),),
        )
    ),
    ids,
    conditions,
    waits,
    waits,
)
rescheduled = st.builds(lambda id, condition: Reschedule(key(id), condition, NOW), ids, conditions)
frozen = st.just("freeze")
pruned = st.just(Prune(PARTITION, 1, NOW + 10))
published = st.tuples(st.lists(ids, unique=True), st.booleans())
steps = st.lists(st.one_of(*[recorded] * 8, rescheduled, frozen, pruned, published), max_size=12)


def write(store: Store, step: Step) -> None:
    """Commit a write, or a freeze; or publish exactly these assets, with or without a policy."""
    if isinstance(step, str):
        step = SetControl(control(f"k{store.records.position(PARTITION)}"))
    if not isinstance(step, tuple):
        store.commit([step])
        return
    newest = store.intent.newest(PARTITION)
    base = 0 if newest is None else newest.sequence
    before = {head.id for head in store.intent.heads(PARTITION)}
    wanted, governed = step
    policy = [make_asset(AssetId("policy"), ROLLOUT_POLICY, WAVES, {})] if governed else []
    upserts = [*(asset(id, str(base)) for id in wanted), *policy]
    gone = sorted(before - {item.id for item in upserts})
    store.commit([publication(base, *upserts, removals=gone)])


def reading(store: Store) -> Reading:
    return Reading(store, PARTITION, NOW, lambda type: type != THING)


@settings(max_examples=80)
@given(steps, st.lists(st.booleans(), min_size=12, max_size=12))
def test_inputs_that_are_kept_are_those_of_now(steps: list[Step], looked: list[bool]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(SqliteStore(Path(folder) / "state.sqlite")) as store,
    ):
        write(store, (list(IDS), False))
        kept: CauseInputs | None = None
        for step, look in zip(steps, looked, strict=False):
            write(store, step)
            if look:
                kept = cause_inputs(reading(store), kept)
        kept = cause_inputs(reading(store), kept)
        fresh = cause_inputs(reading(store))
        assert kept == fresh
        assert read_root_causes(reading(store), inputs=kept) == read_root_causes(reading(store))


def test_a_change_reads_only_what_has_changed(tmp_path: Path) -> None:
    with contextlib.closing(SqliteStore(tmp_path / "state.sqlite")) as store:
        write(store, (list(IDS), False))
        stalled = Condition(Status.STALLED, Reason.PUSH_STALLED, "exit 1")
        store.commit([RecordDecision(replace(decision("a"), condition=stalled))])
        kept = cause_inputs(reading(store))
        store.commit([RecordDecision(replace(decision("b"), condition=stalled))])
        store.commit([RecordDecision(decision("a"))])
        with mock.patch.object(type(store.records), "unsettled", side_effect=AssertionError):
            kept = cause_inputs(reading(store), kept)
        assert list(kept.unsettled) == ["b"]
        assert kept == cause_inputs(reading(store))


@pytest.mark.parametrize("most", [0, 1])
def test_after_too_many_changes_everything_is_read(tmp_path: Path, most: int) -> None:
    with contextlib.closing(SqliteStore(tmp_path / "state.sqlite")) as store:
        write(store, (list(IDS), False))
        kept = cause_inputs(reading(store))
        for id in IDS:
            store.commit([RecordDecision(decision(id))])
        with mock.patch.object(module, "_MOST_CHANGES", most):
            assert cause_inputs(reading(store), kept) == cause_inputs(reading(store))
