"""An incarnation of another partition, pinned by its digest, which is recomputed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lehr.base.digest import Digest, digest_all, short
from lehr.base.errors import StalledError
from lehr.model.asset import Asset, Partition
from lehr.model.declared_sources import PartitionPlace
from lehr.model.incarnation import Incarnation
from lehr.model.merkle import incarnation_digest
from lehr.sdk.store import Store
from lehr.store.archive import open_archive

_PROMOTE = "promote it again with lehr promote"


def released_in(store: Store, place: PartitionPlace) -> list[Asset]:
    """The assets of the incarnation that `place` pins, from the state that published it.

    Raises:
        StalledError: it does not exist, was pruned, or does not match the pin.
        TransientError: the state cannot be read now.
    """
    partition = Partition(place.partition)
    header = store.intent.incarnation(partition, place.incarnation)
    if header is None:
        newest = store.intent.newest(partition)
        raise StalledError(
            f"{place.state} has no incarnation {place.name}",
            code="QRY116",
            why=f"the newest is {newest.name}" if newest else f"it does not contain partition {partition}",
            fix="correct `partition`, `state` or `incarnation`",
        )
    _check_header(header, place)
    store.intent.require_kept(partition, place.incarnation)
    return _verified(store.intent.assets(partition, place.incarnation), place)


def released_in_archive(path: Path, place: PartitionPlace) -> list[Asset]:
    """The assets of the incarnation that `place` pins, from the file that it was exported to.

    Raises:
        StalledError: the file cannot be read, was changed, or contains another incarnation.
    """
    with open_archive(path) as archive:
        _check_header(archive.header, place)
        return _verified((asset for asset, _ in archive.assets()), place)


def _check_header(header: Incarnation, place: PartitionPlace) -> None:
    if header.name != place.name:
        raise StalledError(
            f"{place.archive} contains {header.name}, not {place.name}",
            code="QRY117",
            fix=f"name another file, or {_PROMOTE}",
        )
    if header.digest != place.digest:
        raise _another(place, header.digest)


def _verified(assets: Iterable[Asset], place: PartitionPlace) -> list[Asset]:
    """All `assets`, after recomputing every digest."""
    found = list(assets)
    digest = incarnation_digest(
        (asset.id, digest_all((asset.id, asset.type, asset.body.decode()))) for asset in found
    )
    if digest != place.digest:
        raise _another(place, digest)
    return found


def _another(place: PartitionPlace, found: Digest) -> StalledError:
    return StalledError(
        f"{place.name} does not match its pin",
        code="QRY118",
        why=f"its digest is {short(found)}, but {short(place.digest)} was pinned: it was changed, belongs to "
        "another state, or the pin was edited by hand",
        fix=f"review it; if it is the right one, {_PROMOTE}",
    )
