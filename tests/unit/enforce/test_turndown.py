"""How far an asset that is to leave production may go, and when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lehr.enforce.turndown import TurndownInputs, TurndownStage, plan
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


def inputs(
    supported: frozenset[Goal] = EVERY,
    ledger: LedgerEntry | None = None,
    referrers: tuple[str, ...] = (),
) -> TurndownInputs:
    return TurndownInputs(EPOCH, supported, [AssetId(id) for id in referrers], ledger)


@pytest.mark.parametrize(
    ("addon", "supported", "ledger", "after", "stage"),
    [
        # Each stage that the plugin knows, from the one that was reached.
        (AT_ONCE, EVERY, None, 0, TurndownStage(Goal.DRAINED)),
        (AT_ONCE, EVERY, reached(Goal.PRESENT), 0, TurndownStage(Goal.DRAINED)),
        (AT_ONCE, EVERY, reached(Goal.DRAINED), 0, TurndownStage(Goal.FENCED)),
        (AT_ONCE, EVERY, reached(Goal.FENCED), 0, TurndownStage(Goal.ABSENT)),
        (AT_ONCE, EVERY, reached(Goal.ABSENT), 0, TurndownStage(Goal.ABSENT)),
        (AT_ONCE, FENCED, reached(Goal.PRESENT), 0, TurndownStage(Goal.FENCED)),
        (AT_ONCE, FENCED, reached(Goal.DRAINED), 0, TurndownStage(Goal.FENCED)),
        (AT_ONCE, REMOVABLE, reached(Goal.PRESENT), 0, TurndownStage(Goal.ABSENT)),
        (AT_ONCE, REMOVABLE, None, 0, TurndownStage(Goal.ABSENT)),
        # The addon must have stood for its time before anything is touched.
        (STANDING, EVERY, None, 99.9, TurndownStage(Goal.PRESENT, until=EPOCH + 100)),
        (STANDING, EVERY, None, 100, TurndownStage(Goal.DRAINED)),
        # A word that has to stand longer brings nothing back, and takes nothing more out.
        (STANDING, EVERY, reached(Goal.FENCED), 50, TurndownStage(Goal.FENCED, EPOCH + 100, held=True)),
        (STANDING, EVERY, reached(Goal.ABSENT), 50, TurndownStage(Goal.ABSENT, EPOCH + 100, held=True)),
        # Fenced assets stay fenced for their time, and can be brought back.
        (LASTING, FENCED, reached(Goal.FENCED, 50), 149.9, TurndownStage(Goal.FENCED, until=EPOCH + 150)),
        (LASTING, FENCED, reached(Goal.FENCED, 50), 150, TurndownStage(Goal.ABSENT)),
        (LASTING, FENCED, reached(Goal.PRESENT, 50), 60, TurndownStage(Goal.FENCED)),
        (LASTING, REMOVABLE, reached(Goal.PRESENT), 0, TurndownStage(Goal.ABSENT)),
    ],
)
def test_the_furthest_goal_that_may_be_striven_for(
    addon: Turndown,
    supported: frozenset[Goal],
    ledger: LedgerEntry | None,
    after: float,
    stage: TurndownStage,
) -> None:
    assert plan(addon, inputs(supported, ledger), EPOCH + after) == stage


@pytest.mark.parametrize("supported", [frozenset(), frozenset({Goal.FENCED}), EVERY - {Goal.ABSENT}])
@pytest.mark.parametrize("ledger", [None, reached(Goal.PRESENT), reached(Goal.FENCED)])
def test_what_its_plugin_cannot_remove_stays(supported: frozenset[Goal], ledger: LedgerEntry | None) -> None:
    stage = plan(AT_ONCE, inputs(supported, ledger), EPOCH + 1e9)
    assert stage.goal is Goal.PRESENT
    assert stage.obstacle is not None
    assert stage.obstacle[0] == Reason.TURNDOWN_UNSUPPORTED


def test_what_is_still_referred_to_stays_and_says_by_whom() -> None:
    stage = plan(AT_ONCE, inputs(referrers=("web", "api")), EPOCH)
    assert stage.goal is Goal.PRESENT
    assert stage.obstacle is not None
    reason, message, unblock = stage.obstacle
    assert reason == Reason.STILL_REFERENCED
    assert "web, api" in message
    assert unblock


def test_a_reference_that_comes_later_brings_a_fenced_asset_back() -> None:
    fenced = inputs(FENCED, reached(Goal.FENCED), ("web",))
    assert plan(LASTING, fenced, EPOCH + 1).goal is Goal.PRESENT


def test_a_reference_brings_a_fenced_asset_back_also_while_its_turndown_stands_anew() -> None:
    found = plan(STANDING, inputs(ledger=reached(Goal.FENCED), referrers=("web",)), EPOCH + 50)
    assert (found.goal, found.held, found.wait_for) == (Goal.PRESENT, False, ("web",))
