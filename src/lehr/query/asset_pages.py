"""Assets of an incarnation, filtered, page by page.

All pages of one listing are of one incarnation, whatever is published in between: a cursor names
it, and the last asset that was looked at. So nothing is kept for readers, and a later page costs as
little as the first.
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import msgspec

from lehr.base.errors import LehrError, StalledError
from lehr.model.asset import Asset, Partition
from lehr.model.incarnation import Incarnation
from lehr.model.selector import Selector
from lehr.query.filters import ANYWHERE, Bounds, Filter, Sifted
from lehr.query.partition_view import Reading
from lehr.sdk.store import WHOLE, Row, Span, StoredIntent

_AT_ONCE = 256
"""Assets that are looked at between two looks at the clock."""

_FIRST = 16
_UNBOUNDED = sys.maxsize

Enough = Callable[[], bool]
"""Whether a page has taken long enough, and should end here."""


class Sieve(Protocol):
    """Asks filters of assets. Implementations: `Here`, and a child process behind HTTP."""

    def sift(self, filter: Filter, rows: Sequence[Row], most_work: int) -> Sifted:
        """Result of `filter` for the first of `rows`, at least for one."""
        ...


class Here:
    """In this process, until `enough`."""

    def __init__(self, enough: Enough) -> None:
        self._enough = enough

    def sift(self, filter: Filter, rows: Sequence[Row], most_work: int) -> Sifted:
        return filter.sift(rows, most_work, self._enough)


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """Where a listing continues.

    Attributes:
        sequence: of the incarnation that is listed.
        digest: the beginning of that incarnation's digest: another state may have the same number.
        last: id of the last asset that was looked at.
    """

    sequence: int
    digest: str
    last: str

    def text(self) -> str:
        """As one passes it on."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


class Plan(msgspec.Struct, frozen=True):
    """How a filter is answered.

    Attributes:
        filter: as it was written.
        by_index: the index look-ups, one line for each bound; empty if every asset is looked at.
        fast: False if the library has to be asked of each asset.
        looked_at: assets that came out of the index, and that the filter was asked of.
        matched: how many of those it holds of.
        unanswered: how many it had no answer for; they do not match. And why, for the first.
    """

    filter: str
    by_index: tuple[str, ...]
    fast: bool
    looked_at: int
    matched: int
    unanswered: int = 0
    why: str = ""


class Page(msgspec.Struct, frozen=True):
    """Some assets of an incarnation, by id.

    Attributes:
        cursor: where the next page begins; empty if this is the last.
        plan: how the filter was answered, for this page; None without a filter.
    """

    incarnation: Incarnation
    assets: tuple[Asset, ...]
    cursor: str = ""
    plan: Plan | None = None


class Wanted(msgspec.Struct, frozen=True):
    """The assets of a listing: those that every part of it lets through."""

    filter: Filter | None = None
    selector: Selector | None = None
    types: Sequence[str] | None = None

    def bounds(self) -> Bounds:
        """Where to look."""
        return ANYWHERE if self.filter is None else self.filter.bounds

    def candidates(
        self, intent: StoredIntent, partition: Partition, sequence: int, after: str = ""
    ) -> Iterator[Row]:
        """Answer of the indexes: perhaps too much, never too little."""
        bounds = self.bounds()
        types = bounds.types
        if self.types is not None:
            types = frozenset(self.types) if types is None else types & frozenset(self.types)
        span = span_of(bounds, after)
        if "\0" in span.prefix:  # no id has it, and no database takes it
            return iter(())
        return intent.rows(partition, sequence, None if types is None else sorted(_storable(types)), span)

    def matches(self, asset: Asset) -> bool:
        """Whether an asset is one of them."""
        return (self.selector is None or self.selector.matches(asset)) and (
            self.filter is None or self.filter.matches(asset)
        )

    def selected(self, rows: Iterable[Row]) -> Iterator[Asset]:
        """Those of `rows` that the selector selects, whatever the filter decides."""
        assets = map(_asset_of, rows)
        return assets if self.selector is None else filter(self.selector.matches, assets)


def _asset_of(row: Row) -> Asset:
    try:
        return row.asset()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StalledError(
            f"asset {row.id} cannot be read from the store",
            code="QRY104",
            why=str(error),
            fix="`lehr store check` finds all that is damaged",
        ) from error


def span_of(bounds: Bounds, after: str = "") -> Span:
    """The query to a store for `bounds`, after the id `after`."""
    ids = None if bounds.ids is None else _storable(bounds.ids)
    return WHOLE if bounds is ANYWHERE and not after else Span(ids, bounds.prefix, after)


def page(
    reading: Reading,
    wanted: Wanted,
    *,
    incarnation: str = "latest",
    cursor: str = "",
    limit: int | None = None,
    enough: Enough = lambda: False,
    most_work: int | None = None,
    sieve: Sieve | None = None,
) -> Page:
    """The first `limit` assets that are wanted, or those behind `cursor`.

    Args:
        enough: asked periodically; a page may then end with fewer than `limit`, and continue at its
            cursor.
        most_work: operations that the filter may take for this page, over all assets; the page then ends in
            the same way. None for any number.
        sieve: asks the filter; None for here.

    Raises:
        LehrError: there is no such incarnation, it was pruned, or the cursor is not valid.
    """
    begun = None if not cursor else parse_cursor(cursor)
    header = reading.incarnation(incarnation if begun is None else str(begun.sequence))
    if begun is not None and not header.digest.startswith(begun.digest):
        raise LehrError(
            f"the cursor does not belong to {header.name}",
            code="QRY105",
            why="it comes from another state",
            fix="list again from the beginning",
        )
    after = "" if begun is None else begun.last
    candidates = wanted.candidates(reading.intent, reading.partition, header.sequence, after)
    looking = _Looking(wanted, sieve or Here(enough), enough, most_work)
    found, last = looking.look(_shares(candidates), limit, after)
    plan = None
    if wanted.filter is not None:
        told = tuple(wanted.bounds().told())
        asked, unanswered, why = wanted.filter, looking.unanswered, looking.why
        plan = Plan(asked.text, told, asked.fast, looking.looked_at, len(found), unanswered, why)
    ahead = "" if last is None else Cursor(header.sequence, header.digest[:16], last).text()
    return Page(header, tuple(found), ahead, plan)


