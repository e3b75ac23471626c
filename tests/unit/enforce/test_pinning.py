"""Which content and which governing incarnation a turn reads."""

from __future__ import annotations

from typing import Any

from lehr.base.digest import digest
from lehr.model.asset import AssetId
from lehr.model.control import ControlKind
from lehr.model.pinning import Holds, Pinning, pin
from lehr.model.release import Release, ReleaseBasis, Released, ReleaseKind
from lehr.testing.virtual import EPOCH
from tests.unit.enforce.turns import ASSET, DIFF, KEY, OTHER_DIFF, control

FIRST = control(ControlKind.PIN, "c1", incarnation=3)
SECOND = control(ControlKind.PIN, "c2", incarnation=5)
PAUSE = control(ControlKind.PAUSE, "c3")


def test_without_a_word_content_follows_the_newest() -> None:
    assert pin(ASSET, 7, Holds([])) == Pinning(7)


def test_a_pin_holds_content_back_and_leaves_the_governing_incarnation_alone() -> None:
    assert pin(ASSET, 7, Holds([FIRST])) == Pinning(3, FIRST)


def test_of_several_pins_the_newest_is_the_last_word() -> None:
    assert pin(ASSET, 7, Holds([FIRST, SECOND])) == Pinning(5, SECOND)
    assert pin(ASSET, 7, Holds([SECOND, FIRST])) == Pinning(3, FIRST)


def test_a_pin_without_an_incarnation_pins_to_what_is_the_newest() -> None:
    pinned = control(ControlKind.PIN)
    assert pin(ASSET, 7, Holds([pinned])) == Pinning(7, pinned)


def test_a_pause_does_not_move_content() -> None:
    assert pin(ASSET, 7, Holds([PAUSE])) == Pinning(7, pause=PAUSE)
    assert pin(ASSET, 7, Holds([FIRST, PAUSE])) == Pinning(3, FIRST, PAUSE)


def test_every_approved_diff_counts() -> None:
    approvals = [
        control(ControlKind.APPROVAL, "c1", diff_digest=DIFF.digest()),
        control(ControlKind.APPROVAL, "c2", diff_digest=OTHER_DIFF.digest()),
    ]
    assert pin(ASSET, 7, Holds(approvals)).approved == {DIFF.digest(), OTHER_DIFF.digest()}


def test_an_approval_of_no_diff_approves_nothing() -> None:
    assert pin(ASSET, 7, Holds([control(ControlKind.APPROVAL)])) == Pinning(7)


def test_every_restart_that_was_asked_for_counts_and_the_newest_is_carried_out() -> None:
    restarts = tuple(control(ControlKind.RESTART, id) for id in ("c1", "c2"))
    assert pin(ASSET, 7, Holds(restarts)) == Pinning(7, restarts=restarts)
    assert pin(ASSET, 7, Holds(restarts)).restart == "c2"


def test_words_about_other_assets_do_not_count() -> None:
    others = [
        control(kind, selects="b", incarnation=1, diff_digest=DIFF.digest())
        for kind in (ControlKind.PIN, ControlKind.PAUSE, ControlKind.APPROVAL)
    ]
    assert pin(ASSET, 7, Holds(others)) == Pinning(7)


def test_freezes_and_overrides_are_for_checks_to_weigh() -> None:
    assert pin(ASSET, 7, Holds([control(ControlKind.FREEZE), control(ControlKind.OVERRIDE)])) == Pinning(7)


def released(target: int, *reads: str) -> Released:
    release = Release(
        id="r1",
        partition=KEY.partition,
        asset=KEY.id,
        target=target,
        kind=ReleaseKind.FORWARD,
        basis=ReleaseBasis(digest("governance")),
        at=EPOCH,
        reads=tuple(map(AssetId, reads)),
    )
    return Released(KEY.id, release)


def changed(*ids: str) -> Any:
    """Only these are not the same in two incarnations."""
    return lambda id, one, other: one == other or id not in ids


def test_a_release_holds_content_back() -> None:
    found = pin(ASSET, 7, Holds(released=released(4)), same=changed("a"))
    assert (found.content, found.awaits_release, found.held) == (4, True, True)


def test_a_release_rolls_forward_while_nothing_that_it_is_for_has_changed() -> None:
    holds = Holds(released=released(4, "b"))
    assert pin(ASSET, 7, holds, same=changed("c")) == Pinning(7, released=holds.released)
    assert pin(ASSET, 7, holds, same=changed("b")).content == 4
    assert pin(ASSET, 7, holds, same=changed("a")).content == 4


def test_an_asset_whose_releases_were_all_withdrawn_keeps_what_was_applied() -> None:
    found = pin(ASSET, 7, Holds(released=Released(KEY.id, None)), applied=3)
    assert (found.content, found.awaits_release) == (3, True)


def test_an_asset_that_releases_govern_and_that_was_never_applied_has_no_content() -> None:
    found = pin(ASSET, 7, Holds(released=Released(KEY.id, None)))
    assert (found.content, found.awaits_release) == (0, True)


def test_a_pin_goes_back_below_a_release_and_never_above_it() -> None:
    below = pin(ASSET, 7, Holds([FIRST], released(4)), same=changed("a"))
    assert (below.content, below.awaits_release) == (3, False)
    above = pin(ASSET, 7, Holds([SECOND], released(4)), same=changed("a"))
    assert (above.content, above.awaits_release) == (4, True)


def test_a_pin_between_a_release_and_where_it_has_rolled_forward_to_must_have_the_released_content() -> None:
    """It was changed in 5 and changed back in 6: what was released at 4 is allowed in 7, and not in 5."""

    def same(id: AssetId, one: int, other: int) -> bool:
        return 5 not in (one, other)

    holds = Holds([control(ControlKind.PIN, incarnation=5)], released(4))
    found = pin(ASSET, 7, holds, same=same)
    assert (found.content, found.awaits_release) == (4, True)
    unchanged = pin(ASSET, 7, holds, same=changed("c"))
    assert (unchanged.content, unchanged.awaits_release) == (5, False)
