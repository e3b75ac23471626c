"""The status of rollouts: each state of a rollout and of its units, and it never counts a look."""

from __future__ import annotations

import pytest

from lehr.base.digest import Digest
from lehr.model.asset import AssetId, Partition
from lehr.model.evidence import (
    Begun,
    Commanded,
    Ended,
    Evidence,
    Fact,
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
from lehr.model.selector import Selector
from lehr.rollouts import TargetSelection, Wave
from lehr.rollouts.course import folded
from lehr.rollouts.figures import RolloutState
from lehr.rollouts.lanes import LaneState
from lehr.rollouts.members import Member
from lehr.rollouts.metrics import CanaryAnalysis
from lehr.rollouts.past import past_rollouts
from lehr.rollouts.policy import Policy, RolloutPolicy, SelectedBy, Validation
from lehr.rollouts.status import RolloutStatus, UnitState, status_of

POLICY = AssetId("waves")
OLD, NEW = Digest("old"), Digest("new")
WAVES = TargetSelection(waves=(Wave(units=1, soak_seconds=60.0), Wave()))
BEGUN = (Begun(2), Updated(("a",), {AssetId("a"): 1}))
GOOD = (Looked({"a": UnitLook(True, 20.0, 25.0)}), Validated(("a",)))


def member(id: str, *, has: Digest = OLD, good: bool | None = True, **fields: object) -> Member:
    known = {"newest": NEW, "target": NEW, "released": has, "released_at": 1, "applied": has, "good": good}
    return Member(id=AssetId(id), unit=id, **{**known, **fields})  # type: ignore[arg-type]


def evidence(*facts: Fact) -> list[Evidence]:
    return [
        Evidence(number=n, partition=Partition("shop"), policy=POLICY, rollout="r1", at=float(n), fact=fact)
        for n, fact in enumerate(facts, start=1)
    ]


def status(
    *facts: Fact, members: tuple[Member, ...] = (), policy: RolloutPolicy | None = None, newest: int = 2
) -> RolloutStatus:
    policy = policy or RolloutPolicy(select=Selector(all=True), target_selection=WAVES)
    members = members or (member("a", has=NEW), member("b"), member("c"))
    found = evidence(*facts)
    return status_of(Policy(POLICY, policy), folded(found), members, newest, 100.0, past_rollouts(found))


def states(found: RolloutStatus) -> dict[str, UnitState]:
    return {unit.id: unit.state for unit in found.units}


def test_a_canary_that_is_good_soaks_and_the_others_wait_for_their_wave() -> None:
    found = status(*BEGUN, *GOOD)
    assert found.state is RolloutState.RUNNING
    assert (found.target, found.wave, found.waves) == (2, 1, 2)
    assert states(found) == {"a": UnitState.GOOD, "b": UnitState.WAITING, "c": UnitState.WAITING}
    assert (found.units[0].exposure, found.units[0].soak_left) == (20.0, 40.0)
    assert found.until == 140.0
    assert "a" in found.waits_for


def test_a_unit_is_not_called_good_before_the_analysis_has_proven_it() -> None:
    canary = CanaryAnalysis(source="prometheus", counters={"requests": "requests", "errors": "errors"})
    policy = RolloutPolicy(
        select=Selector(all=True), target_selection=WAVES, validation=Validation(canary=canary)
    )
    look = Looked({"a": UnitLook(True, 20.0, 25.0)})
    found = status(*BEGUN, look, policy=policy)
    assert states(found)["a"] is UnitState.VALIDATING
    assert "no counters are known yet" in found.units[0].why
    assert "a to be good" in found.waits_for
    assert states(status(*BEGUN, look, Validated(("a",)), policy=policy))["a"] is UnitState.GOOD


def test_each_wave_is_a_lane_with_the_gate_that_holds_it() -> None:
    first, second = status(*BEGUN, *GOOD).lanes
    assert (first.wave, first.state, first.units) == (1, LaneState.UNDER_WAY, ("a",))
    assert first.gate == "a to stay good for 40s more"
    assert (second.wave, second.state, second.units) == (2, LaneState.AHEAD, ("b", "c"))
    assert second.gate == "wave 1, until each of its units is good and has been for 1m"


def test_a_wave_that_is_over_has_no_gate() -> None:
    soaked = (Looked({"a": UnitLook(True, 60.0, 65.0)}), Validated(("a",)))
    members = (member("a", has=NEW), member("b", held="paused by ana: look"), member("c"))
    first, second = status(*BEGUN, *soaked, members=members).lanes
    assert (first.state, first.gate) == (LaneState.OVER, "")
    assert second.state is LaneState.UNDER_WAY
    assert "c" in second.gate


def test_the_gate_of_a_paused_rollout_is_the_person_who_paused_it() -> None:
    paused = Commanded(RolloutCommand.PAUSE, "ana", "wait for the load test")
    first, second = status(*BEGUN, *GOOD, paused).lanes
    assert first.gate == "a person: paused by ana: wait for the load test"
    assert second.state is LaneState.AHEAD


def test_without_waves_there_are_no_lanes() -> None:
    policy = RolloutPolicy(select=Selector(all=True), selected_by=SelectedBy("by-region"))
    assert status(*BEGUN, *GOOD, policy=policy).lanes == ()
    assert status(members=(member("a", has=NEW, released=NEW),)).lanes == ()


def test_a_selection_of_a_user_is_asked_by_lehr_run() -> None:
    policy = RolloutPolicy(select=Selector(all=True), selected_by=SelectedBy("by-region"))
    found = status(*BEGUN, *GOOD, policy=policy)
    assert found.state is RolloutState.RUNNING
    assert "by-region" in found.waits_for
    assert states(found) == {"a": UnitState.GOOD, "b": UnitState.WAITING, "c": UnitState.WAITING}


def test_asking_for_the_status_is_not_exposure() -> None:
    before = status(*BEGUN, *GOOD)
    assert status(*BEGUN, *GOOD) == before


@pytest.mark.parametrize(("busy", "state"), [(False, UnitState.RELEASED), (True, UnitState.PUSHING)])
def test_a_unit_gets_the_content(busy: bool, state: UnitState) -> None:
    found = status(*BEGUN, members=(member("a", has=NEW, applied=OLD, good=None, busy=busy), member("b")))
    assert states(found)["a"] is state
    assert "a" in found.waits_for


def test_one_more_bad_look_that_nobody_made_is_not_a_failure() -> None:
    """Two of three bad looks were made: reading the status is not the third."""
    bad = Looked({"a": UnitLook(False, 0.0, 20.0, 2, "it is broken")})
    found = status(*BEGUN, bad, members=(member("a", has=NEW, good=False, why="it is broken"), member("b")))
    assert found.state is RolloutState.RUNNING
    assert states(found)["a"] is UnitState.BAD
    assert found.units[0].why == "it is broken"


def test_a_failure_that_holds_waits_for_a_person() -> None:
    policy = RolloutPolicy(select=Selector(all=True), target_selection=WAVES, on_failure="hold")
    members = (member("a", has=NEW, good=False, why="it is broken"), member("b"))
    found = status(*BEGUN, Failed("a", "it is broken"), members=members, policy=policy)
    assert found.state is RolloutState.HOLDING
    assert found.wave == 1
    assert "it is broken" in found.waits_for
    assert "lehr rollout promote waves" in found.unblock


def test_a_failure_whose_release_was_withdrawn_is_tried_again_by_a_restart() -> None:
    """Nothing has the content, so there is nothing to promote or to roll back."""
    policy = RolloutPolicy(select=Selector(all=True), target_selection=WAVES, on_failure="hold")
    facts = (*BEGUN, Failed("a", "it is broken"), Withdrawn(("a",)))
    found = status(*facts, members=(member("a"), member("b")), policy=policy)
    assert found.state is RolloutState.HOLDING
    assert "lehr rollout restart waves" in found.unblock
    assert "promote" not in found.unblock


def test_what_is_late_waits_for_a_person() -> None:
    policy = RolloutPolicy(
        select=Selector(all=True), target_selection=WAVES, validation=Validation(deadline=10)
    )
    late = Looked({"a": UnitLook(None, 0.0, 11.0, 0, "no answer")})
    members = (member("a", has=NEW, good=None, why="no answer"), member("b"))
    found = status(*BEGUN, late, members=members, policy=policy)
    assert found.state is RolloutState.HOLDING
    assert "no answer" in found.waits_for


def test_a_label_that_nothing_has_asks_for_another_policy() -> None:
    waves = TargetSelection(waves=(Wave(where={"cluster": "canray"}), Wave()))
    found = status(Begun(2), policy=RolloutPolicy(select=Selector(all=True), target_selection=waves))
    assert found.state is RolloutState.HOLDING
    assert "canray" in found.waits_for
    assert "policy" in found.unblock


def test_a_paused_rollout_names_who_paused_it_and_still_its_wave() -> None:
    found = status(*BEGUN, *GOOD, Commanded(RolloutCommand.PAUSE, "ana", "lunch"))
    assert found.state is RolloutState.PAUSED
    assert (found.wave, found.until) == (1, None)
    assert "ana" in found.waits_for
    assert "lehr rollout resume waves" in found.unblock


def test_a_unit_that_cannot_be_pushed_says_why() -> None:
    members = (member("a", has=NEW), member("b", held="pinned by ana: why not"), member("c"))
    found = status(*BEGUN, *GOOD, members=members)
    assert states(found)["b"] is UnitState.HELD
    assert "pinned by ana" in found.units[1].why


def test_units_without_a_change_only_count() -> None:
    found = status(*BEGUN, *GOOD, members=(member("a", has=NEW), member("b"), member("c", has=NEW)))
    assert (set(states(found)), found.unchanged) == ({"a", "b"}, 1)


def test_a_unit_that_went_back() -> None:
    found = status(*BEGUN, *GOOD, WentBack(("a",), "reverted"), members=(member("a"), member("b")))
    assert states(found)["a"] is UnitState.GONE_BACK


def test_content_that_has_failed_blocks_and_names_the_retry() -> None:
    quarantined = {AssetId(id): NEW for id in "ab"}
    ended = Ended(RolloutEnd.FAILED, "a: it is broken", quarantined)
    found = status(*BEGUN, ended, members=(member("a"), member("b")))
    assert found.state is RolloutState.BLOCKED
    assert "it is broken" in found.waits_for
    assert "lehr rollout retry waves" in found.unblock
    assert set(states(found)) == {"a", "b"}
    assert [(item.how, item.target, item.units) for item in found.past] == [("failed", 2, ("a",))]


def test_nothing_to_roll_out() -> None:
    found = status(members=(member("a", has=NEW), member("b", has=NEW)))
    assert (found.state, found.unchanged, found.waits_for) == (RolloutState.IDLE, 2, "")


def test_a_rollout_that_begins_when_the_program_runs() -> None:
    found = status(newest=7)
    assert found.state is RolloutState.IDLE
    assert "7" in found.waits_for


def test_a_command_that_is_not_carried_out_yet() -> None:
    found = status(*BEGUN, *GOOD, Commanded(RolloutCommand.ROLLBACK, "ana", "too loud"))
    assert found.state is RolloutState.RUNNING
    assert "too loud" in found.waits_for


def test_a_rollout_that_newer_content_supersedes_says_that_it_ends() -> None:
    newer = Digest("newer")
    members = (member("a", newest=newer, target=OLD), member("b", newest=newer))
    found = status(Begun(2), members=members, newest=3)
    assert found.state is RolloutState.RUNNING
    assert found.waits_for.startswith("`lehr run`, which ends the rollout: ")
    waiting = [unit for unit in found.units if unit.state is UnitState.WAITING]
    assert [unit.id for unit in waiting] == ["b"]
    assert waiting[0].why == found.waits_for


def test_pushes_from_before_the_policy_are_waited_for_and_no_person_is() -> None:
    joins = member("b", released=None, known=False, busy=True)
    found = status(*BEGUN, *GOOD, members=(member("a", has=NEW), joins, member("c")))
    assert found.state is RolloutState.RUNNING
    assert found.waits_for == "pushes that began before the policy came into force are still under way"
    assert found.unblock == ""
    assert {unit.id: unit.why for unit in found.units if unit.state is UnitState.WAITING} == {
        "b": found.waits_for,
        "c": found.waits_for,
    }


def test_a_validated_unit_that_is_not_good_any_more_is_waited_for_with_the_cause() -> None:
    waiting = member("a", has=NEW, good=None, why="Waiting ApprovalNeeded: this push destroys data")
    found = status(*BEGUN, *GOOD, members=(waiting, member("b"), member("c")))
    assert found.waits_for == "a to be good again (Waiting ApprovalNeeded: this push destroys data)"
    assert "lehr rollout promote waves" in found.unblock
    assert "lehr rollout restart waves" in found.unblock
