"""A check's inputs, as fixed values: for tests of checks."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from lehr.base.digest import Digest, digest
from lehr.base.errors import LehrError
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control
from lehr.model.decision import Reservation
from lehr.model.diff import Change, Diff, Goal
from lehr.model.monitoring import MetricHistory, Question
from lehr.model.types import Registry
from lehr.sdk.check import CheckRequest, Referrer
from lehr.testing.plugins import target_of
from lehr.testing.virtual import EPOCH

T = TypeVar("T")

SOME_DIFF = Diff((Change("content", "new", "old"),))
"""A difference, where it does not matter which."""


class FixedCheckReader:
    """A `lehr.sdk.check.CheckReader` over fixed values.

    Attributes:
        asked: ids in the order in which their diffs were asked for.
        trusted: those of them whose own last turn would have done.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        governing: Iterable[Asset] = (),
        controls: Iterable[Control] = (),
        diffs: Mapping[AssetId, Diff | LehrError] | None = None,
        own_diffs: Mapping[AssetId, Diff] | None = None,
        usages: Mapping[str, tuple[int, float | None]] | None = None,
        referrers: Iterable[Referrer] = (),
        assets: Iterable[Asset] = (),
        histories: Mapping[Question, MetricHistory] | None = None,
    ) -> None:
        """A reader that answers with these.

        Args:
            governing: all assets of the governing incarnation that configure checks.
            diffs: diff by id of every other asset there is; an error is raised.
            own_diffs: those at newer content of their own, where they are different.
            referrers: assets that refer, or once referred, to the asset of the push.
            assets: other assets, as far as a check looks at more of them than their diffs.
            usages: answer by the reservation's key; a key that is missing is unused.
            histories: findings of looks at questions about production; others were never looked at.
        """
        self.asked: list[AssetId] = []
        self.trusted: list[AssetId] = []
        self._assets = {asset.id: asset for asset in assets}
        self._registry = registry
        self._governing = tuple(sorted(governing, key=lambda asset: asset.id))
        self._controls = tuple(controls)
        self._diffs = dict(diffs or {})
        self._own_diffs = dict(own_diffs or {})
        self._usages = dict(usages or {})
        self._referrers = tuple(referrers)
        self._histories = dict(histories or {})

    def payload(self, asset: Asset, kind: type[T]) -> T:
        return self._registry.payload(asset, kind)

    def addon(self, asset: Asset, name: str, kind: type[T]) -> T | None:
        return self._registry.addon(asset, name, kind)

    def dependencies(self, asset: Asset) -> Sequence[AssetId]:
        return self._registry.dependencies(asset)

    def governing(self, type: str) -> Sequence[Asset]:
        return [asset for asset in self._governing if asset.type == type]

    def controls(self) -> Sequence[Control]:
        return self._controls

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        return self._usages.get(reservation.key, (0, None))

    async def metric_history(self, question: Question) -> MetricHistory | None:
        return self._histories.get(question)

    def asset(self, id: AssetId) -> Asset | None:
        return self._assets.get(id)

    async def diff(self, id: AssetId, *, own: bool = False, settled: bool = False) -> Diff | None:
        self.asked.append(id)
        if settled:
            self.trusted.append(id)
        found = self._own_diffs.get(id, self._diffs.get(id)) if own else self._diffs.get(id)
        if isinstance(found, LehrError):
            raise found
        return found

    async def look_at(self, ids: Iterable[AssetId]) -> None:
        """Nothing is looked at ahead: `diff` answers immediately."""

    def referrers(self) -> Sequence[Referrer]:
        return self._referrers

    def contents(self) -> Digest:
        """Equal while nothing that the reader answers with has changed."""
        diffs = {id: str(found) for id, found in self._diffs.items()}
        histories = [(str(question), history) for question, history in self._histories.items()]
        answers = [self._governing, self._controls, diffs, self._usages, self._referrers, self._assets]
        return digest([*answers, histories])

    def ungoverned(self) -> FixedCheckReader:
        """The same without governing assets and controls."""
        left = copy.copy(self)
        left.asked, left.trusted, left._governing, left._controls = [], [], (), ()
        return left


def check_request(
    asset: Asset, *, now: float = EPOCH, goal: Goal = Goal.PRESENT, diff: Diff = SOME_DIFF
) -> CheckRequest:
    """A push of `asset`, of the partition `test`, that is asked for at `now`."""
    return CheckRequest(target_of(asset, goal), asset, diff, 2, now, asset)
