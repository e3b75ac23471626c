"""How far an asset that is to leave production may go, and when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lehr.enforce.turndown import Circumstances, Course, describe, plan
from lehr.model.addons import Turndown
from lehr.model.asset import AssetId
from lehr.model.diff import Goal
from lehr.model.operation import LedgerEntry
from lehr.model.reason import Reason
from lehr.testing.virtual import EPOCH
from tests.unit.enforce.turns import entry

EVERY = frozenset({Goal.DRAINED, Goal.FENCED, Goal.ABSENT})
REMOVABLE = frozenset({Goal.ABSENT})
FENCED = frozenset({Goal.FENCED, Goal.ABSENT})

AT_ONCE = Turndown("old")
STANDING = Turndown("old", stand_seconds=100.0)
LASTING = Turndown("old", fence_seconds=100.0)


def reached(goal: Goal, after: float = 0.0) -> LedgerEntry:
    return replace(entry(goal=goal), at=EPOCH + after)


def circumstances(
    supported: frozenset[Goal] = EVERY,
    ledger: LedgerEntry | None = None,
    referrers: tuple[str, ...] = (),
) -> Circumstances:
    return Circumstances(EPOCH, supported, [AssetId(id) for id in referrers], ledger)


@pytest.mark.parametrize(
    ("addon", "supported", "ledger", "after", "course"),
    [
        # Each stage that the plugin knows, from the one that was reached.
        (AT_ONCE, EVERY, None, 0, Course(Goal.DRAINED)),
        (AT_ONCE, EVERY, reached(Goal.PRESENT), 0, Course(Goal.DRAINED)),
        (AT_ONCE, EVERY, reached(Goal.DRAINED), 0, Course(Goal.FENCED)),
        (AT_ONCE, EVERY, reached(Goal.FENCED), 0, Course(Goal.ABSENT)),
        (AT_ONCE, EVERY, reached(Goal.ABSENT), 0, Course(Goal.ABSENT)),
        (AT_ONCE, FENCED, reached(Goal.PRESENT), 0, Course(Goal.FENCED)),
        (AT_ONCE, FENCED, reached(Goal.DRAINED), 0, Course(Goal.FENCED)),
        (AT_ONCE, REMOVABLE, reached(Goal.PRESENT), 0, Course(Goal.ABSENT)),
        (AT_ONCE, REMOVABLE, None, 0, Course(Goal.ABSENT)),
        # The addon must have stood for its time before anything is touched.
        (STANDING, EVERY, None, 99.9, Course(Goal.PRESENT, until=EPOCH + 100)),
        (STANDING, EVERY, None, 100, Course(Goal.DRAINED)),
        # A word that has to stand longer brings nothing back, and takes nothing more out.
        (STANDING, EVERY, reached(Goal.FENCED), 50, Course(Goal.FENCED, EPOCH + 100, held=True)),
        (STANDING, EVERY, reached(Goal.ABSENT), 50, Course(Goal.ABSENT, EPOCH + 100, held=True)),
        # Fenced assets stay fenced for their time, and can be brought back.
        (LASTING, FENCED, reached(Goal.FENCED, 50), 149.9, Course(Goal.FENCED, until=EPOCH + 150)),
        (LASTING, FENCED, reached(Goal.FENCED, 50), 150, Course(Goal.ABSENT)),
        (LASTING, FENCED, reached(Goal.PRESENT, 50), 60, Course(Goal.FENCED)),
        (LASTING, REMOVABLE, reached(Goal.PRESENT), 0, Course(Goal.ABSENT)),
    ],
)
def test_the_furthest_goal_that_may_be_striven_for(
    addon: Turndown, supported: frozenset[Goal], ledger: LedgerEntry | None, after: float, course: Course
) -> None:
    assert plan(addon, circumstances(supported, ledger), EPOCH + after) == course


@pytest.mark.parametrize("supported", [frozenset(), frozenset({Goal.FENCED}), EVERY - {Goal.ABSENT}])
@pytest.mark.parametrize("ledger", [None, reached(Goal.PRESENT), reached(Goal.FENCED)])
def test_what_its_plugin_cannot_remove_stays(supported: frozenset[Goal], ledger: LedgerEntry | None) -> None:
    course = plan(AT_ONCE, circumstances(supported, ledger), EPOCH + 1e9)
    assert course.goal is Goal.PRESENT
    assert course.obstacle is not None
    assert course.obstacle[0] == Reason.TURNDOWN_UNSUPPORTED


def test_what_is_still_referred_to_stays_and_says_by_whom() -> None:
    course = plan(AT_ONCE, circumstances(referrers=("web", "api")), EPOCH)
    assert course.goal is Goal.PRESENT
    assert course.obstacle is not None
    reason, message, unblock = course.obstacle
    assert reason == Reason.STILL_REFERENCED
    assert "web, api" in message
    assert unblock


def test_a_reference_that_comes_later_brings_a_fenced_asset_back() -> None:
    fenced = circumstances(FENCED, reached(Goal.FENCED), ("web",))
    assert plan(LASTING, fenced, EPOCH + 1).goal is Goal.PRESENT


def test_a_reference_brings_a_fenced_asset_back_also_while_its_turndown_stands_anew() -> None:
    found = plan(STANDING, circumstances(ledger=reached(Goal.FENCED), referrers=("web",)), EPOCH + 50)
    assert (found.goal, found.held, found.wait_for) == (Goal.PRESENT, False, ("web",))


def test_time_is_told_where_it_counts() -> None:
    waiting = plan(STANDING, circumstances(), EPOCH)
    assert describe(waiting) == "goes further at 2026-01-05T00:01:40Z"
    assert describe(plan(AT_ONCE, circumstances(), EPOCH)) == ""
