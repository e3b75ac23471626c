"""The roster: what it keeps is what a new one reads, and a step needs only what it is given."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest

from lehr.base.digest import Digest
from lehr.base.errors import TransientError
from lehr.enforce.governance import Governance, load
from lehr.model.addons import ADDONS, LABELS, Labels
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.decision import Condition, Decision, Status, Verdict
from lehr.model.diff import Goal
from lehr.model.governance import GOVERNANCE_TYPES, ROLLOUT_POLICY
from lehr.model.incarnation import Candidate
from lehr.model.operation import LedgerEntry, Operation, Result
from lehr.model.reason import Reason
from lehr.model.references import Reference
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.selector import Selector
from lehr.model.types import AssetType, Registry
from lehr.model.writes import Adopt, Prune, Publish, RecordDecision, WriteReleases
from lehr.rollouts.course import Course, Rollout
from lehr.rollouts.members import Member
from lehr.rollouts.plan import BASELINES_AT_ONCE, plan
from lehr.rollouts.policy import ROLLOUT_POLICY_TYPE, Policy, RolloutPolicy
from lehr.store.sqlite import SqliteStore
from lehr.strategist.group import Group
from lehr.strategist.roster import Roster

SHOP = Partition("shop")
NOW = 1000.0
IDS = [AssetId(f"m{number}") for number in range(8)]


class Payload(msgspec.Struct, frozen=True):
    value: str = ""
    reads: tuple[Annotated[str, Reference()], ...] = ()


REGISTRY = Registry((AssetType("test.Thing", Payload), ROLLOUT_POLICY_TYPE, *GOVERNANCE_TYPES), ADDONS)


class Shop:
    """A partition to which random things happen."""

    def __init__(self, store: SqliteStore, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.there: set[AssetId] = set()
        self._numbers = iter(range(10**6))
        self.publish([make_asset(AssetId("policy"), ROLLOUT_POLICY, self.rules("group"), {})])
        self.change(len(IDS))

    @staticmethod
    def rules(unit: str) -> RolloutPolicy:
        return RolloutPolicy(Selector(ids=("m*",)), unit=unit)

    @property
    def sequence(self) -> int:
        newest = self.store.intent.newest(SHOP)
        return 0 if newest is None else newest.sequence

    def publish(self, upserts: list, removals: tuple[AssetId, ...] = ()) -> None:  # type: ignore[type-arg]
        mentions = {item.id: tuple(REGISTRY.mentions(item)) for item in upserts}
        candidate = Candidate(SHOP, self.sequence, (), Digest("generators"), tuple(upserts), removals)
        self.store.commit([Publish(candidate, mentions, (ROLLOUT_POLICY,), NOW)])

    def change(self, count: int) -> None:
        chance, made = self.chance, []
        for id in chance.sample(IDS, count):
            reads = tuple(chance.sample([other for other in IDS if other != id], chance.randrange(3)))
            addons: dict[str, object] = (
                {LABELS: Labels({"group": chance.choice("xyz")})} if chance.random() < 0.7 else {}
            )
            payload = Payload(chance.choice(("one", "two", "three")), reads)
            made.append(make_asset(id, "test.Thing", payload, addons))
            self.there.add(id)
        self.publish(made)

    def there_and_back(self) -> None:
        """An incarnation between two equal ones."""
        if self.there:
            id = self.chance.choice(sorted(self.there))
            now = self.store.intent.asset(AssetKey(SHOP, id), self.sequence)
            assert now is not None
            self.publish([make_asset(id, "test.Thing", Payload("in between"), {})])
            self.publish([now])

    def recent(self) -> int:
        """One of the last incarnations."""
        return max(1, self.sequence - self.chance.randrange(4))

    def remove(self) -> None:
        if self.there:
            gone = self.chance.choice(sorted(self.there))
            self.there.discard(gone)
            self.publish([], (gone,))

    def push(self) -> None:
        status = self.chance.choice((Status.CONVERGED, Status.PUSHING, Status.RETRYING, Status.TURNED_DOWN))
        id, content = self.chance.choice(IDS), self.recent()
        entry = LedgerEntry(SHOP, id, Digest("content"), content, Goal.PRESENT, None, NOW)
        decision = Decision(
            partition=SHOP,
            asset=id,
            at=NOW,
            content=content,
            governing=self.sequence,
            goal=Goal.PRESENT,
            condition=Condition(status, Reason.AS_INTENDED, ""),
            event="test",
        )
        self.store.commit([Adopt(entry), RecordDecision(decision)])

    def release(self, *ids: AssetId) -> None:
        governance, roster = self.governance(), Roster(self.store, REGISTRY, SHOP)
        found, withdrawn = [], []
        for id in ids or (self.chance.choice(IDS),):
            target = self.recent()
            content = roster.content(id, target)
            old = governance.releases.of(id)
            if self.chance.random() < 0.2 and old is not None and old.release is not None:
                withdrawn.append(old.release.id)
            elif content is not None:
                found.append(
                    Release(
                        id=f"r{next(self._numbers):06}",
                        partition=SHOP,
                        asset=id,
                        target=None if self.chance.random() < 0.1 else target,
                        kind=ReleaseKind.FORWARD,
                        basis=ReleaseBasis(governance.digest),
                        at=NOW,
                        content_key=content.key,
                        reads=content.reads,
                    )
                )
        version = governance.releases.version
        self.store.commit(
            [WriteReleases(SHOP, version, governance.digest, NOW, tuple(found), tuple(withdrawn))]
        )

    def govern(self) -> None:
        unit = self.chance.choice(("", "group"))
        self.publish([make_asset(AssetId("policy"), ROLLOUT_POLICY, self.rules(unit), {})])

    def governance(self) -> Governance:
        newest = self.store.intent.newest(SHOP)
        assert newest is not None
        return load(self.store, REGISTRY, newest, NOW)

    def rollout(self) -> Rollout | None:
        """One that has got somewhere."""
        if self.chance.random() < 0.3:
            return None
        some = self.chance.sample([*IDS, "x", "y", "z"], 3)
        before = {id: self.chance.randint(0, self.sequence) for id in IDS}
        return Rollout("r", self.recent(), NOW, dict.fromkeys(some, NOW), before)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    found = SqliteStore(tmp_path / "state.sqlite")
    yield found
    found.close()


def step_of(policy: Policy, rollout: Rollout | None, members: list[Member], sequence: int) -> object:
    return plan(policy.payload, Course(rollout), members, sequence, NOW, since_look=10.0, new_id="new")


@pytest.mark.parametrize("seed", range(12))
def test_what_is_kept_is_what_is_there_and_enough_for_a_step(store: SqliteStore, seed: int) -> None:
    shop = Shop(store, seed)
    kept = Roster(store, REGISTRY, SHOP)
    happenings = (
        shop.there_and_back,
        lambda: shop.change(2),
        shop.remove,
        shop.push,
        shop.push,
        shop.release,
        shop.release,
        shop.govern,
    )
    for _ in range(40):
        for happening in shop.chance.choices(
            happenings, weights=(2, 4, 1, 4, 4, 4, 4, 1), k=shop.chance.randint(1, 3)
        ):
            happening()
        governance, rollout = shop.governance(), shop.rollout()
        [policy] = governance.policies.items
        found = kept.members(policy, rollout, governance, NOW)
        assert found == Roster(store, REGISTRY, SHOP).members(policy, rollout, governance, NOW)
        some = kept.taking_part(policy, rollout, governance, NOW)
        whole = {item.id: item for item in found}
        if any(not item.known and item.applied is not None for item in found):
            assert all(not item.known and item.applied is not None for item in some)
            assert all(item.applied_at == whole[item.id].applied_at for item in some)
            assert {item.id for item in some} == {
                item.id for item in found if not item.known and item.applied is not None
            }
        else:
            assert all(item == whole[item.id] for item in some)
        expected = step_of(policy, rollout, found, shop.sequence)
        assert step_of(policy, rollout, some, shop.sequence) == expected


# --- baselines ----------------------------------------------------------------------


def unreleased(number: int) -> Member:
    return Member(id=AssetId(f"m{number:05}"), unit=f"m{number:05}", newest=Digest("new"), known=False)


class Production:
    """Completes members, and counts how often it does."""

    def __init__(self, **fields: dict[AssetId, object]) -> None:
        self.looks = 0
        self._fields = fields

    def __call__(self, member: Member) -> Member:
        self.looks += 1
        given = {name: of[member.id] for name, of in self._fields.items() if member.id in of}
        return msgspec.structs.replace(member, **given)


def group(count: int) -> Group:
    found = Group()
    for number in range(count):
        found.put(unreleased(number))
    return found


def released(group: Group, members: list[Member]) -> None:
    for item in members:
        group.put(msgspec.structs.replace(item, known=True, released=Digest("old"), applied=None))


def test_baselines_of_many_look_at_each_about_twice() -> None:
    count = 10 * BASELINES_AT_ONCE
    members = group(count)
    has = [AssetId(f"m{number:05}") for number in range(0, count, 2)]  # the others are new
    look = Production(applied=dict.fromkeys(has, Digest("old")))
    steps = 0
    while some := members.share(look):
        assert len(some) <= BASELINES_AT_ONCE
        released(members, some)
        steps += 1
    assert steps == len(has) // BASELINES_AT_ONCE
    assert look.looks <= 2 * count


def test_members_that_are_being_pushed_wait_alone() -> None:
    members = group(3)
    old = dict.fromkeys((AssetId("m00000"), AssetId("m00001")), Digest("old"))
    busy: dict[AssetId, object] = {AssetId("m00000"): True}
    look = Production(applied=dict(old), busy=busy)
    some = members.share(look)
    assert [(item.id, item.busy) for item in some] == [("m00000", True), ("m00001", False)]
    released(members, [item for item in some if not item.busy])
    assert [item.id for item in members.share(look)] == ["m00000"]  # it is not forgotten
    busy.clear()
    assert [item.busy for item in members.share(look)] == [False]


def test_no_content_is_kept_of_what_takes_no_part(store: SqliteStore) -> None:
    shop = Shop(store, 1)
    key = AssetKey(SHOP, IDS[0])
    assert store.intent.asset(key, shop.sequence) is not None
    roster = Roster(store, REGISTRY, SHOP)
    governance = shop.governance()
    [policy] = governance.policies.items
    roster.taking_part(policy, Rollout("r", 1, NOW, {}, dict.fromkeys(IDS, 1)), governance, NOW)
    assert roster.contents._known
    freed = tuple(
        Release(
            id=f"f{id}",
            partition=SHOP,
            asset=id,
            target=None,
            kind=ReleaseKind.PERSON,
            basis=ReleaseBasis(governance.digest),
            at=NOW,
        )
        for id in IDS
    )
    store.commit([WriteReleases(SHOP, governance.releases.version, governance.digest, NOW, freed)])
    assert roster.taking_part(policy, None, shop.governance(), NOW) == []
    assert not roster.contents._known


class FailingReads:
    """A store whose reads of assets fail once, after `left` of them."""

    def __init__(self, store: SqliteStore) -> None:
        self.intent, self.records = self, store.records
        self.left: int | None = None
        self._intent = store.intent

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise TransientError("the state file is locked")
        return self._intent.asset(key, sequence)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._intent, name)


def test_a_read_that_fails_loses_no_member(store: SqliteStore) -> None:
    """Seed 2154 with a rollout policy: the readers of a changed asset took part no longer."""
    shop, failing = Shop(store, 1), FailingReads(store)
    kept = Roster(failing, REGISTRY, SHOP)

    def found(roster: Roster) -> list[Member]:
        governance = shop.governance()
        [policy] = governance.policies.items
        return roster.members(policy, None, governance, NOW)

    found(kept)
    reads, failed = 0, True
    while failed:
        shop.publish([make_asset(IDS[0], "test.Thing", Payload(f"after {reads}"), {})])
        failing.left = reads
        with contextlib.suppress(TransientError):
            found(kept)
        failed, failing.left = failing.left is None, None
        assert found(kept) == found(Roster(store, REGISTRY, SHOP)), f"after {reads} reads"
        reads += 1
    assert reads > 4, "no read has failed that matters"


class WithPush:
    """The records of a store, and one more push."""

    def __init__(self, store: SqliteStore, push: Operation) -> None:
        self.intent, self.records = store.intent, self
        self._records, self._push = store.records, push

    def operations(self, partition: Partition, asset: AssetId, limit: int) -> list[Operation]:
        return [self._push]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)


def released_to_newest(shop: Shop, id: AssetId, release: str) -> None:
    governance = shop.governance()
    content = Roster(shop.store, REGISTRY, SHOP).content(id, shop.sequence)
    assert content is not None
    found = Release(
        id=release,
        partition=SHOP,
        asset=id,
        target=shop.sequence,
        kind=ReleaseKind.FORWARD,
        basis=ReleaseBasis(governance.digest),
        at=NOW,
        content_key=content.key,
        reads=content.reads,
    )
    version = governance.releases.version
    shop.store.commit([WriteReleases(SHOP, version, governance.digest, NOW, (found,))])


def decided(shop: Shop, id: AssetId, release: str) -> None:
    decision = Decision(
        partition=SHOP,
        asset=id,
        at=NOW,
        content=shop.sequence,
        governing=shop.sequence,
        goal=Goal.PRESENT,
        condition=Condition(Status.STALLED, Reason.DIFF_STALLED, f"under {release}"),
        event="test",
        evidence={"release": release},
    )
    shop.store.commit([RecordDecision(decision)])


def in_play(shop: Shop, id: AssetId, store: Any) -> Member:
    governance = shop.governance()
    [policy] = governance.policies.items
    rollout = Rollout("r", shop.sequence, NOW, {}, dict.fromkeys(IDS, 1))
    members = Roster(store, REGISTRY, SHOP).members(policy, rollout, governance, NOW)
    unit = next(member.unit for member in members if member.id == id)
    rollout = Rollout("r", shop.sequence, NOW, {unit: NOW}, dict.fromkeys(IDS, 1))
    found = Roster(store, REGISTRY, SHOP).members(policy, rollout, governance, NOW)
    return next(member for member in found if member.id == id)


def failed_push(id: AssetId, content: int, release: str) -> Operation:
    """A push that failed of an asset's content at an incarnation, under a release."""
    return Operation(
        "p1",
        SHOP,
        id,
        "test.Thing",
        Goal.PRESENT,
        content,
        content,
        Digest("content"),
        Digest("diff"),
        1,
        NOW,
        NOW,
        Result.FAILED,
        "no disk",
        release=release,
    )


