"""The schemas of providers as files, by the SHA-256 of the provider's program: for checks of intent."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from lehr.base.log import Log
from lehr.base.private_folders import make_private
from lehr.plugins.terraform.provider import ProviderGoneError, ProviderSchema

_SHA256 = re.compile(r"[0-9a-f]{64}")
_VERSIONS = (5, 6)

log = Log()


class KeptSchemas:
    """A folder with schemas, which only grows: a provider's program has one schema. Blocks.

    Everything in it can be lost: then checks of intent report nothing until the provider is started again.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: tuple[str, ProviderSchema] | None = None

    def keep(self, sha256: str, version: int, answer: bytes) -> None:
        """Keep the schemas of a provider, unless that is done. A folder that cannot be written is logged.

        Args:
            version: of the protocol.
            answer: the provider's, as it was sent.
        """
        path = self._path(sha256, version)
        if not _SHA256.fullmatch(sha256) or path.exists():
            return
        try:
            make_private(self._folder)
            descriptor, name = tempfile.mkstemp(dir=self._folder)
            with open(descriptor, "wb") as file:
                file.write(answer)
            os.replace(name, path)
        except OSError as error:
            log.warning("the schemas of a provider cannot be kept", path=str(path), error=str(error))

    def known(self, sha256: str) -> ProviderSchema | None:
        """The schemas of a provider; None if they were never kept, or cannot be read."""
        if self._known is not None and self._known[0] == sha256:
            return self._known[1]
        if not _SHA256.fullmatch(sha256):
            return None
        for version in _VERSIONS:
            try:
                answer = self._path(sha256, version).read_bytes()
            except OSError:
                continue
            if (schema := _understood(version, answer)) is not None:
                self._known = sha256, schema
                return schema
        return None

    def _path(self, sha256: str, version: int) -> Path:
        return self._folder / f"{sha256}.tfplugin{version}"


def _understood(version: int, answer: bytes) -> ProviderSchema | None:
    try:
        from google.protobuf.message import DecodeError  # noqa: PLC0415 - an extra

        from lehr.plugins.terraform.wire import calls, schema_codec  # noqa: PLC0415
    except ImportError:
        return None
    try:
        return schema_codec.provider_schema(calls.SCHEMA.answer(version).FromString(answer))
    except (DecodeError, ProviderGoneError):
        return None
