import asyncio

import pytest

from lehr.base.errors import LehrError, TransientError
from lehr.checks.depends_on import DependsOnCheck
from lehr.model.addons import ADDONS
from lehr.model.asset import AssetId, make_asset
from lehr.model.decision import Verdict
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, Goal
from lehr.model.reason import Reason
from lehr.model.types import Registry
from lehr.testing.checks import FixedCheckReader, check_request

REGISTRY = Registry((), ADDONS)
DIFFERS = Diff((Change("mode", "0644", "0600"), Change("content", "a", "b")))


def ask(
    depends_on: list[str] | None, diffs: dict[str, Diff | LehrError], goal: Goal = Goal.PRESENT
) -> tuple[list[Verdict], list[AssetId]]:
    addons = {} if depends_on is None else {"lehr.DependsOn": {"assets": depends_on}}
    asset = make_asset(AssetId("web"), "lehr.File", None, addons)
    reader = FixedCheckReader(REGISTRY, diffs={AssetId(id): diff for id, diff in diffs.items()})
    return asyncio.run(DependsOnCheck().check(check_request(asset, goal=goal), reader)), reader.asked


@pytest.mark.parametrize("depends_on", [None, []])
def test_an_asset_without_dependencies_is_no_concern(depends_on: list[str] | None) -> None:
    assert ask(depends_on, {}) == ([], [])


def test_a_push_goes_when_every_dependency_has_an_empty_diff() -> None:
    (verdict,), asked = ask(["a", "b", "a"], {"a": NO_DIFF, "b": NO_DIFF})
    assert verdict.allow
    assert asked == ["a", "b"]


def test_a_push_waits_for_each_dependency_that_differs() -> None:
    (verdict,), _ = ask(["a", "b", "c"], {"a": DIFFERS, "b": NO_DIFF, "c": DIFFERS})
    assert (verdict.allow, verdict.reason, verdict.wait_for) == (False, Reason.DEPENDENCY_DIFFERS, ("a", "c"))
    assert verdict.message == "a differs in mode, content; c differs in mode, content"
    assert verdict.unblock == "wait until a converges; wait until c converges"


def test_a_dependency_that_is_not_in_intent_weighs_more_than_one_that_differs() -> None:
    (verdict,), _ = ask(["a", "gone"], {"a": DIFFERS})
    assert (verdict.allow, verdict.reason, verdict.wait_for) == (
        False,
        Reason.DEPENDENCY_MISSING,
        ("a", "gone"),
    )
    assert "gone is not in intent" in verdict.message
    assert "a differs in" in verdict.message


def test_a_dependency_that_cannot_be_compared_holds_and_hides_nothing() -> None:
    (verdict,), _ = ask(["a", "b"], {"a": TransientError("disk is away"), "b": DIFFERS})
    assert (verdict.allow, verdict.reason, verdict.wait_for) == (
        False,
        Reason.DEPENDENCY_UNREADABLE,
        ("a", "b"),
    )
    assert verdict.message == "a cannot be compared: disk is away; b differs in mode, content"


@pytest.mark.parametrize("goal", [Goal.DRAINED, Goal.FENCED, Goal.ABSENT])
def test_a_turndown_does_not_wait_for_dependencies(goal: Goal) -> None:
    assert ask(["a"], {"a": DIFFERS}, goal) == ([], [])


@pytest.mark.parametrize(
    ("addon", "allow"),
    [
        ({"assets": ["a"]}, True),
        ({"capacity": ["a"]}, False),
        ({"versions": [{"asset": "a", "at_least": "2"}]}, False),
    ],
)
def test_only_the_static_order_is_met_by_what_has_gone_past(addon: dict[str, object], allow: bool) -> None:
    asset = make_asset(AssetId("web"), "lehr.File", None, {"lehr.DependsOn": addon})
    id = AssetId("a")
    grows = Diff(DIFFERS.changes, Effects(capacity=1))
    reader = FixedCheckReader(REGISTRY, diffs={id: grows}, own_diffs={id: NO_DIFF})
    (verdict,) = asyncio.run(DependsOnCheck().check(check_request(asset, diff=grows), reader))
    assert verdict.allow is allow


def chain(
    links: dict[str, list[str]], diffs: dict[str, Diff | LehrError]
) -> tuple[Verdict, FixedCheckReader]:
    """The verdict about `web`, where each asset needs those that are linked to it."""
    assets = {
        id: make_asset(AssetId(id), "lehr.File", None, {"lehr.DependsOn": {"assets": needs}})
        for id, needs in links.items()
    }
    found = {AssetId(id): diffs.get(id, NO_DIFF) for id in links}
    reader = FixedCheckReader(REGISTRY, diffs=found, assets=assets.values())
    (verdict,) = asyncio.run(DependsOnCheck().check(check_request(assets["web"]), reader))
    return verdict, reader


def test_a_push_waits_for_what_its_dependencies_need() -> None:
    verdict, reader = chain({"web": ["a"], "a": ["b"], "b": ["c"], "c": []}, {"c": DIFFERS})
    assert (verdict.allow, verdict.reason, verdict.wait_for) == (False, Reason.DEPENDENCY_DIFFERS, ("c",))
    assert verdict.message == "c, which b needs, differs in mode, content"
    assert reader.trusted == ["b", "c"]


def test_what_a_dependency_that_differs_needs_is_for_that_one_to_wait_for() -> None:
    verdict, reader = chain({"web": ["a"], "a": ["b"], "b": []}, {"a": DIFFERS, "b": DIFFERS})
    assert verdict.wait_for == ("a",)
    assert reader.asked == ["a", "a"], "also at its own content"


def test_what_many_need_is_looked_at_once_and_cycles_end() -> None:
    links = {"web": ["a", "b"], "a": ["c"], "b": ["c"], "c": ["d"], "d": ["a", "web"]}
    verdict, reader = chain(links, {})
    assert verdict.allow
    assert sorted(reader.asked) == ["a", "b", "c", "d"]


def test_what_is_further_away_and_not_in_intent_is_no_concern() -> None:
    verdict, _reader = chain({"web": ["a"], "a": ["gone"]}, {})
    assert verdict.allow


@pytest.mark.parametrize(("length", "allow"), [(1000, True), (1001, False)])
def test_only_so_many_are_looked_at_and_then_it_says_so(length: int, allow: bool) -> None:
    links = {f"n{number}": [f"n{number + 1}"] for number in range(1, length)}
    verdict, _reader = chain({"web": ["n1"], **links, f"n{length}": []}, {})
    assert verdict.allow is allow
    if not allow:
        assert verdict.reason == Reason.TOO_MANY_DEPENDENCIES
        assert "more than 1000" in verdict.message
