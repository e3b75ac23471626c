"""Field-level differences between assets, and between incarnations."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from lehr.base.pointers import escaped
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange

Contents = Callable[[str, str], bytes | None]
"""The content of a file of the workspace, by path and digest; None if it was not kept."""

_MOST_TEXT = 1 << 20


class ChangeKind(enum.StrEnum):
    """Kind of change of an asset or a field."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"


class FieldChange(msgspec.Struct, frozen=True):
    """One field that differs.

    Attributes:
        path: JSON pointer into the asset's document (`/payload/content`).
        before, after: plain data; None where `kind` implies that there is none.
    """

    path: str
    kind: ChangeKind
    before: Any = None
    after: Any = None


class AssetComparison(msgspec.Struct, frozen=True):
    """How one asset differs.

    Attributes:
        type: after the change, or before it if the asset is removed.
        origin: where the asset is, or was, declared; empty when that is not known.
        fields: the differences; for an asset that was added or removed, all its fields.
    """

    id: AssetId
    kind: ChangeKind
    type: str
    origin: str
    fields: tuple[FieldChange, ...]


class Comparison(msgspec.Struct, frozen=True):
    """How two whole states of intent differ.

    Attributes:
        before, after: their names (`hello@3`, `working tree`).
        assets: those that differ, by id.
    """

    before: str
    after: str
    assets: tuple[AssetComparison, ...]

    def count(self, kind: ChangeKind) -> int:
        """Number of assets that were added, changed or removed."""
        return sum(item.kind is kind for item in self.assets)


def compare(
    before: str, after: str, changes: Iterable[AssetChange], contents: Contents | None = None
) -> Comparison:
    """The comparison of two states of intent whose names are `before` and `after`.

    Args:
        contents: reads files of the workspace; without it, only their sizes and digests are compared.
    """
    return Comparison(before, after, tuple(compare_asset(change, contents) for change in changes))


def changes_between(before: Iterable[Asset], after: Mapping[AssetId, Asset]) -> Iterator[AssetChange]:
    """How a stored state differs from one in memory, by id."""
    old = {asset.id: asset for asset in before}
    for id in sorted(old.keys() | after.keys()):
        one, other = old.get(id), after.get(id)
        if one is None or other is None or one.digest != other.digest:
            yield AssetChange(id, one, other)


def compare_asset(change: AssetChange, contents: Contents | None = None) -> AssetComparison:
    """Field by field, how an asset differs."""
    asset = change.after or change.before
    assert asset is not None, f"{change.id} is in neither"
    kind = ChangeKind.CHANGED
    if change.before is None or change.after is None:
        kind = ChangeKind.ADDED if change.before is None else ChangeKind.REMOVED
    whole = kind is ChangeKind.CHANGED
    before, after = _content(change.before, whole), _content(change.after, whole)
    if whole and contents is not None:
        _add_texts(before["payload"], after["payload"], contents)
    fields = tuple(compare_values(before, after))
    return AssetComparison(change.id, kind, asset.type, str(asset.origin or ""), fields)


def _content(asset: Asset | None, whole: bool) -> dict[str, Any]:
    """The fields to compare; of an added or removed asset, only those not reported already."""
    if asset is None:
        return {}
    document = asset.document()
    del document["id"]
    return document if whole else {key: document[key] for key in ("payload", "addons") if document[key]}


def _add_texts(before: dict[str, Any], after: dict[str, Any], contents: Contents) -> None:
    """Add the text of two files of the workspace that assets have their content in."""
    old, new = before.get("source"), after.get("source")
    if not (isinstance(old, dict) and isinstance(new, dict)) or old.get("digest") == new.get("digest"):
        return
    one, other = _text(old, contents), _text(new, contents)
    if one is not None and other is not None:
        old["content"], new["content"] = one, other


def _text(source: dict[str, Any], contents: Contents) -> str | None:
    """The content of a file; None if it is large, not text or not available."""
    file, digest, size = source.get("file"), source.get("digest"), source.get("size")
    if not (isinstance(file, str) and isinstance(digest, str) and isinstance(size, int)):
        return None
    content = contents(file, digest) if size <= _MOST_TEXT else None
    if content is None or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def compare_values(before: Any, after: Any, path: str = "") -> Iterator[FieldChange]:
    """Paths at which two plain values differ. Mappings and lists are entered, by key and index."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(before.keys() | after.keys()):
            yield from _compare_member(before, after, key, f"{path}/{escaped(key)}")
    elif isinstance(before, list) and isinstance(after, list):
        olds, news = dict(enumerate(before)), dict(enumerate(after))
        for index in range(max(len(before), len(after))):
            yield from _compare_member(olds, news, index, f"{path}/{index}")
    elif before != after or type(before) is not type(after):
        yield FieldChange(path, ChangeKind.CHANGED, before, after)


def _compare_member(
    before: dict[Any, Any], after: dict[Any, Any], key: Any, path: str
) -> Iterator[FieldChange]:
    if key not in before:
        yield from _leaves(after[key], path, ChangeKind.ADDED)
    elif key not in after:
        yield from _leaves(before[key], path, ChangeKind.REMOVED)
    else:
        yield from compare_values(before[key], after[key], path)


def _leaves(value: Any, path: str, kind: ChangeKind) -> Iterator[FieldChange]:
    """Everything that was added or removed with `value`: its members, at any depth."""
    if isinstance(value, dict) and value:
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}/{escaped(key)}", kind)
    elif kind is ChangeKind.ADDED:
        yield FieldChange(path, kind, None, value)
    else:
        yield FieldChange(path, kind, value, None)
