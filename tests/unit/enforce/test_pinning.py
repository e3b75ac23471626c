"""Which content and which governing incarnation a turn reads."""

from __future__ import annotations

from lehr.model.control import ControlKind
from lehr.model.pinning import Pinning, pin
from tests.unit.enforce.turns import ASSET, DIFF, OTHER_DIFF, control

FIRST = control(ControlKind.PIN, "c1", incarnation=3)
SECOND = control(ControlKind.PIN, "c2", incarnation=5)
PAUSE = control(ControlKind.PAUSE, "c3")


def test_without_a_word_content_follows_the_newest() -> None:
    assert pin(ASSET, 7, []) == Pinning(7)


def test_a_pin_holds_content_back_and_leaves_the_governing_incarnation_alone() -> None:
    assert pin(ASSET, 7, [FIRST]) == Pinning(3, FIRST)


def test_of_several_pins_the_newest_is_the_last_word() -> None:
    assert pin(ASSET, 7, [FIRST, SECOND]) == Pinning(5, SECOND)
    assert pin(ASSET, 7, [SECOND, FIRST]) == Pinning(3, FIRST)


def test_a_pin_without_an_incarnation_pins_to_what_is_the_newest() -> None:
    pinned = control(ControlKind.PIN)
    assert pin(ASSET, 7, [pinned]) == Pinning(7, pinned)


def test_a_pause_does_not_move_content() -> None:
    assert pin(ASSET, 7, [PAUSE]) == Pinning(7, pause=PAUSE)
    assert pin(ASSET, 7, [FIRST, PAUSE]) == Pinning(3, FIRST, PAUSE)


def test_every_approved_diff_counts() -> None:
    approvals = [
        control(ControlKind.APPROVAL, "c1", diff_digest=DIFF.digest()),
        control(ControlKind.APPROVAL, "c2", diff_digest=OTHER_DIFF.digest()),
    ]
    assert pin(ASSET, 7, approvals).approved == {DIFF.digest(), OTHER_DIFF.digest()}


def test_an_approval_of_no_diff_approves_nothing() -> None:
    assert pin(ASSET, 7, [control(ControlKind.APPROVAL)]) == Pinning(7)


def test_words_about_other_assets_do_not_count() -> None:
    others = [
        control(kind, selects="b", incarnation=1, diff_digest=DIFF.digest())
        for kind in (ControlKind.PIN, ControlKind.PAUSE, ControlKind.APPROVAL)
    ]
    assert pin(ASSET, 7, others) == Pinning(7)


def test_freezes_and_overrides_are_for_checks_to_weigh() -> None:
    assert pin(ASSET, 7, [control(ControlKind.FREEZE), control(ControlKind.OVERRIDE)]) == Pinning(7)
