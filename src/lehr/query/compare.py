"""Field-level differences between assets, and between incarnations."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from lehr.base.pointers import escaped
from lehr.model.asset import Asset, AssetId
from lehr.model.incarnation import AssetChange


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


def compare(before: str, after: str, changes: Iterable[AssetChange]) -> Comparison:
    """The comparison of two states of intent whose names are `before` and `after`."""
    return Comparison(before, after, tuple(compare_asset(change) for change in changes))


def changes_between(before: Iterable[Asset], after: Mapping[AssetId, Asset]) -> Iterator[AssetChange]:
    """How a stored state differs from one in memory, by id."""
    old = {asset.id: asset for asset in before}
    for id in sorted(old.keys() | after.keys()):
        one, other = old.get(id), after.get(id)
        if one is None or other is None or one.digest != other.digest:
            yield AssetChange(id, one, other)


def compare_asset(change: AssetChange) -> AssetComparison:
    """Field by field, how an asset differs."""
    asset = change.after or change.before
    assert asset is not None, f"{change.id} is in neither"
    kind = ChangeKind.CHANGED
    if change.before is None or change.after is None:
        kind = ChangeKind.ADDED if change.before is None else ChangeKind.REMOVED
    whole = kind is ChangeKind.CHANGED
    before, after = _content(change.before, whole), _content(change.after, whole)
    fields = tuple(compare_values(before, after))
    return AssetComparison(change.id, kind, asset.type, str(asset.origin or ""), fields)


def _content(asset: Asset | None, whole: bool) -> dict[str, Any]:
    """The fields to compare; of an added or removed asset, only those not reported already."""
    if asset is None:
        return {}
    document = asset.document()
    del document["id"]
    return document if whole else {key: document[key] for key in ("payload", "addons") if document[key]}


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
