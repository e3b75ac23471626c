"""Waves and limits that contradict dependencies are named, and only these."""

from __future__ import annotations

from lehr.model.asset import AssetId
from lehr.model.evidence import Commanded, RolloutCommand, Updated, Validated
from lehr.rollouts.waves import TargetSelection, Wave
from tests.unit.rollouts.test_plan import CANARY, NEW, canary, member, policy, step, updated, waiting

BACKEND = AssetId("b")
STUCK = {"applied": member("a").applied, "good": None, "awaits": (BACKEND,)}
BLOCK = "a waits for b, which is not updated: "


def test_an_asset_of_a_later_wave_that_an_earlier_one_needs_is_named_with_it() -> None:
    found = step(canary(), updated("a", **STUCK), waiting("b"), since_look=0.0)
    expected = BLOCK + "it is in wave 2, and wave 1 is under way; so neither of them can go first"
    assert (found.hold, found.grants) == (expected, ())


def test_a_limit_that_leaves_no_room_for_what_goes_first_is_named() -> None:
    rules = policy(TargetSelection((Wave(),), at_most=1))
    found = step(canary(), updated("a", **STUCK), waiting("b"), rules=rules, since_look=0.0)
    limit = "at most 1 may be updated and not validated at the same time"
    assert found.hold == f"{BLOCK}{limit}; so neither of them can go first"


def test_what_goes_first_is_no_block_if_it_is_updated_now() -> None:
    rules = policy(TargetSelection((Wave(),), at_most=2))
    found = step(canary(), updated("a", **STUCK), waiting("b"), rules=rules, since_look=0.0)
    assert found.hold == ""
    assert [grant.asset for grant in found.grants] == [BACKEND]


def test_while_another_unit_may_still_become_good_nothing_is_blocked() -> None:
    course = canary(Updated(("c",), {AssetId("c"): 1}, 1))
    pushed = updated("c", good=None)
    assert step(course, updated("a", **STUCK), waiting("b"), pushed, since_look=0.0).hold == ""


def test_an_asset_that_waits_for_one_outside_the_rollout_is_no_contradiction() -> None:
    found = step(
        canary(), updated("a", **STUCK), member("b", newest=NEW, released=NEW), waiting("c"), since_look=0.0
    )
    assert found.hold == ""


def test_a_unit_that_must_stay_good_for_longer_and_is_not_any_more_is_blocked_as_well() -> None:
    assert CANARY.waves[0].soak_seconds > 0
    course = canary(Validated(("a",)))
    found = step(course, updated("a", **STUCK), waiting("b"), since_look=0.0)
    assert found.hold == BLOCK + "it is in wave 2, and wave 1 is under way; so neither of them can go first"


def test_a_unit_that_must_stay_good_and_is_blocks_nothing() -> None:
    course = canary(Validated(("a",)))
    assert "neither of them" not in step(course, updated("a"), waiting("b"), since_look=0.0).hold


def test_a_unit_that_was_promoted_blocks_nothing() -> None:
    course = canary(Commanded(RolloutCommand.PROMOTE, "ana", "enough"))
    assert "neither of them" not in step(course, updated("a", **STUCK), waiting("b"), since_look=0.0).hold
