"""Rules of the validators of `lehr.File`."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.base.diagnostics import Position
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.model.types import Mention, Registry
from lehr.plugins.file.payload import FILE, TYPES, File
from lehr.plugins.file.validators import one_asset_per_path
from lehr.sdk.validator import Limits


class Changed:
    """A proposal in which these assets are new."""

    partition = Partition("test")
    registry = Registry(TYPES)
    limits = Limits()

    def __init__(self, *paths: str) -> None:
        self._assets = [
            make_asset(
                AssetId(f"asset-{number}"), FILE, File(path=path, content=""), {}, Position("a", number)
            )
            for number, path in enumerate(paths, start=1)
        ]

    def changes(self) -> Iterable[AssetChange]:
        gone = make_asset(AssetId("gone"), FILE, File(path="/a", content=""), {})
        other = make_asset(AssetId("other"), "x.Other", {"path": "/a"}, {})
        yield AssetChange(gone.id, gone, None)
        yield AssetChange(other.id, None, other)
        for asset in self._assets:
            yield AssetChange(asset.id, None, asset)

    def type_of(self, id: AssetId) -> str | None:
        return None

    def mentioned_by(self, id: AssetId) -> Iterable[tuple[Asset, Mention]]:
        return ()

    def size_before(self) -> int:
        return 0


def test_two_assets_with_one_path_are_an_error_at_the_later() -> None:
    (found,) = one_asset_per_path(Changed("/a", "/b", "/a"))
    assert (found.code, found.subject, found.at) == ("FILE001", "asset-3", Position("a", 3))
    assert "asset-1 and asset-3" in found.what


def test_different_paths_are_fine() -> None:
    assert list(one_asset_per_path(Changed("/a", "/b", "a"))) == []
