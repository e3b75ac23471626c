"""`plan`: one step of a rollout, and whole rollouts of random members."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lehr.base.digest import Digest, digest
from lehr.model.asset import AssetId
from lehr.model.evidence import (
    Begun,
    Commanded,
    Ended,
    Failed,
    Looked,
    RolloutCommand,
    RolloutEnd,
    UnitLook,
    Updated,
    Validated,
    WentBack,
    Withdrawn,
)
from lehr.model.release import ReleaseKind
from lehr.model.selector import Selector
from lehr.rollouts.course import Course, after
from lehr.rollouts.looking import looked
from lehr.rollouts.members import Member
from lehr.rollouts.plan import Grant, Step, plan
from lehr.rollouts.policy import RolloutPolicy, Validation
from lehr.rollouts.waves import TargetSelection, Wave

OLD, NEW, NEWER = digest("old"), digest("new"), digest("newer")
CANARY = TargetSelection((Wave(units=1, soak_seconds=30.0), Wave()))


def policy(selection: TargetSelection = CANARY, **fields: Any) -> RolloutPolicy:
    return RolloutPolicy(Selector(all=True), target_selection=selection, **fields)


def member(id: str, newest: Digest = NEW, released: Digest | None = OLD, **fields: Any) -> Member:
    given: dict[str, Any] = {"unit": id, "released_at": 1, "applied": released, "applied_at": 1, "good": True}
    return Member(id=AssetId(id), newest=newest, released=released, **(given | fields))


def step(
    course: Course,
    *members: Member,
    rules: RolloutPolicy | None = None,
    newest: int = 2,
    now: float = 100.0,
    since_look: float | None = None,
) -> Step:
    return plan(rules or policy(), course, members, newest, now, since_look=since_look, new_id="r1")


def course_of(*facts: Any, at: float = 90.0) -> Course:
    course = Course()
    for fact in facts:
        course = after(course, "r1", fact, at)
    return course


BEGUN = course_of(Begun(2))


def canary(*facts: Any) -> Course:
    return course_of(Begun(2), Updated(("a",), {AssetId("a"): 1}), *facts)


def updated(id: str, **fields: Any) -> Member:
    """A member that has the target's content, and is good."""
    given: dict[str, Any] = {
        "target": NEW,
        "before": OLD,
        "released_at": 2,
        "applied_at": 2,
        "release": f"release of {id}",
    }
    return member(id, released=NEW, **(given | fields))


def waiting(id: str, **fields: Any) -> Member:
    given: dict[str, Any] = {"target": NEW} | fields
    return member(id, **given)


# --- begin -------------------------------------------------------------------


def test_what_has_no_release_keeps_what_it_has_before_anything_else() -> None:
    found = step(Course(), member("a", released=None, known=False, applied=OLD), member("b"))
    assert found.grants == (Grant(AssetId("a"), 1, ReleaseKind.BASELINE),)
    assert found.facts == ()


def test_no_baseline_while_its_push_is_under_way() -> None:
    busy = member("a", released=None, known=False, applied=OLD, busy=True)
    found = step(Course(), busy)
    assert not found.writes
    assert "under way" in found.hold
    other = member("b", released=None, known=False, applied=OLD)
    assert step(Course(), busy, other).grants == (Grant(AssetId("b"), 1, ReleaseKind.BASELINE),)


def test_a_rollout_begins_when_something_wants_newer_content() -> None:
    assert step(Course(), member("a")).facts == (Begun(2),)
    assert not step(Course(), member("a", newest=OLD)).writes


def test_no_rollout_begins_while_all_that_want_it_are_held() -> None:
    found = step(Course(), member("a", held="pinned by ana: why"))
    assert not found.writes
    assert "pinned by ana" in found.hold


def test_content_that_failed_is_not_tried_again() -> None:
    ended = Ended(RolloutEnd.FAILED, "a: no", {AssetId("a"): NEW})
    course = course_of(Begun(2), ended)
    found = step(course, member("a"))
    assert not found.writes
    assert found.hold == "the rollout of this content has failed: a: no"
    assert step(course, member("a", newest=NEWER)).facts == (Begun(2),)