def test_no_look_from_before_a_release_is_evidence_against_it(store: SqliteStore) -> None:
    shop, id = Shop(store, 1), IDS[0]
    released_to_newest(shop, id, "new")
    decided(shop, id, "old")
    before = in_play(shop, id, store)
    assert before.good is None
    assert "under old" in before.why
    decided(shop, id, "new")
    assert in_play(shop, id, store).good is False


@pytest.mark.parametrize(("release", "good"), [("old", None), ("new", False)])
def test_no_push_from_before_a_release_is_evidence_against_it(
    store: SqliteStore, release: str, good: bool | None
) -> None:
    shop, id = Shop(store, 1), IDS[0]
    released_to_newest(shop, id, "new")
    push = failed_push(id, shop.sequence, release)
    assert in_play(shop, id, WithPush(store, push)).good is good


def test_content_needs_its_soak_unless_its_last_push_was_certainly_of_other_content(
    store: SqliteStore,
) -> None:
    """Seed 5190 with a rollout policy: the incarnation of that push was pruned, and its soak was skipped."""
    shop, id = Shop(store, 1), IDS[0]
    shop.publish([make_asset(id, "test.Thing", Payload("pushed before"), {})])
    pushed = shop.sequence
    shop.publish([make_asset(id, "test.Thing", Payload("found"), {})])
    released_to_newest(shop, id, "new")
    store.commit([Adopt(LedgerEntry(SHOP, id, Digest("content"), shop.sequence, Goal.PRESENT, None, NOW))])
    found = [
        in_play(shop, id, WithPush(store, failed_push(id, content, "old"))).adopted
        for content in (pushed, shop.sequence)
    ]
    assert found == [True, False]
    write: Prune | None = Prune(SHOP, keep=1, before=NOW + 1.0)
    while write is not None:
        [pruned] = store.commit([write])
        write = pruned.rest
    assert in_play(shop, id, WithPush(store, failed_push(id, pushed, "old"))).adopted is False


def test_a_member_waits_for_what_its_checks_wait_for_as_well_as_for_outputs(store: SqliteStore) -> None:
    shop, id = Shop(store, 1), IDS[0]
    released_to_newest(shop, id, "new")
    first, other, third = (AssetId(name) for name in ("first", "other", "third"))
    condition = Condition(Status.WAITING, Reason.DEPENDENCY_DIFFERS, "other differs")
    decision = Decision(
        partition=SHOP,
        asset=id,
        at=NOW,
        content=shop.sequence,
        governing=shop.sequence,
        goal=Goal.PRESENT,
        condition=condition,
        event="test",
        awaits=(first,),
        verdicts=(
            Verdict("depends-on", allow=False, message="", wait_for=(other, first)),
            Verdict("rate", allow=True, message="", wait_for=(third,)),
        ),
    )
    shop.store.commit([RecordDecision(decision)])
    assert in_play(shop, id, store).awaits == (first, other)
