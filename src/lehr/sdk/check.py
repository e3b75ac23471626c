"""Check plugins: may this push start *now*?

The contract, for authors:

* A check allows or waits; it never rejects, and never changes anything.
* A check's configuration is intent: assets of its own type, read at the *governing* incarnation, so
  that a freeze takes effect immediately.
* Checks propose, admission decides: shares of a limit go into `Verdict.reservations`.
* A verdict that waits names what would unblock it, and when it may change automatically.
* An exception counts as "wait": a check that cannot answer never allows a push.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol, TypeVar

import msgspec

from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import Diff, Target
from lehr.model.monitoring import MetricHistory, Question
from lehr.model.operation import Purpose
from lehr.model.selector import Selector
from lehr.model.types import Mention

T = TypeVar("T")


class CheckRequest(msgspec.Struct, frozen=True):
    """The push that the check judges.

    Attributes:
        asset: at the content incarnation (`target.incarnation`).
        governing: sequence of the newest incarnation, which checks are configured by.
        now: wall-clock seconds.
        newest: the asset as intent last had it; another one than `asset` where a pin holds it.
        purpose: why the asset is pushed.
    """

    target: Target
    asset: Asset
    diff: Diff
    governing: int
    now: float
    newest: Asset
    purpose: Purpose = Purpose.FORWARD

    def selected(self, selector: Selector) -> bool:
        """Whether `selector` selects the pushed asset, as intent last had it or as it is pushed now.

        A freeze of a label applies to assets that have the label, and to those about to run with
        it.
        """
        return selector.matches(self.newest) or selector.matches(self.asset)


class Referrer(msgspec.Struct, frozen=True):
    """An asset that refers, or once referred, to the asset of the push.

    Attributes:
        asset: as it is in the governing incarnation, or in the one that a pin keeps it at. For
            another goal of the push than PRESENT, pins do not count.
        mentions: its references to the asset of the push; empty if it no longer refers to it.
    """

    asset: Asset
    mentions: tuple[Mention, ...]


class CheckReader(Protocol):
    """Everything that checks may look at."""

    def payload(self, asset: Asset, kind: type[T]) -> T:
        """The payload of an asset as `kind`; of a declared type, as `dict`.

        Raises:
            TypeError: the asset is of another type.
            StalledError: it is of a version that cannot become the newest.
        """
        ...

    def addon(self, asset: Asset, name: str, kind: type[T]) -> T | None:
        """The addon `name` of an asset as `kind`; None when the asset has none.

        Raises:
            StalledError: as `payload`.
        """
        ...

    def dependencies(self, asset: Asset) -> Sequence[AssetId]:
        """Assets that are pushed before this one, each once, in order of mention."""
        ...

    def governing(self, type: str) -> Sequence[Asset]:
        """The assets of `type` in the governing incarnation, by id."""
        ...

    def controls(self) -> Sequence[Control]:
        """The controls that are active now and may select the asset of the push: see `Selector.matches`."""
        ...

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        """How many count against this limit now, and when the oldest stops counting.

        The time is in wall-clock seconds; None when it depends on an operation's end.
        """
        ...

    async def metric_history(self, question: Question) -> MetricHistory | None:
        """The findings of the looks at a question; None before the first look has ended.

        From now on the question is asked in its interval, and assets that wait have a turn when its answer
        changes what it holds. Put the last reading into `Verdict.readings`.
        """
        ...

    def asset(self, id: AssetId) -> Asset | None:
        """Another asset in the incarnation that `diff` reads first; None if it has no such asset."""
        ...

    async def diff(self, id: AssetId, *, own: bool = False, settled: bool = False) -> Diff | None:
        """The diff of another asset at the content incarnation of the push, as its plugin reports it.

        For another goal than PRESENT, at the governing incarnation: an asset that leaves must wait
        for what others will become. A push under way counts as a difference with unknown effects.
        An asset that is newer than the content incarnation is compared at its own content, by its pin
        if it has one. None if the newest incarnation has no such asset either.

        Args:
            own: compare it at its own content if that is newer: a pin holds the content of the push back.
            settled: do not compare an asset whose last turn has found this very content in place: its diff is
                empty then.
        """
        ...

    async def look_at(self, ids: Iterable[AssetId]) -> None:
        """Look at several assets at the same time; `diff` then answers for each without waiting."""
        ...

    def referrers(self) -> Sequence[Referrer]:
        """Assets of the governing incarnation that refer, or once referred, to the asset of the push."""
        ...


class CheckPlugin(ABC):
    """Base class of check plugins."""

    name: ClassVar[str]

    @abstractmethod
    async def check(self, request: CheckRequest, read: CheckReader) -> list[Verdict]:
        """One verdict for each limit that applies; none when the check does not apply."""