def test_content_is_retried_once_when_something_else_has_changed() -> None:
    ended = Ended(RolloutEnd.FAILED, "a: no", {AssetId("a"): NEW})
    once = course_of(Begun(2), ended)
    twice = after(after(once, "r1", Begun(2), 1.0), "r1", ended, 1.0)
    both = member("a"), member("b", newest=NEWER)
    assert step(once, *both).facts == (Begun(2),)
    assert not step(twice, *both).writes
    again = after(twice, "r1", Commanded(RolloutCommand.RETRY, "ana", "fixed"), 1.0)
    assert step(again, *both).facts == (Begun(2),)


def test_the_end_of_a_rollout_names_the_units_that_could_not_be_pushed() -> None:
    rules = policy(TargetSelection((Wave(),)))
    course = canary(Validated(("a",)))
    [*_, ended] = step(course, updated("a"), waiting("b", held="pinned by ana: why"), rules=rules).facts
    reached = "each unit that can be pushed has it, and is good"
    assert ended == Ended(RolloutEnd.COMPLETED, f"{reached}; b cannot be pushed now")
    [*_, ended] = step(course, updated("a"), rules=rules).facts
    assert ended == Ended(RolloutEnd.COMPLETED, "every unit has it, and is good")


# --- update ------------------------------------------------------------------


def test_the_first_wave_is_released_to_the_target() -> None:
    found = step(BEGUN, waiting("a"), waiting("b"))
    assert found.grants == (Grant(AssetId("a"), 2, ReleaseKind.FORWARD),)
    assert found.facts == (Updated(("a",), {AssetId("a"): 1}, wave=1),)


def test_a_release_that_was_never_carried_out_is_nothing_to_go_back_to() -> None:
    given_up = waiting("a", released=NEWER, released_at=2, release="r-a", applied=OLD, applied_at=1)
    found = step(BEGUN, given_up, waiting("b"))
    assert found.grants == (Grant(AssetId("a"), 2, ReleaseKind.FORWARD),)
    assert found.facts == (Updated(("a",), {AssetId("a"): 1}, 1),)
    assert found.withdrawn == ("r-a",)


def test_newer_content_goes_back_to_where_a_rollback_was_going() -> None:
    """Seed 5359 with a rollout policy: what was taken back counted again once its rollback was withdrawn."""
    going_back = waiting(
        "a", target=NEWER, newest=NEWER, applied=NEW, applied_at=2, release="r-a", taken_back=True
    )
    course = course_of(Begun(3))
    found = step(course, going_back, waiting("b", target=NEWER, newest=NEWER), newest=3)
    assert found.grants == (Grant(AssetId("a"), 3, ReleaseKind.FORWARD),)
    assert found.facts == (Updated(("a",), {AssetId("a"): 1}, 1),)
    assert not found.withdrawn


def test_the_next_wave_waits_for_exposure() -> None:
    course = canary(Looked({"a": UnitLook(True, 10.0)}), Validated(("a",)))
    early = step(course, updated("a"), waiting("b"), since_look=5.0)
    assert not early.grants
    late = step(course, updated("a"), waiting("b"), since_look=20.0)
    assert late.grants == (Grant(AssetId("b"), 2, ReleaseKind.FORWARD),)


def test_time_that_nobody_watched_is_no_exposure() -> None:
    course = canary(Looked({"a": UnitLook(True, 10.0)}), Validated(("a",)))
    found = step(course, updated("a"), waiting("b"), since_look=None, now=1e6)
    assert not found.grants
    found = step(course, updated("a"), waiting("b"), since_look=1000.0)
    assert found.facts[0] == Looked({"a": UnitLook(True, 30.0, 1000.0, settled=0.0)}), (
        "at most twice the usual distance"
    )


def test_the_deadline_of_a_wave_counts_the_time_that_somebody_watched() -> None:
    rules = policy(TargetSelection((Wave(units=1), Wave()), deadline_seconds=50.0))
    pending = updated("a", good=None, applied=OLD)
    early = canary(Looked({"a": UnitLook(None, 0.0, 20.0)}))
    for now in (110.0, 90_000.0, 60.0):  # as it should be, a day forward, and back before the release
        found = step(early, pending, waiting("b"), rules=rules, now=now, since_look=5.0)
        assert not found.hold, now
        assert found.again_in is not None
        late = canary(Looked({"a": UnitLook(None, 0.0, 50.0)}))
        assert "within the deadline" in step(late, pending, waiting("b"), rules=rules, now=now).hold, now


