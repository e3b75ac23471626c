"""Asks the checks, with what they may look at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import structlog

from lehr.base.digest import Digest
from lehr.enforce.failing import FAILURES, brief, raise_if_ours, storable
from lehr.enforce.governance import Governance
from lehr.enforce.neighbours import UNDER_WAY, Neighbours
from lehr.enforce.state import View
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import Diff, Goal
from lehr.model.reason import Reason
from lehr.model.types import Registry
from lehr.sdk.check import CheckPlugin, CheckRequest, Referrer
from lehr.sdk.store import Records

log = structlog.get_logger()

_RETRY_SECONDS = 10.0


class Looking:
    """`lehr.sdk.check.CheckReader` for one turn.

    Attributes:
        looked_at: assets that were looked at, with their digests in the newest incarnation;
            admission ensures that these are still current, and that no push of them is under way.
    """

    def __init__(
        self,
        view: View,
        governance: Governance,
        neighbours: Neighbours,
        records: Records,
        looks: Callable[[AssetId], None] = lambda id: None,
        differs: Callable[[AssetId], None] = lambda id: None,
    ) -> None:
        """Read for the turn of `view`, which `governance` governs.

        Args:
            looks: called with each asset before it is looked at.
            differs: called with each that differs.
        """
        self._view = view
        self._governance = governance
        self._neighbours = neighbours
        self._records = records
        self._looks = looks
        self._differs = differs
        stays = view.goal is Goal.PRESENT
        self._sequence = view.pinning.content if stays else view.governing
        # An asset that leaves waits for what others will become, even where a pin keeps them for
        # now.
        self._pins = governance.standing(view.now) if stays else ()
        self._looked: dict[tuple[AssetId, bool], Diff | None] = {}
        self.looked_at: dict[AssetId, Digest | None] = {}

    @property
    def registry(self) -> Registry:
        return self._neighbours.registry

    def governing(self, type: str) -> Sequence[Asset]:
        return self._governance.of_type(type)

    def controls(self) -> Sequence[Control]:
        return self._governance.standing(self._view.now)

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        return self._records.usage(reservation, self._view.now)

    def asset(self, id: AssetId) -> Asset | None:
        return self._neighbours.asset(id, self._sequence)

    async def diff(self, id: AssetId, *, settled: bool = False) -> Diff | None:
        if (id, settled) not in self._looked:
            # Before it is looked at: what settles during the turn must not be missed.
            self._looks(id)
            governing, sequence = self._view.governing, self._sequence
            if settled:
                # A push that goes back to older content does not wait for others to go back.
                sequence = max(sequence, self._neighbours.content_of(id, governing, self._pins))
            found = await self._neighbours.look(id, sequence, governing, settled=settled)
            self._looked[id, settled] = None if found is None else found[0]
            if found is not None and not found[0].empty:
                self._differs(id)
            # A check that lets a push go although another is under way does not rely on the end of
            # that push.
            if found is not None and found[0] is not UNDER_WAY:
                self.looked_at[id] = found[1]
        return self._looked[id, settled]

    async def look_at(self, ids: Iterable[AssetId]) -> None:
        # An asset that cannot be looked at fails when it is asked for.
        await asyncio.gather(*map(self.diff, dict.fromkeys(ids)), return_exceptions=True)

    def referrers(self) -> Sequence[Referrer]:
        return self._neighbours.referrers(self._view.key.id, self._view.governing, self._pins)


async def ask_all(
    checks: Sequence[CheckPlugin], view: View, diff: Diff, read: Looking
) -> tuple[Verdict, ...]:
    """Every check's verdicts, in order. A check that fails to answer waits."""
    assert view.asset is not None
    newest = view.newest or view.asset
    request = CheckRequest(view.target, view.asset, diff, view.governing, view.now, newest)
    return tuple([verdict for check in checks for verdict in await _ask(check, request, read)])


async def _ask(check: CheckPlugin, request: CheckRequest, read: Looking) -> list[Verdict]:
    try:
        answer: object = await check.check(request, read)
    except asyncio.CancelledError:
        raise_if_ours()
        return [_no_answer(check, request, "it cancelled itself")]
    except FAILURES as error:
        log.exception("check failed to answer", check=check.name, asset=request.asset.id)
        return [_no_answer(check, request, brief(error))]
    if isinstance(answer, list) and all(isinstance(item, Verdict) for item in answer):
        try:
            return [storable(item, Verdict) for item in answer]
        except ValueError as error:
            return [_no_answer(check, request, f"its verdict cannot be used: {error}")]
    return [_no_answer(check, request, f"it answered a {type(answer).__name__} instead of verdicts")]


def _no_answer(check: CheckPlugin, request: CheckRequest, why: str) -> Verdict:
    return Verdict(
        check.name,
        allow=False,
        reason=Reason.CHECK_FAILED,
        message=f"the check failed: {why}",
        unblock="a check that answers",
        until=request.now + _RETRY_SECONDS,
    )
