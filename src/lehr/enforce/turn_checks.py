"""Runs the checks of a turn, and provides what they may read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from lehr.base.digest import Digest
from lehr.base.errors import NeedError
from lehr.base.log import Log
from lehr.enforce.governance import AsOf, Governance
from lehr.enforce.neighbours import UNDER_WAY, Neighbours, needs, no_holds
from lehr.enforce.plugin_errors import FAILURES, one_line, reraise_if_cancelled, storable
from lehr.enforce.state import View
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import Diff, Goal
from lehr.model.monitoring import MetricHistory, Question
from lehr.model.operation import Purpose
from lehr.model.reason import Reason
from lehr.sdk.check import CheckPlugin, CheckRequest, Referrer
from lehr.sdk.metrics import NO_METRICS, Metrics

T = TypeVar("T")

log = Log()

_RETRY_SECONDS = 10.0


class TurnCheckReader:
    """`lehr.sdk.check.CheckReader` for one turn.

    Attributes:
        looked_at: assets that were looked at or have left, with their digests in the newest incarnation;
            admission ensures that these are still current, and that no push of them is under way.
        others: assets whose pins and releases the verdicts rest on.
    """

    def __init__(
        self,
        view: View,
        governance: Governance,
        neighbours: Neighbours,
        on_look: Callable[[AssetId], None] = lambda id: None,
        on_difference: Callable[[AssetId], None] = lambda id: None,
        metrics: Metrics = NO_METRICS,
    ) -> None:
        """Read for the turn of `view`, which `governance` governs.

        Args:
            on_look: called with each asset before it is looked at.
            on_difference: called with each that differs.
            metrics: answers questions about production.
        """
        self._view = view
        self._governance = governance
        self._neighbours = neighbours
        self._lookups = neighbours.lookups
        self._on_look = on_look
        self._on_difference = on_difference
        self._metrics = metrics
        stays = view.goal is Goal.PRESENT
        self._stays = stays
        # Intent has let go of it, and something still needs it: no pin keeps others at its content.
        self._outlives_intent = view.newest_digest is None and view.pinning.pin is None
        self._sequence = view.pinning.content if stays else view.governing
        # An asset that leaves waits for the newest version of others, even where a pin still holds them back.
        self._as_of = AsOf(governance, view.now)
        self._holds_over = self._as_of.holds if stays else no_holds
        self._looked: dict[tuple[AssetId, int, bool], Diff | None] = {}
        self._found: dict[Hashable, Any] = {}
        self._missed: dict[Hashable, Callable[[], Any]] = {}
        self.looked_at: dict[AssetId, Digest | None] = {}
        self.others: dict[AssetId, None] = {}

    def payload(self, asset: Asset, kind: type[T]) -> T:
        return self._neighbours.registry.payload(asset, kind)

    def addon(self, asset: Asset, name: str, kind: type[T]) -> T | None:
        return self._neighbours.registry.addon(asset, name, kind)

    def dependencies(self, asset: Asset) -> Sequence[AssetId]:
        return self._neighbours.registry.dependencies(asset)

    def governing(self, type: str) -> Sequence[Asset]:
        return self._governance.of_type(type)

    def controls(self) -> Sequence[Control]:
        return self._governance.controls_over(self._view.key.id, self._view.now)

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        found: tuple[int, float | None] = self._look(
            reservation, partial(self._lookups.usage, reservation, self._view.now)
        )
        return found

    async def metric_history(self, question: Question) -> MetricHistory | None:
        return await self._metrics.history(question)

    def asset(self, id: AssetId) -> Asset | None:
        asset: Asset | None = self._look(id, partial(self._neighbours.asset, id, self._sequence))
        return asset

    def _look(self, place: Hashable, look: Callable[[], T]) -> T:
        """The result of `look`.

        Raises:
            NeedError: it has to be fetched first.
        """
        if place not in self._found:
            try:
                self._found[place] = look()
            except NeedError:
                self._missed[place] = look
                raise
        found: T = self._found[place]
        return found

    async def fetch(self) -> bool:
        """Look up what was missed. False if nothing was.

        Raises:
            LehrError: something cannot be looked up.
        """
        missed = bool(self._missed)
        while self._missed:
            place, look = self._missed.popitem()
            self._found[place] = await self._lookups.run(look)
        return missed

    async def diff(self, id: AssetId, *, own: bool = False, settled: bool = False) -> Diff | None:
        governing, sequence = self._view.governing, self._sequence
        if (own or self._outlives_intent) and sequence < governing:
            sequence = max(sequence, await self._content_of(id))
        asked = (id, sequence, settled)
        if asked not in self._looked:
            # Before it is looked at: what settles during the turn must not be missed.
            self._on_look(id)
            look = self._neighbours.look
            as_of = self._as_of
            found = await look(id, at := sequence, as_of, settled=settled, needed=self._stays)
            if found is None:
                # It is newer than the incarnation that a pin keeps the asset of the push at.
                found = await look(id, at := await self._content_of(id), as_of, needed=self._stays)
            if found is None:
                found = await look(id, at := governing, as_of, needed=self._stays)
            self._looked[asked] = None if found is None else found[0]
            if found is not None and not found[0].empty and not await self._awaits_release(id, at):
                self._on_difference(id)
            # A check that lets a push go although another is under way does not rely on the end of
            # that push.
            if found is not None and found[0] is not UNDER_WAY:
                self.looked_at[id] = found[1]
                self.others.update(dict.fromkeys(found.rests_on))
        return self._looked[asked]

    async def _content_of(self, id: AssetId) -> int:
        """The incarnation whose content another asset is to have; 0 if it is gone."""
        self.others[id] = None
        content_of = self._neighbours.content_of
        return await self._lookups.run(partial(content_of, id, self._view.governing, self._holds_over))

    async def _awaits_release(self, id: AssetId, sequence: int) -> bool:
        """Whether another asset waits for its release to the content of `sequence`: then it must differ."""
        awaits_release = self._neighbours.awaits_release
        return await self._lookups.run(partial(awaits_release, id, sequence, self._as_of))

    async def look_at(self, ids: Iterable[AssetId]) -> None:
        # An asset that cannot be compared fails in the check that needs it.
        await asyncio.gather(*map(self.diff, dict.fromkeys(ids)), return_exceptions=True)

    def referrers(self) -> Sequence[Referrer]:
        own, governing = self._view.key.id, self._view.governing
        found: Sequence[Referrer] = self._look(
            "referrers", partial(self._neighbours.referrers, own, governing, self._holds_over)
        )
        known = [referrer.asset.id for referrer in found]
        self.others.update(dict.fromkeys(known))
        if not self._stays:
            # When the turn began, none that has not left needed it: these have come back since.
            back = (referrer.asset for referrer in found if needs(referrer.mentions, own))
            self.looked_at.update((asset.id, asset.digest) for asset in back)
        # Another turn may be about to bring one of these back: admission compares and refuses.
        removed = partial(self._neighbours.removed_referrers, own, governing, known)
        self.looked_at.update(self._look("removed referrers", removed))
        return found


async def ask_all(
    checks: Sequence[CheckPlugin], view: View, diff: Diff, purpose: Purpose, read: TurnCheckReader
) -> tuple[Verdict, ...]:
    """Every check's verdicts, in order. A check that fails to answer waits."""
    assert view.asset is not None
    newest = view.newest or view.asset
    request = CheckRequest(view.target, view.asset, diff, view.governing, view.now, newest, purpose)
    return tuple([verdict for check in checks for verdict in await _ask(check, request, read)])