def test_the_first_look_of_a_process_is_written_even_if_nothing_is_known() -> None:
    """Time counts from the last look that was written: without one, no deadline would ever come."""
    course = canary(Looked({"a": UnitLook(None, 0.0, 20.0)}))
    pending = updated("a", applied=OLD, good=None)
    found = step(course, pending, waiting("b"), since_look=None)
    assert [type(fact) for fact in found.facts] == [Looked]
    assert not step(course, pending, waiting("b"), since_look=15.0).facts


def test_time_until_a_window_opens_brings_no_deadline_closer() -> None:
    course = canary(Looked({"a": UnitLook(None, 0.0, 3590.0)}))
    closed = updated("a", applied=OLD, good=None, why="Waiting OutsideWindow", waits=True)
    for since in (20.0, 100.0):
        found = step(course, closed, waiting("b"), since_look=since)
        assert not found.hold
    late = replace(closed, waits=False)
    assert "a is not good after 3600 s" in step(course, late, waiting("b"), since_look=20.0).hold


def test_what_production_had_already_needs_no_soak() -> None:
    course = canary(Looked({"a": UnitLook(True)}), Validated(("a",)))
    pushed = step(course, updated("a"), waiting("b"), since_look=1.0)
    assert not pushed.grants
    found = step(course, updated("a", adopted=True), waiting("b"), since_look=1.0)
    assert found.grants == (Grant(AssetId("b"), 2, ReleaseKind.FORWARD),)


def test_a_bad_look_pauses_exposure_and_does_not_void_it() -> None:
    good, bad = updated("a"), updated("a", good=False, why="no answer")
    first = looked(UnitLook(True, 12.0, 12.0), [bad], 10.0, 20.0, due=True)
    assert first == UnitLook(False, 12.0, 22.0, 1, "no answer", settled=0.0)
    second = looked(first, [good], 10.0, 20.0, due=True)
    assert second == UnitLook(True, 12.0, 32.0, settled=10.0), (
        "a good look after a bad one begins to count again"
    )
    assert looked(second, [good], 5.0, 20.0, due=False).exposure == 17.0


def test_what_it_had_before_its_push_is_no_evidence() -> None:
    found = step(canary(), updated("a", applied=OLD), waiting("b"))
    assert found.facts == (Looked({"a": UnitLook(None, why="the new content is not there yet")}),)


def test_members_that_never_got_the_content_prove_nothing() -> None:
    # The one that got it has left the unit.
    left = replace(waiting("b", released=NEW, target=NEW), unit="a")
    found = step(canary(), left, waiting("c"), since_look=10.0)
    assert not any(isinstance(fact, Looked | Validated) for fact in found.facts)
    assert found.facts == (Updated(("c",), {AssetId("c"): 1}, 1),)


def test_a_unit_does_not_wait_for_what_only_later_content_adds() -> None:
    looks = Looked({"a": UnitLook(None, 0.0, 5.0)})
    added = member("new", NEWER, None, unit="a", applied=None, applied_at=0, good=None, known=False)
    found = step(canary(looks), updated("a"), added, waiting("b"), newest=3, since_look=30.0)
    [look, validated] = found.facts
    assert isinstance(look, Looked)
    assert look.units["a"].good
    assert look.units["a"].settled is not None
    assert validated == Validated(("a",))


def test_a_unit_does_not_wait_for_the_turndown_of_what_was_never_there() -> None:
    looks = Looked({"a": UnitLook(None, 0.0, 5.0)})
    never = {"unit": "a", "applied": None, "applied_at": 0, "good": None, "known": False}
    leaving = member("old", NEWER, None, target=OLD, leaves=True, **never)
    found = step(canary(looks), updated("a"), leaving, waiting("b"), newest=3, since_look=30.0)
    assert Validated(("a",)) in found.facts


