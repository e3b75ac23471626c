"""Assets of an incarnation, filtered, page by page.

All pages of a listing are of one incarnation, whatever is published in between: the cursor contains it and
the last asset checked. No state is kept for readers, and a later page costs no more than the first.
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from lehr.base.errors import LehrError, StalledError, raised_as
from lehr.model.asset import Asset, Partition
from lehr.model.incarnation import Incarnation
from lehr.model.selector import Selector
from lehr.query.filters import ANYWHERE, Bounds, Filter, Sifted
from lehr.query.partition_view import Reading
from lehr.sdk.store import WHOLE, Row, Span, StoredIntent

_AT_ONCE = 256
"""Number of assets checked before the clock is read again."""

_FIRST = 16
_UNBOUNDED = sys.maxsize

Enough = Callable[[], bool]
"""Whether a page has taken long enough, and should end here."""


Sieve = Callable[[Filter, Sequence[Row], int], Sifted]
"""Evaluates a filter for the first of some rows, at least for one, within a number of operations: in this
process or, behind HTTP, in a child process."""


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
        """Its text form."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


class FilterPlan(msgspec.Struct, frozen=True):
    """How a filter is evaluated.

    Attributes:
        filter: as it was written.
        by_index: the index look-ups, one line for each bound; empty if every asset is checked.
        fast: False if the CEL library evaluates it.
        looked_at: number of assets that the index returned and the filter was evaluated for.
        matched: how many of those matched.
        unanswered: how many it had no answer for, which do not match; `why` is the reason for the first.
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
        cursor: start of the next page; empty if this is the last.
        plan: how the filter was evaluated for this page; None without a filter.
    """

    incarnation: Incarnation
    assets: tuple[Asset, ...]
    cursor: str = ""
    plan: FilterPlan | None = None


class Wanted(msgspec.Struct, frozen=True):
    """The conditions of a listing; its assets meet all of them."""

    filter: Filter | None = None
    selector: Selector | None = None
    types: Sequence[str] | None = None

    def bounds(self) -> Bounds:
        """Where to look."""
        return ANYWHERE if self.filter is None else self.filter.bounds

    def candidates(
        self, intent: StoredIntent, partition: Partition, sequence: int, after: str = ""
    ) -> Iterator[Row]:
        """Result of the indexes: possibly too many assets, never too few."""
        bounds = self.bounds()
        types = bounds.types
        if self.types is not None:
            types = frozenset(self.types) if types is None else types & frozenset(self.types)
        ids = None if bounds.ids is None else _storable(bounds.ids)
        span = WHOLE if bounds is ANYWHERE and not after else Span(ids, bounds.prefix, after)
        if "\0" in span.prefix:  # no id contains it, and no database accepts it
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
    what, fix = f"asset {row.id} cannot be read from the store", "run `lehr store check` to find all damage"
    broken = (msgspec.DecodeError, UnicodeDecodeError)
    with raised_as(StalledError, what, code="QRY104", fix=fix, on=broken):
        return row.asset()


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
        enough: called periodically; if it returns True, the page ends early, and the next one continues at
            its cursor.
        most_work: maximum number of filter operations for this page, over all assets; the page then ends
            early as well. None for no limit.
        sieve: evaluates the filter; None for this process.

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
            fix="list again without a cursor",
        )
    after = "" if begun is None else begun.last
    candidates = wanted.candidates(reading.intent, reading.partition, header.sequence, after)
    sieve = sieve or (lambda asked, rows, work: asked.sift(rows, work, enough))
    looking = _Looking(wanted, sieve, enough, most_work)
    found, last = looking.look(_shares(candidates), limit, after)
    plan = None
    if wanted.filter is not None:
        told = tuple(wanted.bounds().told())
        asked, unanswered, why = wanted.filter, looking.unanswered, looking.why
        plan = FilterPlan(asked.text, told, asked.fast, looking.looked_at, len(found), unanswered, why)
    ahead = "" if last is None else Cursor(header.sequence, header.digest[:16], last).text()
    return Page(header, tuple(found), ahead, plan)


class _Looking:
    """The evaluation of one page.

    Attributes:
        looked_at: how many assets were checked.
        unanswered: how many the filter had no answer for; `why` is the reason for the first.
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
        """The matching assets, and the id of the last asset of the page; None after the last page."""
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
        """The matching ones among the first of `rows`, and how many were checked."""
        asked = self._wanted.filter
        if asked is None:
            return rows, len(rows)
        sifted = self._sieve(asked, rows, self._work_left)
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
            f"{text[:80]!r} is not a valid cursor",
            code="QRY106",
            why="cursors are opaque; use one returned by a previous page",
            fix="omit it to list from the beginning",
        ) from error


# --- projection ----------------------------------------------------------------------------

_ALWAYS = ("id", "type")
_FIELDS = (*_ALWAYS, "digest", "origin", "payload", "addons")


def parse_fields(text: str) -> tuple[tuple[str, ...], ...]:
    """The paths that `payload.replicas,addons` names.

    Raises:
        LehrError: some are empty, or exist in no asset.
    """
    paths = tuple(tuple(item.strip().split(".")) for item in text.split(","))
    wrong = [repr(".".join(path)) for path in paths if path[0] not in _FIELDS or not all(path)]
    if wrong:
        raise LehrError(
            f"unknown fields: {', '.join(wrong)}",
            code="QRY107",
            why="fields begin with id, type, digest, origin, payload or addons",
            fix="separate names with dots and fields with commas: payload.replicas,addons",
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


def _pick(source: dict[str, Any], path: list[str], into: dict[str, Any]) -> None:
    for length in range(len(path), 0, -1):
        key, rest = ".".join(path[:length]), path[length:]
        if key not in source:
            continue
        if not rest:
            into[key] = source[key]
        elif isinstance(source[key], dict):
            below = into.setdefault(key, {})
            if below is not source[key]:  # which was requested as a whole
                _pick(source[key], rest, below)
            if not below:
                del into[key]
        return


def _storable(values: frozenset[str]) -> frozenset[str]:
    """The stored values that can be compared for equality."""
    return frozenset(value for value in values if "\0" not in value)
