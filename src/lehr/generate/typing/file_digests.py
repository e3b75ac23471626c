"""Writes digests of files of the workspace into the assets that name them.

Thus the digest of an asset that refers to a secret in an encrypted file, or has its content in a file,
covers that file's content: new content changes the asset, it is enforced like any other change, and the
plugin reads exactly the file that the incarnation was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec.structs import replace

from lehr.model.asset import Asset, AssetId
from lehr.model.secret import Secret
from lehr.model.types import Registry
from lehr.model.workspace_file import MOST_TEXT_BYTES, WorkspaceFile, WorkspaceText
from lehr.sdk.source import FileEntry

_ENCRYPTED = (b'"secret":"age:', b'"secret":"sops:')
"""Marker in the body of an asset that refers to an encrypted file. Searching is cheaper than decoding."""


class FileDigests:
    """Seals assets, and records which of them name which file.

    Args:
        files: files of the snapshot; read whenever an asset is sealed.
        fetch: contents of files of the snapshot.
    """

    def __init__(
        self,
        registry: Registry,
        files: Mapping[str, FileEntry],
        fetch: Callable[[list[str]], Iterator[bytes]],
    ) -> None:
        self._registry = registry
        self._files = files
        self._fetch = fetch
        self._texts: dict[str, tuple[str, str | None]] = {}
        self._users: dict[str, set[AssetId]] = {}

    def sealed(self, asset: Asset) -> Asset:
        """`asset` with the digests of the files that it names, except missing files."""

        def entry(path: str) -> FileEntry | None:
            self._users.setdefault(path, set()).add(asset.id)
            return self._files.get(path)

        def of_secret(secret: Secret) -> Secret:
            if not secret.backend.encrypted:
                return secret
            found = entry(secret.place)
            return replace(secret, digest=None if found is None else found.content_id)

        def of_file(file: WorkspaceFile) -> WorkspaceFile:
            found = entry(file.file)
            if found is None:
                return WorkspaceFile(file.file)
            return WorkspaceFile(file.file, found.content_id, found.size)

        def of_text(file: WorkspaceText) -> WorkspaceText:
            found = entry(file.file)
            if found is None:
                return WorkspaceText(file.file)
            return WorkspaceText(file.file, found.content_id, found.size, self._text(found))

        if any(mark in asset.body for mark in _ENCRYPTED):
            asset = self._registry.with_secrets(asset, of_secret)
        asset = self._registry.with_texts(asset, of_text)
        return self._registry.with_files(asset, of_file)

    def _text(self, file: FileEntry) -> str | None:
        if file.size > MOST_TEXT_BYTES:
            return None
        known = self._texts.get(file.path)
        if known is None or known[0] != file.content_id:
            (content,) = self._fetch([file.path])
            try:
                text = content.decode()
            except UnicodeDecodeError:
                text = None
            known = self._texts[file.path] = (file.content_id, text)
        return known[1]

    def affected(self, paths: Iterable[str]) -> set[AssetId]:
        """Assets to seal again because these files have changed. Each is returned once for each change."""
        return set[AssetId]().union(*(self._users.pop(path, ()) for path in paths))
