"""Reverse references: the assets that refer to an asset, directly or indirectly, and through which field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from lehr.model.asset import AssetId, AssetKey
from lehr.model.types import Registry
from lehr.query.partition_view import Reading

Behind = Callable[[AssetId], Iterable[tuple[AssetId, str]]]
"""The referrers of an asset: ids, and JSON pointers into their documents."""

_ROOTS = ("/payload/", "/addons/")


class Referrer(msgspec.Struct, frozen=True):
    """An asset that refers to another.

    Attributes:
        path: JSON pointer to the reference in its document.
        to: the target.
        depth: 1 for direct referrers, 2 for their referrers, and so on.
    """

    id: AssetId
    path: str
    to: AssetId
    depth: int = 1


def referrers(
    behind: Behind, id: AssetId, field: str | None = None, *, most_deep: int | None = 1
) -> Iterator[Referrer]:
    """The referrers of the asset `id`, and theirs; each asset's referrers are listed once.

    Args:
        field: only through this one, in the sense of `matches`: the references in each field form a hierarchy
            of their own.
        most_deep: maximum depth; None for the whole subtree.
    """
    met = {id}
    level = [id]
    depth = 0
    while level and depth != most_deep:
        depth += 1
        ahead: list[AssetId] = []
        for target in level:
            for source, path in sorted(behind(target)):
                if field is None or matches(field, path):
                    yield Referrer(source, path, target, depth)
                    if source not in met:
                        met.add(source)
                        ahead.append(source)
        level = ahead


def matches(field: str, path: str) -> bool:
    """Whether a JSON pointer into an asset's document leads into a field.

    Args:
        field: a JSON pointer, or names with dots between them (`parent`, `members.who`), into the
            payload; or a JSON pointer that begins with `/payload/` or `/addons/`. In it, `*`
            matches any key or index, and indexes may be left out.
    """
    pointer = field if field.startswith("/") else "/" + field.replace(".", "/")
    if not pointer.startswith(_ROOTS):
        pointer = f"/payload{pointer}"
    return _leads(pointer.split("/")[1:], path.split("/")[1:])


def _leads(wanted: list[str], found: list[str]) -> bool:
    if not found:
        return not wanted
    if wanted and wanted[0] in ("*", found[0]) and _leads(wanted[1:], found[1:]):
        return True
    # Any item of a list or a map belongs to its field.
    return (not wanted or found[0].isdecimal()) and _leads(wanted, found[1:])


def behind_now(reading: Reading) -> Behind:
    """References in force."""
    return lambda id: reading.intent.mentioned_by(AssetKey(reading.partition, id))


def behind_at(reading: Reading, sequence: int, registry: Registry) -> Behind:
    """References in any incarnation: those of all past referrers that are in it.

    Args:
        registry: its types.
    """

    def behind(id: AssetId) -> Iterator[tuple[AssetId, str]]:
        for source in reading.intent.past_and_present_referrers(AssetKey(reading.partition, id)):
            asset = reading.intent.asset(AssetKey(reading.partition, source), sequence)
            for mention in () if asset is None else registry.mentions(asset):
                if mention.target == id:
                    yield source, mention.path

    return behind