class _Looking:
    """One page's way through the assets.

    Attributes:
        looked_at: how many it has looked at.
        unanswered: how many the filter had no answer for; and why, for the first.
    """

    def __init__(self, wanted: Wanted, sieve: Sieve, enough: Enough, most_work: int | None) -> None:
        self.looked_at = 0
        self.unanswered = 0
        self.why = ""
        self._wanted = wanted
        self._sieve = sieve
        self._enough = enough
        self._work_left = _UNBOUNDED if most_work is None else most_work

    def look(
        self, shares: Iterable[tuple[Row, ...]], limit: int | None, after: str
    ) -> tuple[list[Asset], str | None]:
        """The wanted assets, and the id of the last asset of the page; None after the last page."""
        found: list[Asset] = []
        for share in shares:
            rest: Sequence[Row] = share
            while rest:
                if len(found) == limit or (self.looked_at and (self._enough() or self._work_left <= 0)):
                    return found, after
                matching, count = self._sifted(rest)
                self.looked_at += count
                after, rest = rest[count - 1].id, rest[count:]
                found += self._wanted.selected(matching)
                if limit is not None and len(found) > limit:
                    return found[:limit], found[limit - 1].id
        return found, None

    def _sifted(self, rows: Sequence[Row]) -> tuple[Sequence[Row], int]:
        """Those that the filter matches of the first of `rows`, and how many were looked at."""
        asked = self._wanted.filter
        if asked is None:
            return rows, len(rows)
        sifted = self._sieve.sift(asked, rows, self._work_left)
        self._work_left -= sifted.work
        self.unanswered += sifted.unanswered
        self.why = self.why or sifted.why
        return [rows[place] for place in sifted.matched], sifted.looked_at


def _shares(candidates: Iterator[Row]) -> Iterator[tuple[Row, ...]]:
    """Small ones first: a filter may take a tenth of a second for each asset."""
    size = min(_FIRST, _AT_ONCE)
    while share := tuple(islice(candidates, size)):
        yield share
        size = min(2 * size, _AT_ONCE)


def parse_cursor(text: str) -> Cursor:
    """The cursor that `text` is.

    Raises:
        LehrError: it is not valid.
    """
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=Cursor)
    except (ValueError, binascii.Error, msgspec.DecodeError) as error:
        raise LehrError(
            f"{text[:80]!r} is no cursor",
            code="QRY106",
            why="a cursor is what a listing gave for its next page, and nothing to be written by hand",
            fix="leave it out to list from the beginning",
        ) from error


# --- projection ----------------------------------------------------------------------------

_ALWAYS = ("id", "type")
_FIELDS = (*_ALWAYS, "digest", "origin", "payload", "addons")


def parse_fields(text: str) -> tuple[tuple[str, ...], ...]:
    """The paths that `payload.replicas,addons` names.

    Raises:
        LehrError: some of them are empty, or lead nowhere in any asset.
    """
    paths = tuple(tuple(item.strip().split(".")) for item in text.split(","))
    wrong = [repr(".".join(path)) for path in paths if path[0] not in _FIELDS or not all(path)]
    if wrong:
        raise LehrError(
            f"assets have no such fields: {', '.join(wrong)}",
            code="QRY107",
            why="fields begin with id, type, digest, origin, payload or addons",
            fix="write them with dots, and commas between: payload.replicas,addons",
        )
    return paths


def projected(asset: Asset, paths: Sequence[Sequence[str]] | None) -> dict[str, Any]:
    """The document of an asset with its digest and origin; with `paths`, id, type and those fields alone.

    Fields that an asset does not have are left out. Names of addons have dots in them: the longest
    match counts.
    """
    origin = None if asset.origin is None else str(asset.origin)
    whole = {**asset.document(), "digest": asset.digest, "origin": origin}
    if paths is None:
        return whole
    picked: dict[str, Any] = {name: whole[name] for name in _ALWAYS}
    for path in paths:
        _pick(whole, list(path), picked)
    return picked


def value_at(asset: Asset, path: Sequence[str]) -> Any:
    """What an asset has in one field, plain; `msgspec.UNSET` if it does not have it."""
    found: Any = projected(asset, [path])
    rest = list(path)
    while rest:
        for length in range(len(rest), 0, -1):
            key = ".".join(rest[:length])
            if isinstance(found, dict) and key in found:
                found, rest = found[key], rest[length:]
                break
        else:
            return msgspec.UNSET
    return found


def _pick(source: dict[str, Any], path: list[str], into: dict[str, Any]) -> None:
    for length in range(len(path), 0, -1):
        key, rest = ".".join(path[:length]), path[length:]
        if key not in source:
            continue
        if not rest:
            into[key] = source[key]
        elif isinstance(source[key], dict):
            below = into.setdefault(key, {})
            if below is not source[key]:  # which was asked for as a whole
                _pick(source[key], rest, below)
            if not below:
                del into[key]
        return


def _storable(values: frozenset[str]) -> frozenset[str]:
    """The stored values that something can be equal to."""
    return frozenset(value for value in values if "\0" not in value)