def test_a_unit_that_reverts_leaves_the_rollout() -> None:
    found = step(BEGUN, waiting("a", newest=OLD), waiting("b", newest=OLD), newest=3)
    assert [type(fact) for fact in found.facts] == [Ended]
    back = step(canary(), updated("a", newest=OLD), waiting("b", newest=OLD), newest=3)
    assert back.grants == (Grant(AssetId("a"), 3, ReleaseKind.FORWARD),)
    assert [type(fact) for fact in back.facts] == [WentBack, Ended]
    assert back.facts[-1].how is RolloutEnd.REVERTED  # type: ignore[union-attr]


def test_newer_content_replaces_what_was_released_nowhere() -> None:
    found = step(BEGUN, waiting("a", newest=NEWER), newest=3)
    assert [fact.how for fact in found.facts if isinstance(fact, Ended)] == [RolloutEnd.SUPERSEDED]
    busy = step(canary(), updated("a", newest=NEWER), waiting("b", newest=NEWER), newest=3)
    assert not any(isinstance(fact, Ended) for fact in busy.facts), "v2 goes on, and v3 waits"


def test_turndowns_wait_for_the_rest_of_their_unit() -> None:
    old = waiting("old", unit="eu", leaves=True)
    new = member("new", unit="eu", released=None, target=NEW, applied=None, good=None)
    assert [grant.asset for grant in step(BEGUN, new, old).grants] == ["new"]
    course = course_of(Begun(2), Updated(("eu",), {AssetId("new"): 0}))
    there = updated("new", unit="eu", before=None)
    found = step(course, there, old)
    assert [grant.asset for grant in found.grants] == ["old"]


# --- fail --------------------------------------------------------------------

BAD = {"good": False, "why": "no answer"}


def test_bad_looks_in_a_row_fail_and_roll_back() -> None:
    course = canary(Looked({"a": UnitLook(False, 0.0, 20.0, 2, "no answer")}))
    found = step(course, updated("a", **BAD), waiting("b"), since_look=10.0)
    assert found.grants == (Grant(AssetId("a"), 1, ReleaseKind.ROLLBACK),)
    assert [type(fact) for fact in found.facts] == [Looked, Failed, WentBack, Ended]
    assert found.facts[-1].quarantined == {"a": NEW, "b": NEW}  # type: ignore[union-attr]


def test_looks_between_the_regular_ones_do_not_count_as_bad() -> None:
    course = canary(Looked({"a": UnitLook(False, 0.0, 20.0, 2, "no answer")}))
    assert not step(course, updated("a", **BAD), since_look=1.0).grants


def test_a_policy_may_hold_instead_and_withdraws_what_waits() -> None:
    rules = policy(TargetSelection((Wave(),)), on_failure="hold")
    facts = Updated(("a", "b"), {AssetId("a"): 1, AssetId("b"): 1}), Failed("a", "no answer")
    course = course_of(Begun(2), *facts)
    waits = updated("b", applied=OLD, applied_at=1)
    found = step(course, updated("a", **BAD), waits, rules=rules)
    assert found.withdrawn == ("release of b",)
    assert found.grants == ()
    assert any(fact == Withdrawn(("b",)) for fact in found.facts)
    assert "a has failed: no answer" in found.hold


MOVED = course_of(
    Begun(2),
    Updated(("b",), {AssetId("x"): 1}),
    Withdrawn(("b",)),
    Updated(("a",), {AssetId("a"): 1}),
)
"""`x`, whose release was withdrawn, has a label of another unit now."""

PAUSED = Commanded(RolloutCommand.PAUSE, "ana", "because")


def test_only_releases_of_the_rollout_are_withdrawn() -> None:
    """The rollback of an earlier rollout was withdrawn, and what it had taken back counted again."""
    other = waiting("x", unit="a", before=OLD, release="rollback of x", taken_back=True)
    course = after(MOVED, "r1", PAUSED, 95.0)
    found = step(course, updated("a", applied=OLD, applied_at=1), other)
    assert found.withdrawn == ("release of a",)
    assert any(fact == Withdrawn(("a",)) for fact in found.facts)


def test_a_unit_is_withdrawn_whatever_its_other_members_had() -> None:
    other = waiting("x", unit="a", before=OLD, release="of another rollout", busy=True)
    course = after(MOVED, "r1", PAUSED, 95.0)
    assert step(course, updated("a", applied=OLD, applied_at=1), other).withdrawn == ("release of a",)


