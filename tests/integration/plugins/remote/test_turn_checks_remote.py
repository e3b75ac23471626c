"""Checks of a plugin asked by a turn of the Enforcer, whose reader has to fetch what is not in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

from lehr.base.clock import SystemClock
from lehr.base.errors import NeedError, TransientError
from lehr.enforce.governance import Governance
from lehr.enforce.neighbours import Neighbours
from lehr.enforce.turn_checks import TurnCheckReader, ask_all
from lehr.model.asset import Asset, AssetId
from lehr.model.control_index import ControlIndex
from lehr.model.decision import Reservation, Verdict
from lehr.model.incarnation import Incarnation
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.plugins.remote.check import RemoteCheck
from lehr.plugins.remote.connection import Connection
from lehr.testing.checks import SOME_DIFF
from tests.integration.plugins.remote.managed import connection
from tests.unit.enforce.test_turn_checks import Neighbourhood
from tests.unit.enforce.turns import ASSET, view


class Fetched:
    """Stands in for `Lookups`: nothing is in memory until it was fetched.

    Attributes:
        fetches: how often something was.
        broken: raised by each of these.
    """

    def __init__(self) -> None:
        self.fetches = 0
        self.broken: Exception | None = None
        self._fetching = False

    async def run(self, look: Callable[[], Any]) -> Any:
        await asyncio.sleep(0)
        if self.broken is not None:
            raise self.broken
        self.fetches += 1
        self._fetching = True
        try:
            return look()
        finally:
            self._fetching = False

    def require(self) -> None:
        if not self._fetching:
            raise NeedError("it has to be fetched")

    def usage(self, reservation: Reservation, now: float) -> tuple[int, float | None]:
        self.require()
        return reservation.limit - 4, None


class Street(Neighbourhood):
    """Stands in for `Neighbours`: assets have to be fetched, too."""

    def __init__(self) -> None:
        self.fetched = Fetched()
        self.lookups = self.fetched  # type: ignore[assignment]

    def asset(self, id: AssetId, sequence: int) -> Asset | None:
        self.fetched.require()
        return ASSET if id == ASSET.id else None

    def referrers(self, *asked: Any) -> list[Any]:
        self.fetched.require()
        return super().referrers(*asked)


def turn(street: Street, looked_at: list[AssetId]) -> TurnCheckReader:
    governance = Governance(cast(Incarnation, None), {}, 0, ControlIndex(), (), ())
    return TurnCheckReader(view(), governance, cast(Neighbours, street), looked_at.append)


def story(main: Callable[[Connection], Awaitable[None]], *arguments: str) -> None:
    async def opened() -> None:
        opening = connection("check_plugin.py", [], arguments=arguments)
        try:
            await main(opening)
        finally:
            await opening.close()

    asyncio.run(opened())


async def verdicts(reader: TurnCheckReader, *checks: RemoteCheck) -> tuple[Verdict, ...]:
    return await ask_all(checks, view(), SOME_DIFF, Purpose.FORWARD, reader)


def test_all_questions_are_answered_by_a_turn() -> None:
    async def main(opened: Connection) -> None:
        street, looked_at = Street(), list[AssetId]()
        reader = turn(street, looked_at)
        check = RemoteCheck("crowded", opened, SystemClock())
        (verdict,) = await verdicts(reader, check)
        assert verdict.reason == "Crowded", verdict
        assert json.loads(verdict.message) == {
            "absent": ["absent"],
            "controls": 0,
            "count": 3,
            "dependencies": 0,
            "differ": ["busy"],
            "governing": 0,
            "nobody": True,
            "own": ASSET.type,
            "referrers": 0,
        }
        assert sorted(looked_at) == ["absent", "busy", "quiet"]  # admission compares these again
        assert set(reader.looked_at) >= {AssetId("busy"), AssetId("quiet")}
        assert street.fetched.fetches > 0

    story(main)


def test_each_turn_begins_anew_although_its_check_is_the_same() -> None:
    async def main(opened: Connection) -> None:
        check = RemoteCheck("crowded", opened, SystemClock())
        found = [await verdicts(turn(Street(), []), check) for _ in range(3)]
        assert found[0] == found[1] == found[2]
        assert not check._unfinished

    story(main)


def test_a_lookup_that_fails_holds_the_push_and_its_own_check_alone() -> None:
    async def main(opened: Connection) -> None:
        street = Street()
        street.fetched.broken = TransientError("the store is busy")
        crowded, on_call = (RemoteCheck(name, opened, SystemClock()) for name in ("crowded", "on-call"))
        (verdict,) = await verdicts(turn(street, []), crowded, on_call)
        assert (verdict.check, verdict.allow, verdict.reason) == ("crowded", False, Reason.CHECK_FAILED)
        assert "the store is busy" in verdict.message

    story(main)


def test_a_plugin_that_is_gone_holds_only_pushes_of_the_types_that_its_check_judges() -> None:
    async def main(opened: Connection) -> None:
        def check(*types: str) -> RemoteCheck:
            return RemoteCheck("on-call", opened, SystemClock(), types=types)

        (verdict,) = await verdicts(turn(Street(), []), check())
        assert not verdict.allow
        (verdict,) = await verdicts(turn(Street(), []), check(ASSET.type, "shop.Other"))
        assert not verdict.allow
        assert await verdicts(turn(Street(), []), check("shop.Other")) == ()

    story(main, "dies")
