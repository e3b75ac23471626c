"""What has left intent and is still being turned down is compared with what is new."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lehr.base.diagnostics import Diagnostic, Position
from lehr.model.asset import AssetId
from lehr.model.attempt import Publication
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import Goal
from lehr.model.writes import RecordDecision
from lehr.publish.stages import Begun, Ended, Judged
from tests.integration.test_publisher import PARTITION, Moving, codes, moving

DOWN = "{lehr.Turndown: {reason: renamed, fence_seconds: 600}}"
FENCED, REMOVED = (Status.WAITING, Goal.FENCED), (Status.TURNED_DOWN, Goal.ABSENT)


def declare(moving: Moving, *lines: str, let_go: str = "{}") -> None:
    """Files, each by its name, path and addons."""
    moving.place.write("lehr.yaml", f"partition: test\nshrink: {{percent: 100}}\nlet_go: {let_go}\n")
    assets = [line.split(" ", 2) for line in lines]
    text = [
        f"- {{id: {id}, type: lehr.File, payload: {{path: {path}, content: x}}, addons: {addons}}}\n"
        for id, path, addons in assets
    ]
    moving.place.write("assets/files.yaml", "".join(text))


def stands(moving: Moving, how: tuple[Status, Goal], asset: str = "a") -> None:
    """As a turn of the asset has found it."""
    status, goal = how
    condition = Condition(status, "Found", "")
    decision = Decision(
        partition=PARTITION,
        asset=AssetId(asset),
        at=1.0,
        content=1,
        governing=1,
        goal=goal,
        condition=condition,
        event="test",
        turns=0,
    )
    moving.place.store.commit([RecordDecision(decision)])


def holders(moving: Moving) -> dict[str, str]:
    return {Path(item.name).name: item.holder.asset for item in moving.register.all()}


async def turned_down(moving: Moving) -> None:
    """Asset `a` has left intent while it is fenced."""
    declare(moving, f"a p {DOWN}")
    await moving.published()
    stands(moving, FENCED)


async def refused(moving: Moving) -> Diagnostic:
    attempt = await moving.publisher.refresh()
    assert attempt.publication is Publication.REFUSED, attempt.publication
    [found] = attempt.diagnostics
    return found


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("path", ["p", "link/p"])
def test_a_path_is_not_free_before_it_is_removed(tmp_path: Path, path: str, at_once: bool) -> None:
    async def scenario(moving: Moving) -> None:
        (moving.place.workspace / "link").symlink_to(".")
        await turned_down(moving)
        if not at_once:
            declare(moving, "c r {}")
            await moving.published()
        declare(moving, "c r {}", f"b {path} {{}}")
        found = await refused(moving)
        assert (found.code, found.subject) == ("VAL030", "b")
        assert found.at == Position("assets/files.yaml", 2, 3)
        assert "which `a` holds: it is still being turned down" in found.what
        assert "wait until `a` is removed (lehr why a)" in found.fix
        assert holders(moving)["p"] == "a"
        stands(moving, REMOVED)
        await moving.published()
        assert holders(moving) == {"p": "b", "r": "c"}, "also if it was not given up"

    moving(tmp_path, scenario)


def test_a_path_is_not_free_while_its_asset_is_turned_down_in_the_same_change(tmp_path: Path) -> None:
    async def scenario(moving: Moving) -> None:
        (moving.place.workspace / "link").symlink_to(".")
        declare(moving, f"a p {DOWN}", "b link/p {}")
        assert (await refused(moving)).code == "VAL031"

    moving(tmp_path, scenario)


async def _let_go(moving: Moving) -> None:
    declare(moving, "b p {}", let_go="{a: b has it now}")
    await moving.published()
    assert holders(moving) == {"p": "b"}


async def _let_go_before(moving: Moving) -> None:
    declare(moving, "c r {}", let_go="{a: not ours}")
    await moving.published()
    stands(moving, (Status.ORPHANED, Goal.PRESENT))
    declare(moving, "c r {}", "b p {}")
    await moving.published()
    assert holders(moving) == {"p": "b", "r": "c"}


async def _swap(moving: Moving) -> None:
    declare(moving, "a p {}", "b q {}")
    await moving.published()
    declare(moving, "a q {}", "b p {}")
    await moving.published()
    assert holders(moving) == {"p": "b", "q": "a"}


async def _comes_back(moving: Moving) -> None:
    await turned_down(moving)
    declare(moving, "c r {}")
    await moving.published()
    declare(moving, "c r {}", "a p {}")
    await moving.published()
    assert holders(moving) == {"p": "a", "r": "c"}


@pytest.mark.parametrize("scenario", [_let_go, _let_go_before, _swap, _comes_back])
def test_a_path_passes_on_from_what_does_not_need_it(
    tmp_path: Path, scenario: Callable[[Moving], Awaitable[None]]
) -> None:
    moving(tmp_path, scenario)


def test_an_id_is_free_for_another_type_once_it_is_removed(tmp_path: Path) -> None:
    freeze = "- {id: a, type: lehr.Freeze, payload: {select: {ids: [z]}, reason: r}}\n"

    async def scenario(moving: Moving) -> None:
        await turned_down(moving)
        declare(moving, "c r {}")
        await moving.published()
        moving.place.write("assets/more.yaml", freeze)
        attempt = await moving.publisher.refresh()
        assert attempt.publication is Publication.REFUSED
        assert "VAL011" in codes(attempt)
        stands(moving, REMOVED)
        await moving.published()

    moving(tmp_path, scenario)


def test_a_register_that_is_lost_learns_of_what_is_in_production_and_nothing_else(tmp_path: Path) -> None:
    async def scenario(moving: Moving) -> None:
        declare(moving, "a p {}", "b q {}", "c r {}")
        await moving.published()
        declare(moving, f"a p {DOWN}", f"b q {DOWN}", "c r {}")
        await moving.published()
        stands(moving, FENCED)
        stands(moving, REMOVED, "b")
        declare(moving, f"b q {DOWN}", "c r {}")
        await moving.published()
        await moving.claims.release(PARTITION, [AssetId(id) for id in "abc"])
        declare(moving, f"b q {DOWN}", "c r {}", "d s {}")
        await moving.published()
        assert holders(moving) == {"p": "a", "r": "c", "s": "d"}

    moving(tmp_path, scenario)


def test_what_comes_back_while_its_claims_are_given_up_claims_them_again(tmp_path: Path) -> None:
    async def scenario(moving: Moving) -> None:
        await turned_down(moving)
        declare(moving, "c r {}")
        await moving.published()
        stands(moving, REMOVED)
        declare(moving, "c r {}", "a p {}")
        publish = moving.publisher.steps["publish"]

        async def meanwhile(judged: Judged) -> Begun | Ended:
            await moving.claims.release(PARTITION, [AssetId("a")])  # as a turn that has begun before
            return await publish(judged)

        moving.publisher.steps["publish"] = meanwhile
        await moving.published()
        assert holders(moving) == {"p": "a", "r": "c"}

    moving(tmp_path, scenario)