def waits_for(verdicts: Iterable[Verdict]) -> tuple[AssetId, ...]:
    """The assets that these wait for, each once."""
    named = (id for verdict in verdicts if not verdict.allow for id in verdict.wait_for)
    return tuple(dict.fromkeys(named))


async def _ask(check: CheckPlugin, request: CheckRequest, read: TurnCheckReader) -> list[Verdict]:
    try:
        answer = await _answer(check, request, read)
    except asyncio.CancelledError:
        reraise_if_cancelled()
        return [_no_answer(check, request, "it cancelled itself")]
    except FAILURES as error:
        log.exception("check failed to answer", check=check.name, asset=request.asset.id)
        return [_no_answer(check, request, one_line(error))]
    if isinstance(answer, list) and all(isinstance(item, Verdict) for item in answer):
        try:
            return [storable(item, Verdict) for item in answer]
        except ValueError as error:
            return [_no_answer(check, request, f"its verdict is not valid: {error}")]
    return [_no_answer(check, request, f"it returned a {type(answer).__name__} instead of verdicts")]


async def _answer(check: CheckPlugin, request: CheckRequest, read: TurnCheckReader) -> object:
    """The answer of a check, which is asked again until everything that it reads is in memory."""
    while True:
        try:
            answer: object = await check.check(request, read)
        except FAILURES:
            # Not only of a `NeedError`: it may have become an error of the check's own.
            if not await read.fetch():
                raise
        else:
            if not await read.fetch():
                return answer


def _no_answer(check: CheckPlugin, request: CheckRequest, why: str) -> Verdict:
    return Verdict(
        check.name,
        allow=False,
        reason=Reason.CHECK_FAILED,
        message=f"the check failed: {why}",
        unblock="fix the check; Lehr runs it again automatically",
        until=request.now + _RETRY_SECONDS,
    )