def test_only_what_the_rollout_has_released_goes_back() -> None:
    other = waiting("x", unit="a", before=OLD, release="of another rollout", released_at=7, applied_at=7)
    course = after(MOVED, "r1", Looked({"a": UnitLook(False, 0.0, 20.0, 2, "no answer")}), 95.0)
    found = step(course, updated("a", **BAD), other, since_look=10.0)
    assert [grant.asset for grant in found.grants] == ["a"]


def test_what_had_nothing_before_is_not_rolled_back() -> None:
    course = course_of(
        Begun(2), Updated(("a",), {AssetId("a"): 0}), Looked({"a": UnitLook(False, 0.0, 9.0, 9, "no")})
    )
    found = step(course, updated("a", before=None, **BAD), since_look=10.0)
    assert found.grants == ()
    assert isinstance(found.facts[-1], Ended)


# --- people ------------------------------------------------------------------


def test_a_promotion_counts_for_what_is_updated_now() -> None:
    promoted = canary(Commanded(RolloutCommand.PROMOTE, "ana", "seen"))
    found = step(promoted, updated("a", good=None), waiting("b"), waiting("c"))
    assert [grant.asset for grant in found.grants] == ["b", "c"]


def test_a_paused_rollout_updates_nothing() -> None:
    paused = canary(Validated(("a",)), Commanded(RolloutCommand.PAUSE, "ana", "lunch"))
    found = step(paused, updated("a"), waiting("b"), since_look=1000.0)
    assert found.grants == ()
    assert found.hold == "paused by ana: lunch"


def test_an_aborted_rollout_leaves_what_is_updated() -> None:
    found = step(canary(Commanded(RolloutCommand.ABORT, "ana", "no")), updated("a"), waiting("b"))
    assert found.grants == ()
    assert [fact.how for fact in found.facts if isinstance(fact, Ended)] == [RolloutEnd.ABORTED]


# --- whole rollouts ------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    count=st.integers(1, 6),
    most=st.none() | st.integers(1, 3),
    first=st.integers(1, 3),
    events=st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["good", "bad", "pending", "held", "free", "wait"])),
        max_size=60,
    ),
)
def test_no_rollout_exceeds_its_limits_whatever_its_members_do(
    count: int, most: int | None, first: int, events: list[tuple[int, str]]
) -> None:
    """I10: counted by the releases themselves, next to the course that the program keeps."""
    rules = policy(
        TargetSelection((Wave(units=first, soak_seconds=20.0), Wave()), at_most=most),
        validation=Validation(look_every=10.0, bad_looks=2),
    )
    world = {f"m{number}": waiting(f"m{number}") for number in range(count)}
    course, now, proven = BEGUN, 100.0, set[str]()
    for number, event in [*events, *((0, "wait"),) * 10]:
        id = f"m{number % count}"
        there = world[id]
        if event in ("good", "bad", "pending"):
            good = {"good": True, "bad": False, "pending": None}[event]
            applied = there.released if event == "good" else there.applied
            world[id] = replace(there, good=good, why="" if good else event, applied=applied)
        elif event in ("held", "free"):
            world[id] = replace(there, held="pinned" if event == "held" else "")
        now += 10.0
        found = step(course, *world.values(), rules=rules, now=now, since_look=10.0)
        for fact in found.facts:
            course = after(course, "r1", fact, now)
        released = [grant for grant in found.grants if grant.kind is ReleaseKind.FORWARD]
        assert all(grant.target == 2 for grant in released)
        assert not any(world[grant.asset].held for grant in released)
        for grant in found.grants:
            to = NEW if grant.kind is ReleaseKind.FORWARD else OLD
            before = world[grant.asset]
            kept = OLD if grant.kind is ReleaseKind.FORWARD else before.before
            world[grant.asset] = replace(before, released=to, before=kept, released_at=grant.target)
        proven |= {id for id, item in world.items() if item.good and item.applied == NEW == item.released}
        running = course.running
        if running is None:
            break
        unproven = [unit for unit in running.watched if unit not in proven]
        assert len(unproven) <= (count if most is None else most)
        if released and len(running.updated) > first:
            assert set(list(running.updated)[:first]) <= proven
