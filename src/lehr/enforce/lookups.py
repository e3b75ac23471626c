"""Look-ups of turns in the store: never on the event loop, so that a store that hangs does not block it.

A function that looks something up is synchronous and repeatable. `Lookups.run` calls it. If something is
missing, it is read in a thread, and the function is called again. The code that decides therefore stays
synchronous.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sized
from itertools import islice
from typing import Any, TypeVar

import msgspec

from lehr.base.blocking import Blocking, Inline
from lehr.base.clock import Clock
from lehr.base.errors import LehrError, NeedError, TransientError
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.content_key import same_content
from lehr.model.damage import DamagedError
from lehr.model.decision import Reservation
from lehr.model.incarnation import Incarnation
from lehr.model.selector import Selector
from lehr.sdk.runtime import Runtime
from lehr.sdk.store import Head, Span, StoredIntent

T = TypeVar("T")

_PATIENCE_SECONDS = 5.0
"""How long a read may take before the store counts as one that does not answer."""

_PAUSE_SECONDS = 1.0
"""Pause after that before it is asked again."""

_FEWEST = 16
"""Fewer assets are not worth a common read."""

_MOST = 2000
"""Assets that are read at once: handing a read to a thread and back costs as much as reading a hundred."""

Call = tuple[str, tuple[Any, ...]]
"""A read: its name and arguments."""


class _MissingError(NeedError):
    def __init__(self, call: Call) -> None:
        super().__init__(f"{call[0]} has to be read first", code="ENF106")
        self.call = call


class _Failed(msgspec.Struct, frozen=True):
    error: Exception


class Lookups:
    """Looks things up in one partition, with the latest assets cached.

    An incarnation never changes (invariant I2), so a read of one stays right for ever, and is right
    for later ones that have not changed the asset, as far as `advance` knows. All else is
    read again for each `run`.

    All methods but `run`, `read_ahead` and `advance` raise `NeedError` for what is not at hand; otherwise
    they answer and raise as those of `lehr.sdk.store` that have the same name.
    """

    def __init__(self, runtime: Runtime, size: int = 16_384) -> None:
        """Look things up in the store of `runtime`, and keep up to `size` assets."""
        self._reads = {
            name: getattr(runtime.store.intent, name)
            for name in ("asset", "last", "versions", "next_change", "addon_since", "incarnation", "heads")
        }
        self._reads["past_and_present_referrers"] = runtime.store.intent.past_and_present_referrers
        self._assets_of = runtime.store.intent.assets
        self._reads["usage"] = runtime.store.records.usage
        self._blocking: Blocking = runtime.reading
        self._partition = runtime.partition
        self._clock: Clock = runtime.clock
        self._at_once = isinstance(runtime.reading, Inline)
        self._found: dict[Call, Any] | None = None
        self._asked_again_at = 0.0
        self.coming: dict[AssetId, asyncio.Task[None]] = {}
        self._turns_until_look = 0  # until then, about every turn finds its asset at hand
        self._size = size
        self._kept: dict[tuple[AssetId, int], Asset | None] = {}
        self._older = self._kept  # the half that was kept first, and is forgotten first, all at once
        # From the incarnation `_first` on: with which one each asset changed last, if it did.
        self._first = self._newest = 0
        self._changed_with: dict[AssetId, int] = {}

    async def run(self, look: Callable[[], T]) -> T:
        """Result of `look`, which is repeated until everything that it looks up is at hand.

        Raises:
            TransientError: the store cannot be read, or does not answer.
            Exception: whatever `look` raises.
        """
        found: dict[Call, Any] = {}
        while True:
            self._found = found
            try:
                return look()
            except _MissingError as missing:
                call = missing.call
            finally:
                self._found = None
            try:
                found[call] = await self._ask(self._read, call)
            except LehrError as error:
                found[call] = _Failed(error)  # raised where it is looked up

    async def _ask(self, read: Callable[..., T], *args: Any) -> T:
        """Result of `read` in a thread.

        Raises:
            TransientError: the store does not answer in time.
        """
        if self._clock.monotonic() < self._asked_again_at:
            raise _not_answering()
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self._blocking.run(read, *args)
        except TimeoutError as error:
            self._asked_again_at = self._clock.monotonic() + _PAUSE_SECONDS
            raise _not_answering() from error

    def _read(self, call: Call) -> Any:
        name, args = call
        found = self._reads[name](*args)
        return list(found) if name in ("versions", "heads") else found

    def _look(self, name: str, *args: Any) -> Any:
        if self._at_once:
            return self._read((name, args))
        call = name, args
        if self._found is None or call not in self._found:
            raise _MissingError(call)
        found = self._found[call]
        if isinstance(found, _Failed):
            raise found.error
        return found

    # --- assets ------------------------------------------------------------------------

    def advance(self, before: int, sequence: int, changed: Iterable[AssetId]) -> None:
        """Incarnation `sequence` differs from incarnation `before` in `changed` alone."""
        # The changes between the two are not known: an asset may have changed there and back.
        adjoins = before == self._newest and sequence == before + 1
        if not adjoins or len(self._changed_with) >= self._size:
            self._first = sequence
            self._changed_with.clear()
        else:
            self._changed_with.update(dict.fromkeys(changed, sequence))
        self._newest = sequence

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        place = (key.id, self._same_as(key.id, sequence))
        try:
            return self._kept[place]
        except KeyError:
            pass
        if place in self._older:
            return self._older[place]
        asset: Asset | None = self._look("asset", key, sequence)
        self._keep(place, asset)
        return asset

    def _keep(self, place: tuple[AssetId, int], asset: Asset | None) -> None:
        if len(self._kept) >= self._size // 2:
            self._older, self._kept = self._kept, {}
        self._kept[place] = asset

    def _same_as(self, id: AssetId, sequence: int) -> int:
        """The first incarnation that is known to have the asset as `sequence` has it."""
        if not self._first <= sequence <= self._newest:
            return sequence
        since = self._changed_with.get(id, self._first)
        return since if since <= sequence else sequence

    def unchanged(self, ids: Iterable[AssetId], one: int, other: int) -> bool:
        """Whether each of these assets is known to be the same in two incarnations. Nothing is looked up."""
        return all(self._same_as(id, one) == self._same_as(id, other) for id in ids)

    def may_read_ahead(self, upcoming: Sized) -> bool:
        """Whether it is time for `read_ahead`, of at most this many assets. Ask before each turn."""
        self._turns_until_look -= 1
        if self._turns_until_look > 0 or self._at_once or self.coming:
            return False
        return len(upcoming) >= _FEWEST

    def read_ahead(self, sequence: int, upcoming: Iterable[AssetId]) -> None:
        """Read the assets of the turns that are next, many at once, and in good time before those.

        An asset that cannot be read this way is read again when it is looked up.
        """
        ids, kept, older, same_as = list(islice(upcoming, 2 * _MOST)), self._kept, self._older, self._same_as
        places = ((id, same_as(id, sequence)) for id in ids)
        unknown = [place[0] for place in places if place not in kept and place not in older][:_MOST]
        if len(unknown) < _FEWEST:
            self._turns_until_look = len(ids) // 2
            return
        coming = asyncio.create_task(self._fetch(sequence, unknown), name="read ahead")
        self.coming = dict.fromkeys(unknown, coming)
        # All up to the last one are then at hand, and not only those that are read now.
        self._turns_until_look = ids.index(unknown[-1]) // 2

    async def _fetch(self, sequence: int, ids: list[AssetId]) -> None:
        def read() -> dict[AssetId, Asset]:
            span = Span(ids=frozenset(ids))
            return {asset.id: asset for asset in self._assets_of(self._partition, sequence, None, span)}

        try:
            found = await self._ask(read)
        except LehrError:
            return
        finally:
            self.coming = {}
        for id in ids:
            self._keep((id, self._same_as(id, sequence)), found.get(id))

    # --- all else -----------------------------------------------------------------------

    def same_content(self, id: AssetId, one: int, other: int) -> bool:
        """Whether two incarnations of the partition have the same content of an asset."""
        key = AssetKey(self._partition, id)
        return same_content(self.asset(key, one), self.asset(key, other))

    def last(self, key: AssetKey, sequence: int | None = None) -> tuple[Asset, int] | None:
        found: tuple[Asset, int] | None = self._look("last", key, sequence)
        return found

    def last_of_type(self, key: AssetKey, type: str, sequence: int) -> tuple[Asset, int] | None:
        """The last version up to an incarnation that had this type, and the sequence it came with.

        None if it does not exist or was pruned. A later one with the same id may be of another type.
        """
        last = self.last(key, sequence)
        if last is None or last[0].type == type:
            return last
        for at, asset in self._look("versions", key, last[1]):
            if asset is not None and asset.type == type:
                return asset, at
        return None

    def last_known(self, key: AssetKey, type: str) -> tuple[Asset, int] | None:
        """The last version of an asset, and the sequence it came with; None if it never existed.

        Of one that cannot be read, its known parts: a person who names it by its id means it.
        """
        return _last_known(self.last, key, type)

    def next_change(self, key: AssetKey, sequence: int) -> int | None:
        found: int | None = self._look("next_change", key, sequence)
        return found

    def addon_since(self, key: AssetKey, addon: str) -> float | None:
        found: float | None = self._look("addon_since", key, addon)
        return found

    def head(self, partition: Partition, id: AssetId) -> Head | None:
        """An asset of the newest incarnation; None if it is not there."""
        return next(iter(self._look("heads", partition, (id,))), None)

    def incarnation(self, partition: Partition, sequence: int) -> Incarnation | None:
        found: Incarnation | None = self._look("incarnation", partition, sequence)
        return found

    def past_and_present_referrers(self, key: AssetKey) -> list[AssetId]:
        found: list[AssetId] = self._look("past_and_present_referrers", key)
        return found

    def usage(self, reservation: Reservation, now: float) -> tuple[int, float | None]:
        found: tuple[int, float | None] = self._look("usage", reservation, now)
        return found


def selected(
    intent: StoredIntent, known: Iterable[tuple[AssetKey, str]], selector: Selector
) -> list[AssetId]:
    """Which of these assets, given with their types, `selector` selects. Reads the store."""
    found = []
    for key, type in known:
        last = _last_known(intent.last, key, type)
        if last is not None and selector.matches(last[0]):
            found.append(key.id)
    return found


def _last_known(
    last: Callable[[AssetKey], tuple[Asset, int] | None], key: AssetKey, type: str
) -> tuple[Asset, int] | None:
    try:
        return last(key)
    except DamagedError:
        return make_asset(key.id, type, None, {}), 0


def _not_answering() -> TransientError:
    return TransientError("the store does not answer", code="ENF107", fix="see whether its server is running")
