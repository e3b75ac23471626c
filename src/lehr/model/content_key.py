"""Content keys: equal for contents that are the same to production. Pure.

A digest of an asset covers all of it. A content key leaves out its owner, the labels that select it and the
order in which it is pushed, so that a rollout neither starts again nor loses its evidence when those change.
"""

from __future__ import annotations

from collections.abc import Iterable

from lehr.base.digest import Digest, canonical, digest_all
from lehr.model.addons import AFFECTED_CLUSTERS, DEPENDS_ON, LABELS, OWNER
from lehr.model.asset import Asset

NOT_CONTENT = frozenset({AFFECTED_CLUSTERS, DEPENDS_ON, LABELS, OWNER})
"""Addons that do not affect production itself. All others may."""

_VERSION = "content-1"
"""Part of each key: keys of another rule are never equal."""


def content_key(asset: Asset, reads: Iterable[tuple[str, Asset | None]] = ()) -> Digest:
    """The key of an asset's content, with the other assets that its plugin read, by id."""
    others = sorted(reads)
    parts = (part for id, other in others for part in (id, "absent" if other is None else _own(other)))
    return digest_all((_VERSION, _own(asset), *parts))


def same_content(one: Asset | None, other: Asset | None) -> bool:
    """Whether two versions of an asset have equal content keys; None is one that does not exist."""
    if one is None or other is None:
        return one is other
    return one.digest == other.digest or _own(one) == _own(other)


def _own(asset: Asset) -> Digest:
    document = asset.document()
    addons = {name: value for name, value in document["addons"].items() if name not in NOT_CONTENT}
    content = {"addons": addons, "payload": document["payload"], "versions": document.get("versions", {})}
    return digest_all((asset.id, asset.type, canonical(content).decode()))
