"""The store against a model of dictionaries, over random publications, pins and pruning."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from lehr.model.asset import Asset, AssetId
from lehr.model.control import ControlKind
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import bucket_of, incarnation_digest
from lehr.model.writes import LiftControl, Prune, Pruned, Refused, SetControl, TakeLease, Write
from lehr.sdk.store import CheckableStore, PrunedError
from lehr.store.sqlite import SqliteStore
from lehr.testing.conformance.store.subject import (
    NOW,
    PARTITION,
    RULE,
    THING,
    asset,
    contents,
    control,
    key,
    publication,
)
from tests.codes import raises

# The first three share a bucket of the digest.
IDS = [*[f"a{n}" for n in range(20_000) if bucket_of(AssetId(f"a{n}")) == 7][:3], "b", "c", "d"]
ids = st.sampled_from(IDS)
versions = st.builds(asset, ids, st.sampled_from("123"), type=st.sampled_from([THING, RULE]))
references = st.dictionaries(ids, st.lists(ids, max_size=3), max_size=4)

Contents = dict[str, Asset]

UNKNOWN = SimpleNamespace(partition=PARTITION)
"""A write of a kind that no store carries out."""


class StoreOfIncarnations(RuleBasedStateMachine):
    """Publishes, is refused and is opened again; every incarnation stays what it was."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="lehr-store-"))
        self.history: list[Contents] = [{}]
        self.headers: list[Incarnation] = []
        self.mentions: dict[str, list[str]] = {}
        self.pins: dict[int, str] = {}
        self.gone: set[int] = set()
        self.words = 0

    def opened(self) -> CheckableStore:
        """The store, anew."""
        return SqliteStore(self.folder / "state")

    @initialize()
    def begin(self) -> None:
        self.store = self.opened()

    @rule(
        upserts=st.lists(versions, max_size=5, unique_by=lambda item: item.id),
        gone=st.sets(ids),
        refer=references,
    )
    def publish(self, upserts: list[Asset], gone: set[str], refer: dict[str, list[str]]) -> None:
        write = self._publication(upserts, gone, refer)
        answer = self.store.commit([write])[0]
        assert isinstance(answer, Incarnation)
        self.headers.append(answer)

    @rule(
        upserts=st.lists(versions, min_size=1, max_size=3, unique_by=lambda item: item.id),
        behind=st.integers(1, 5),
    )
    def publish_over_an_old_base(self, upserts: list[Asset], behind: int) -> None:
        [answer] = self.store.commit([publication(len(self.headers) - behind, *upserts)])
        assert isinstance(answer, Refused)

    @rule(upserts=st.lists(versions, min_size=1, max_size=3, unique_by=lambda item: item.id))
    def fail_after_publishing(self, upserts: list[Asset]) -> None:
        writes: list[Write] = [publication(len(self.headers), *upserts), TakeLease(PARTITION, "one", 1.0)]
        with pytest.raises(KeyError):
            self.store.commit([*writes, UNKNOWN])  # type: ignore[list-item]

    @precondition(lambda self: self.headers)
    @rule(which=st.integers(0, 100))
    def pin(self, which: int) -> None:
        sequence = 1 + which % len(self.headers)
        if sequence in self.pins:
            return
        self.words += 1
        said = replace(control(f"p{self.words}", ControlKind.PIN), incarnation=sequence)
        [answer] = self.store.commit([SetControl(said)])
        assert isinstance(answer, Refused) == (sequence in self.gone)
        if answer is None:
            self.pins[sequence] = said.id

    @precondition(lambda self: self.pins)
    @rule(which=st.integers(0, 100))
    def unpin(self, which: int) -> None:
        sequence = sorted(self.pins)[which % len(self.pins)]
        self.store.commit([LiftControl(PARTITION, self.pins.pop(sequence), NOW)])

    @rule(keep=st.integers(1, 4), most=st.sampled_from([1, 3, 1000]))
    def prune(self, keep: int, most: int) -> None:
        wanted = Prune(PARTITION, keep, NOW + 1, most)
        going = {*range(1, len(self.headers) - keep + 1)} - {*self.pins, *self.gone}
        told = self.store.records.prunable(wanted)
        done, rest = Pruned(), cast(Prune | None, wanted)
        while rest is not None:
            [share] = self.store.commit([rest])
            done, rest = done.plus(share), share.rest
        self.gone |= going
        assert done.incarnations == len(going)
        # In shares, a tombstone may lose what it ended before it is counted itself.
        assert done.versions <= told.versions
        assert replace(told, rest=None, versions=0) == replace(done, versions=0)

    @precondition(lambda self: self.headers)
    @rule()
    def open_again(self) -> None:
        self.store.close()
        self.store = self.opened()

    @precondition(lambda self: self.headers)
    @rule(pair=st.tuples(st.integers(0, 100), st.integers(0, 100)))
    def changes_are_what_differs(self, pair: tuple[int, int]) -> None:
        before, after = (number % len(self.history) for number in pair)
        if {before, after} & self.gone:
            with raises("SDK106", PrunedError):
                list(self.store.intent.changes(PARTITION, before, after))
            return
        old, new = self.history[before], self.history[after]
        expected = [
            (id, old.get(id), new.get(id)) for id in sorted({*old, *new}) if old.get(id) != new.get(id)
        ]
        found = [
            (item.id, item.before, item.after) for item in self.store.intent.changes(PARTITION, before, after)
        ]
        assert found == expected

    @invariant()
    def every_incarnation_is_what_it_was(self) -> None:
        for sequence, expected in enumerate(self.history):
            if sequence in self.gone:
                with raises("SDK106", PrunedError):
                    contents(self.store, sequence)
                with raises("SDK106", PrunedError):
                    self.store.intent.asset(key(IDS[0]), sequence)
                continue
            assert contents(self.store, sequence) == [expected[id] for id in sorted(expected)]
            for id in IDS:
                assert self.store.intent.asset(key(id), sequence) == expected.get(id)
            for type in (THING, RULE):
                found = list(self.store.intent.assets(PARTITION, sequence, [type]))
                assert found == [expected[id] for id in sorted(expected) if expected[id].type == type]

    @invariant()
    def every_header_says_what_it_holds(self) -> None:
        found = self.store.intent.incarnations(PARTITION, 1000)
        assert found == [header for header in self.headers[::-1] if header.sequence not in self.gone]
        for header in self.headers:
            assert self.store.intent.incarnation(PARTITION, header.sequence) == header
            before, after = self.history[header.sequence - 1], self.history[header.sequence]
            assert header.digest == incarnation_digest((item.id, item.digest) for item in after.values())
            assert header.assets == len(after)
            assert header.added == len(after.keys() - before.keys())
            assert header.removed == len(before.keys() - after.keys())

    @invariant()
    def the_newest_is_indexed(self) -> None:
        newest = self.history[-1]
        heads = {head.id: (head.type, head.digest) for head in self.store.intent.heads(PARTITION)}
        assert heads == {id: (item.type, item.digest) for id, item in newest.items()}
        for id in IDS:
            expected = [
                source for source in sorted(self.mentions) for target in self.mentions[source] if target == id
            ]
            assert [source for source, _ in self.store.intent.mentioned_by(key(id))] == expected

    @invariant()
    def the_last_version_is_found(self) -> None:
        for id in IDS:
            kept = [held for sequence, held in enumerate(self.history) if sequence not in self.gone]
            versions = [held[id] for held in kept if id in held]
            found = self.store.intent.last(key(id))
            assert (found and found[0]) == (versions[-1] if versions else None)

    @invariant()
    def nothing_is_damaged(self) -> None:
        assert list(self.store.check(lambda partition: None)) == []

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    def _publication(self, upserts: list[Asset], gone: set[str], refer: dict[str, list[str]]) -> Write:
        """The next publication, which the model takes for granted."""
        newest = self.history[-1]
        changed = [item for item in upserts if newest.get(item.id) != item]
        removals = sorted(gone & newest.keys() - {item.id for item in changed})
        self.history.append({**newest, **{item.id: item for item in changed}})
        for id in [*removals, *(item.id for item in changed)]:
            self.mentions.pop(id, None)
        for id in removals:
            del self.history[-1][id]
        named = {str(item.id): refer[item.id] for item in changed if item.id in refer}
        self.mentions.update(named)
        return publication(len(self.headers), *changed, removals=removals, mentions=named)


StoreOfIncarnations.TestCase.settings = settings(
    max_examples=40, stateful_step_count=12, suppress_health_check=[HealthCheck.too_slow]
)
test_every_incarnation_stays_what_it_was = pytest.mark.timeout(120)(StoreOfIncarnations.TestCase)
