"""Digests of encrypted files, written into the references to them.

An asset that refers to a secret in an encrypted file of the workspace has the file's content in its
digest so: a new ciphertext is new content of the asset, which is enforced as any other, and the plugin
reads the very file that the incarnation was made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from lehr.model.asset import Asset, AssetId
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.sdk.source import FileEntry

_ENCRYPTED = (b'"secret":"age:', b'"secret":"sops:')
"""What the body of an asset has that refers to an encrypted file. To search costs less than to decode."""


class Sealing:
    """Seals assets, and knows which of them an encrypted file is in.

    Args:
        files: of the snapshot; looked at whenever an asset is sealed.
    """

    def __init__(self, registry: Registry, files: Mapping[str, FileEntry]) -> None:
        self._registry = registry
        self._files = files
        self._users: dict[str, set[AssetId]] = {}

    def sealed(self, asset: Asset) -> Asset:
        """`asset` with the digests of the files that its references name; without, where there is no file."""
        if not any(mark in asset.body for mark in _ENCRYPTED):
            return asset

        def seal(secret: Secret) -> Secret:
            if not secret.keeper.encrypted:
                return secret
            self._users.setdefault(secret.place, set()).add(asset.id)
            entry = self._files.get(secret.place)
            return replace(secret, digest=None if entry is None else entry.content_id)

        return self._registry.with_secrets(asset, seal)

    def affected(self, paths: Iterable[str]) -> set[AssetId]:
        """Assets to be sealed anew, because these files have changed. Each is named once for each change."""
        return set[AssetId]().union(*(self._users.pop(path, ()) for path in paths))
