"""Check plugins: may this push go *now*?

The contract, for authors:

* A check allows or waits; it never rejects, and never changes anything.
* A check's configuration is intent: assets of its own type, read at the *governing* incarnation, so
  that a freeze takes effect immediately.
* Checks propose, admission decides: shares of a limit go into `Verdict.reservations`.
* A verdict that waits names what would unblock it, and when it may change automatically.
* An exception counts as "wait": a check that cannot answer never lets a push through.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar, Protocol

import msgspec

from lehr.model.asset import Asset, AssetId
from lehr.model.control import Control
from lehr.model.decision import Reservation, Verdict
from lehr.model.diff import Diff, Target
from lehr.model.selector import Selector
from lehr.model.types import Mention, Registry


class CheckRequest(msgspec.Struct, frozen=True):
    """The push that is asked for.

    Attributes:
        asset: at the content incarnation (`target.incarnation`).
        governing: sequence of the newest incarnation, which checks are configured by.
        now: wall-clock seconds.
        newest: the asset as intent last had it; another one than `asset` where a pin holds it.
    """

    target: Target
    asset: Asset
    diff: Diff
    governing: int
    now: float
    newest: Asset

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

    @property
    def registry(self) -> Registry:
        """Types, to decode payloads and addons with."""
        ...

    def governing(self, type: str) -> Sequence[Asset]:
        """The assets of `type` in the governing incarnation, by id."""
        ...

    def controls(self) -> Sequence[Control]:
        """Freezes and overrides that are active now, whatever they select."""
        ...

    def usage(self, reservation: Reservation) -> tuple[int, float | None]:
        """How many count against this limit now, and when the oldest stops counting.

        The time is in wall-clock seconds; None when it depends on an operation's end.
        """
        ...

    def asset(self, id: AssetId) -> Asset | None:
        """Another asset as `diff` compares it; None if the incarnation has no such asset."""
        ...

    async def diff(self, id: AssetId, *, settled: bool = False) -> Diff | None:
        """What another asset's plugin reports at the content incarnation of the push.

        For another goal than PRESENT, at the governing incarnation: an asset that leaves must wait
        for what others will become. A push under way counts as a difference with unknown effects.
        None if the incarnation has no such asset.

        Args:
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
