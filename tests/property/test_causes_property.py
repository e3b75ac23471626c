"""Root causes against a slow definition of them, over random graphs of assets that wait."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.decision import Condition, Status, Verdict
from lehr.model.reason import Reason
from lehr.query.causes import Cause, CauseKind, Circumstances, root_causes_of
from lehr.sdk.store import Standing, Unsettled

IDS = [AssetId(f"a{number}") for number in range(9)]
SETTLED = AssetId("settled")
ABSENT = AssetId("absent")
CHECKS = ["freeze/f", "calendar/c", "rate/r"]
POLICY = AssetId("waves")

others = st.sampled_from([*IDS, SETTLED, ABSENT])
verdicts = st.builds(
    lambda check, wait_for: Verdict(
        check, allow=False, reason="Because", message="it waits", wait_for=tuple(dict.fromkeys(wait_for))
    ),
    st.sampled_from([*CHECKS, "depends-on"]),
    st.lists(others, max_size=3),
)
conditions = st.one_of(
    st.builds(Condition, st.just(Status.WAITING), st.just("Because"), st.sampled_from(["one", "two"])),
    st.sampled_from(
        [
            Condition(Status.STALLED, Reason.PUSH_STALLED, "exit 1", "fix it"),
            Condition(Status.STALLED, Reason.NO_PLUGIN, "no plugin serves type t.A", "install a plugin"),
            Condition(Status.STALLED, Reason.NO_PLUGIN, "no plugin serves type t.B", "install a plugin"),
            Condition(Status.HELD, Reason.PAUSED, "paused by ana: debugging", "run `lehr resume`"),
            Condition(Status.CONVERGED, Reason.AWAITING_RELEASE, "as in incarnation 1"),
        ]
    ),
)


@st.composite
def partitions(draw: st.DrawFn) -> dict[AssetId, Unsettled]:
    found = {}
    for number, id in enumerate(draw(st.lists(st.sampled_from(IDS), unique=True))):
        condition = draw(conditions)
        standing = Standing(id, condition, 1000.0 + number, Digest(""))
        waits: tuple[tuple[AssetId, ...], tuple[Verdict, ...]] = ((), ())
        if condition.status is Status.WAITING:
            waits = draw(
                st.one_of(
                    st.tuples(st.just(()), st.lists(verdicts, max_size=3).map(tuple)),
                    st.tuples(st.lists(others, min_size=1, max_size=2, unique=True).map(tuple), st.just(())),
                )
            )
        found[id] = Unsettled(standing, *waits)
    return found


def unmet(item: Unsettled, partition: dict[AssetId, Unsettled]) -> list[AssetId]:
    named = [*item.awaits, *(id for verdict in item.verdicts for id in verdict.wait_for)]
    return [id for id in named if id in partition and id != item.standing.asset]


def cycle_of(id: AssetId, partition: dict[AssetId, Unsettled]) -> frozenset[AssetId]:
    """The assets that wait for it, and that it waits for; without it if it waits for none that does."""

    def reached(start: AssetId) -> set[AssetId]:
        found: set[AssetId] = set()
        ahead = [start]
        while ahead:
            for other in unmet(partition[ahead.pop()], partition):
                if other not in found:
                    found.add(other)
                    ahead.append(other)
        return found

    return frozenset(other for other in reached(id) if id in reached(other))


Key = tuple[object, ...]


def cause_of(id: AssetId, partition: dict[AssetId, Unsettled]) -> Key:
    """What the asset waits for in the end, step by step."""
    if cycle := cycle_of(id, partition):
        return (CauseKind.CYCLE, cycle)
    item = partition[id]
    condition = item.standing.condition
    if condition.reason == Reason.AWAITING_RELEASE:
        return (CauseKind.ROLLOUT, POLICY)
    first = item.verdicts[0] if item.verdicts else None
    names = [name for name in (item.awaits or (first.wait_for if first else ())) if name != id]
    for name in names:
        if name in partition:
            return cause_of(name, partition)
    if names:
        return (CauseKind.ASSET, names[0], first.reason if first else condition.reason)
    if first is not None:
        return (CauseKind.CHECK, first.check)
    if condition.reason in (Reason.NO_PLUGIN, Reason.PAUSED):
        return (CauseKind.CONDITION, condition.message)
    return (CauseKind.ASSET, id, condition.reason)


def key_of(cause: Cause, partition: dict[AssetId, Unsettled]) -> Key:
    match cause.kind:
        case CauseKind.CYCLE:
            return (cause.kind, cycle_of(AssetId(cause.root), partition))
        case CauseKind.CONDITION:
            return (cause.kind, cause.message)
        case CauseKind.ASSET:
            return (cause.kind, cause.root, cause.reason)
        case _:
            return (cause.kind, cause.root)


CIRCUMSTANCES = Circumstances(
    lambda id: Condition(Status.CONVERGED, Reason.AS_INTENDED) if id == SETTLED else None, lambda id: POLICY
)


@given(partitions())
def test_each_asset_counts_once_under_its_first_unmet_cause(partition: dict[AssetId, Unsettled]) -> None:
    causes = root_causes_of(partition, CIRCUMSTANCES, most=len(IDS))
    expected: dict[Key, set[AssetId]] = {}
    for id in partition:
        expected.setdefault(cause_of(id, partition), set()).add(id)
    assert {key_of(cause, partition): set(cause.examples) for cause in causes} == expected
    assert sum(cause.count for cause in causes) == len(partition)
    assert len({cause.id for cause in causes}) == len(causes)
    assert all(cause.count == len(cause.examples) for cause in causes)
    assert [cause.count for cause in causes] == sorted((cause.count for cause in causes), reverse=True)


@given(partitions())
def test_a_cycle_is_one_in_which_each_waits_for_the_next(partition: dict[AssetId, Unsettled]) -> None:
    for cause in root_causes_of(partition, CIRCUMSTANCES):
        assert bool(cause.cycle) is (cause.kind is CauseKind.CYCLE)
        if not cause.cycle:
            continue
        assert cause.cycle[0] == cause.cycle[-1] == cause.root
        assert len(set(cause.cycle)) == len(cause.cycle) - 1
        for one, next_one in zip(cause.cycle, cause.cycle[1:], strict=False):
            assert next_one in unmet(partition[one], partition)


@given(partitions(), st.sets(st.sampled_from(IDS)))
def test_assets_that_were_not_asked_for_do_not_count(
    partition: dict[AssetId, Unsettled], among: set[AssetId]
) -> None:
    whole = Counter(cause_of(id, partition) for id in partition if id in among)
    causes = root_causes_of(partition, CIRCUMSTANCES, most=len(IDS), among=among)
    assert {key_of(cause, partition): cause.count for cause in causes} == whole
    assert all(set(cause.examples) <= among for cause in causes)
