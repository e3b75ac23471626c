"""Writes into assets that own a whole folder what other assets declare inside it.

An exclusive directory must know the names inside that are declared, and changes when they do. Its plugin
reads single assets and cannot list them, so generation fills them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.types import Registry

_CLAIM = "file:"


class Enclosures:
    """Folders that are owned whole, and the names inside. Costs O(changed) while the folders are the same."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._folders: dict[AssetId, str] = {}
        self._owners: dict[str, set[AssetId]] = {}
        self._names: dict[AssetId, dict[AssetId, frozenset[str]]] = {}
        self._within: dict[AssetId, tuple[AssetId, ...]] = {}

    def update(self, changed: Mapping[AssetId, Asset | None], others: Iterable[Asset]) -> set[AssetId]:
        """Take note of changed assets; None for one that is gone.

        Args:
            others: all other assets; read only if a folder was added, moved or removed.

        Returns:
            The assets whose folders may now have other names inside.
        """
        folders = dict(self._folders)
        for id, asset in changed.items():
            folder = None if asset is None else self._registry.encloses(asset)
            if folder is None:
                folders.pop(id, None)
            else:
                folders[id] = folder
        concerned = {id for id in changed if id in folders}
        if folders != self._folders:
            self._start_again(folders)
            concerned = set(folders)
            for asset in others if folders else ():
                self._note(asset.id, asset)
        if not folders:
            return set()
        return concerned.union(*(self._note(id, asset) for id, asset in changed.items()))

    def completed(self, asset: Asset) -> Asset:
        """`asset` with the names that are declared inside its folder, if it owns one."""
        if asset.id not in self._folders:
            return asset
        body = msgspec.json.decode(asset.body)
        body["payload"]["declared"] = sorted(set().union(*self._names[asset.id].values()))
        return make_asset(
            asset.id,
            asset.type,
            body["payload"],
            body["addons"],
            asset.origin,
            asset.made_by,
            asset.annotated_by,
            body.get("versions"),
        )

    def _start_again(self, folders: dict[AssetId, str]) -> None:
        self._folders = folders
        self._names = {id: {} for id in folders}
        self._within, self._owners = {}, {}
        for id, folder in folders.items():
            for spelling in _spellings(folder):
                self._owners.setdefault(spelling, set()).add(id)

    def _note(self, id: AssetId, asset: Asset | None) -> set[AssetId]:
        """Returns the owners of the folders that the asset is or was in."""
        before = self._within.pop(id, ())
        for owner in before:
            del self._names[owner][id]
        found: dict[AssetId, set[str]] = {}
        for claim in () if asset is None else self._registry.claims(asset):
            if claim.startswith(_CLAIM):
                for owner, name in self._places(claim.removeprefix(_CLAIM)):
                    if owner != id:
                        found.setdefault(owner, set()).add(name)
        for owner, names in found.items():
            self._names[owner][id] = frozenset(names)
        if found:
            self._within[id] = tuple(found)
        return {*before, *found}

    def _places(self, path: str) -> Iterator[tuple[AssetId, str]]:
        """Each folder that `path` is in, by its owner, and the name directly inside that leads to it."""
        above, _, name = path.rpartition("/")
        while above:
            for spelling in _spellings(above):
                for owner in self._owners.get(spelling, ()):
                    if _may_be_same(above, self._folders[owner]):
                        yield owner, name
            above, _, name = above.rpartition("/")


def _spellings(path: str) -> Iterator[str]:
    """`path`, and the relative paths that may mean the same: where those start is not known here."""
    yield path
    if path.startswith("/"):
        rest = path.removeprefix("/")
        while rest:
            yield rest
            rest = rest.partition("/")[2]


def _may_be_same(one: str, other: str) -> bool:
    """Whether two paths may lead to one folder, as far as their text shows."""
    if one.startswith("/") == other.startswith("/"):
        return one == other
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
