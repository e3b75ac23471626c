"""Writes digests of encrypted files into the references to them.

Thus the digest of an asset that refers to a secret in an encrypted file covers the file's content: a new
ciphertext is new content of the asset, enforced like any other, and the plugin reads exactly the file that
the incarnation was made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from lehr.model.asset import Asset, AssetId
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.sdk.source import FileEntry

_ENCRYPTED = (b'"secret":"age:', b'"secret":"sops:')
"""Marker in the body of an asset that refers to an encrypted file. Searching is cheaper than decoding."""


class SecretDigests:
    """Seals assets, and records which of them refer to which encrypted file.

    Args:
        files: files of the snapshot; read whenever an asset is sealed.
    """

    def __init__(self, registry: Registry, files: Mapping[str, FileEntry]) -> None:
        self._registry = registry
        self._files = files
        self._users: dict[str, set[AssetId]] = {}

    def sealed(self, asset: Asset) -> Asset:
        """`asset` with the digests of the files that its references name, except missing files."""
        if not any(mark in asset.body for mark in _ENCRYPTED):
            return asset

        def seal(secret: Secret) -> Secret:
            if not secret.backend.encrypted:
                return secret
            self._users.setdefault(secret.place, set()).add(asset.id)
            entry = self._files.get(secret.place)
            return replace(secret, digest=None if entry is None else entry.content_id)

        return self._registry.with_secrets(asset, seal)

    def affected(self, paths: Iterable[str]) -> set[AssetId]:
        """Assets to seal again because these files have changed. Each is returned once for each change."""
        return set[AssetId]().union(*(self._users.pop(path, ()) for path in paths))
