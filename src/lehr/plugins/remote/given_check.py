"""What a check knows, as a check in Python reads it: a `CheckReader` over the facts of a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from lehr.base.errors import NeedError
from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control
from lehr.model.decision import Reservation
from lehr.model.diff import Diff
from lehr.model.monitoring import MetricHistory, Question
from lehr.model.types import Registry
from lehr.plugins.remote import messages as m
from lehr.plugins.remote.check_wire import asset_of, referrer_of, reservation_message
from lehr.plugins.remote.wire import diff_of, error_of
from lehr.sdk.check import Referrer

T = TypeVar("T")


class GivenCheckReader:
    """A `lehr.sdk.check.CheckReader` over facts.

    Attributes:
        need: all questions without an answer. Unless it is empty, the call has to be repeated.
    """

    def __init__(self, facts: Iterable[m.CheckFact], registry: Registry) -> None:
        self.need = m.CheckQuestions()
        self._registry = registry
        self._facts = {_key(fact.question): fact for fact in facts}

    def payload(self, asset: Asset, kind: type[T]) -> T:
        if kind is dict and asset.type not in self._registry.types:
            data: Any = asset.document()["payload"]
            return data  # type: ignore[no-any-return]
        return self._registry.payload(asset, kind)

    def addon(self, asset: Asset, name: str, kind: type[T]) -> T | None:
        return self._registry.addon(asset, name, kind)

    def dependencies(self, asset: Asset) -> Sequence[AssetId]:
        return [AssetId(id) for id in self._fact(m.CheckQuestion(dependencies=asset.id)).dependencies]

    def governing(self, type: str) -> Sequence[Asset]:
        return [asset_of(asset) for asset in self._fact(m.CheckQuestion(governing=type)).assets]

    def controls(self) -> Sequence[Control]:
        fact = self._fact(m.CheckQuestion(controls=True))
        return [msgspec.json.decode(control.record, type=Control) for control in fact.controls]

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        usage = self._fact(m.CheckQuestion(usage=reservation_message(reservation))).usage
        return usage.count, usage.until if usage.HasField("until") else None

    async def metric_history(self, question: Question) -> MetricHistory | None:
        fact = self._fact(m.CheckQuestion(metric_history=msgspec.json.encode(question)))
        content = fact.metric_history
        return msgspec.json.decode(content, type=MetricHistory) if content else None

    def asset(self, id: AssetId) -> Asset | None:
        found = self._fact(m.CheckQuestion(asset=id)).assets[0]
        return asset_of(found) if found.exists else None

    async def diff(self, id: AssetId, *, own: bool = False, settled: bool = False) -> Diff | None:
        asked = m.DiffQuestion(id=id, own=own, settled=settled)
        fact = self._fact(m.CheckQuestion(difference=asked))
        return diff_of(fact.difference, str) if fact.HasField("difference") else None

    async def look_at(self, ids: Iterable[AssetId]) -> None:
        """Ask for all of them at once."""
        missing = [
            question
            for id in ids
            if _key(question := m.CheckQuestion(difference=m.DiffQuestion(id=id))) not in self._facts
        ]
        self.need.questions.extend(missing)
        if missing:
            raise NeedError("differences are needed", code="PLG153")

    def referrers(self) -> Sequence[Referrer]:
        return [referrer_of(item) for item in self._fact(m.CheckQuestion(referrers=True)).referrers]

    def _fact(self, question: m.CheckQuestion) -> m.CheckFact:
        fact = self._facts.get(_key(question))
        if fact is None:
            self.need.questions.append(question)
            raise NeedError("a fact is needed", code="PLG152")
        if fact.HasField("trouble"):
            raise error_of(fact.trouble, str)
        return fact


def _key(question: m.CheckQuestion) -> bytes:
    return bytes(question.SerializeToString(deterministic=True))
