"""Checks are asked one by one; one that fails to answer waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, cast

import pytest

from lehr.base.digest import Digest
from lehr.base.errors import StalledError
from lehr.enforce.governance import AsOf, Governance
from lehr.enforce.neighbours import HoldsOver, Look, Neighbours
from lehr.enforce.turn_checks import TurnCheckReader, ask_all
from lehr.model.asset import AssetId
from lehr.model.control_index import ControlIndex
from lehr.model.decision import Verdict
from lehr.model.diff import NO_DIFF
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.sdk.check import CheckPlugin, CheckReader, CheckRequest, Referrer
from lehr.testing.checks import SOME_DIFF
from lehr.testing.virtual import EPOCH, run
from lehr.testing.world import registry
from tests.unit.enforce.turns import view

DIFFS = {AssetId("quiet"): NO_DIFF, AssetId("busy"): SOME_DIFF, AssetId("held"): SOME_DIFF}
YES, NO = Verdict("yes", True), Verdict("no", False, "Why", "m", "u")


class Scripted(CheckPlugin):
    """Answers what a function makes up."""

    name = "scripted"

    def __init__(self, says: Callable[[], Any]) -> None:
        self._says = says

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        return cast(list[Verdict], self._says())


class Dependent(CheckPlugin):
    """Looks at other assets."""

    name = "dependent"

    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        for id in ("quiet", "busy", "absent", "quiet", "held"):
            await read.diff(AssetId(id))
        return []


class InMemory:
    """Stands in for `Lookups`."""

    async def run(self, look: Callable[[], Any]) -> Any:
        return look()


class Neighbourhood:
    """Stands in for `Neighbours`."""

    registry = registry()
    lookups = InMemory()

    def referrers(self, id: AssetId, sequence: int, holds_over: HoldsOver) -> list[Referrer]:
        return []

    def removed_referrers(
        self, id: AssetId, sequence: int, known: Collection[AssetId]
    ) -> dict[AssetId, Digest]:
        return {AssetId("gone"): Digest("digest of gone")}

    def content_of(self, id: AssetId, governing: int, holds_over: HoldsOver) -> int:
        return governing

    def awaits_release(self, id: AssetId, sequence: int, as_of: AsOf) -> bool:
        return id == "held"

    async def look(
        self, id: AssetId, sequence: int, as_of: AsOf, *, needed: bool, settled: bool = False
    ) -> Look | None:
        return (
            Look(DIFFS[id], Digest(f"digest of {id}"), (AssetId(f"read by {id}"),)) if id in DIFFS else None
        )


def looking(asked: list[AssetId], differ: list[AssetId] | None = None) -> TurnCheckReader:
    governance = Governance(cast(Incarnation, None), {}, 0, ControlIndex(), (), ())
    neighbours = cast(Neighbours, Neighbourhood())
    found: list[AssetId] = [] if differ is None else differ
    return TurnCheckReader(view(), governance, neighbours, asked.append, found.append)


def ask(*checks: CheckPlugin) -> tuple[Verdict, ...]:
    async def main() -> tuple[Verdict, ...]:
        return await ask_all(checks, view(), SOME_DIFF, Purpose.FORWARD, looking([]))

    return run(main, seed=1)


def raising(error: BaseException) -> Callable[[], Any]:
    def says() -> Any:
        raise error

    return says


def test_all_verdicts_come_in_the_order_of_the_checks() -> None:
    assert ask(Scripted(lambda: [YES, NO]), Scripted(list), Scripted(lambda: [YES])) == (YES, NO, YES)


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (raising(ValueError("oops\nat length")), "ValueError: oops"),
        (raising(StalledError("no")), "StalledError: no"),
        (raising(asyncio.CancelledError()), "cancelled"),
        (lambda: None, "NoneType"),
        (lambda: [True], "list"),
    ],
)
def test_a_check_that_fails_to_answer_waits_and_the_others_are_still_asked(
    says: Callable[[], Any], why: str
) -> None:
    failed, other = ask(Scripted(says), Scripted(lambda: [YES]))
    assert (failed.check, failed.allow, failed.reason) == ("scripted", False, Reason.CHECK_FAILED)
    assert why in failed.message
    assert "\n" not in failed.message
    assert failed.until is not None
    assert failed.until > EPOCH
    assert other == YES


def test_what_was_found_is_remembered_with_its_digest_and_looked_at_once() -> None:
    async def main() -> None:
        asked: list[AssetId] = []
        differ: list[AssetId] = []
        reader = looking(asked, differ)
        await ask_all([Dependent()], view(), SOME_DIFF, Purpose.FORWARD, reader)
        assert reader.looked_at == {id: f"digest of {id}" for id in ("quiet", "busy", "held")}
        assert {f"read by {id}" for id in ("quiet", "busy", "held")} <= set(reader.others)
        assert asked == ["quiet", "busy", "absent", "held"]
        assert differ == ["busy"]  # that `held` differs is why it waits for its release

    run(main, seed=1)


def test_admission_is_told_of_referrers_that_have_left_because_they_may_be_brought_back() -> None:
    reader = looking([])
    assert list(reader.referrers()) == []
    assert reader.looked_at == {"gone": "digest of gone"}


def test_a_cancellation_from_outside_is_passed_on() -> None:
    class Slow(Scripted):
        async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
            await asyncio.Event().wait()
            return []

    async def main() -> None:
        task = asyncio.create_task(ask_all([Slow(list)], view(), SOME_DIFF, Purpose.FORWARD, looking([])))
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(main, seed=1)
