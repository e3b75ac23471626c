"""The encrypted files of a workspace: read, written and found. Only ciphertext is ever written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from lehr.base.durable import replace
from lehr.base.errors import LehrError, StalledError, raised_as
from lehr.secrets import age
from lehr.secrets.decrypted_value import AGE, document_in
from lehr.secrets.identities import identities
from lehr.secrets.recipients import RECIPIENTS, Recipient, read_recipients

_BEGINNINGS = (b"-----BEGIN AGE ENCRYPTED FILE-----", b"age-encryption.org/")
_LEFT_OUT = (".git", ".lehr", ".venv", "__pycache__")


class EncryptedFiles:
    """The encrypted files of one workspace.

    Args:
        workspace: the folder of `lehr.yaml`.
        state: the state folder, in which the private key may be.
        environment: variables that may name the private key.
    """

    def __init__(self, workspace: Path, state: Path, environment: Mapping[str, str]) -> None:
        self._workspace = workspace.resolve()
        self._state = state
        self._environment = environment

    def path(self, file: Path) -> str:
        """The name of `file` in references: relative to the workspace.

        Raises:
            LehrError: it is outside, or its name is not valid for an encrypted file.
        """
        absolute = Path(os.path.abspath(file))
        real = absolute.parent.resolve() / absolute.name
        if not real.is_relative_to(self._workspace):
            raise LehrError(
                f"{file} is outside the workspace {self._workspace}",
                code="SEC110",
                why="encrypted files are published with the workspace",
                fix="name a file in the workspace",
            )
        if not real.name.endswith(AGE) or real.name == AGE:
            raise LehrError(
                f"{file} does not end in {AGE}",
                code="SEC111",
                why="the suffix distinguishes encrypted files from plain text",
                fix=f"name it {file.name}{AGE}",
            )
        return real.relative_to(self._workspace).as_posix()

    def recipients(self) -> list[Recipient]:
        """The recipients that files are encrypted for.

        Raises:
            LehrError: there are no recipients, or the file of recipients cannot be used.
        """
        found = read_recipients(self._workspace)
        if not found:
            raise LehrError(
                "there are no recipients to encrypt for",
                code="SEC112",
                why=f"{RECIPIENTS} has no public key",
                fix="`lehr secret keygen --add` creates a key pair for this machine",
            )
        return found

    def files(self) -> list[str]:
        """Paths of all age files in the workspace."""
        found = []
        for folder, inner, names in os.walk(self._workspace):
            inner[:] = sorted(name for name in inner if name not in _LEFT_OUT)
            places = (Path(folder, name) for name in sorted(names) if name.endswith(AGE))
            found += [self.path(place) for place in places if place.is_file() and not place.is_symlink()]
        return found

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return os.path.lexists(self._workspace / path)

    def read(self, path: str) -> bytes:
        """The decrypted content of the file.

        Raises:
            LehrError: the file does not exist or cannot be decrypted here.
        """
        return age.decrypt(self._ciphertext(path), identities(self._environment, self._state), path)

    def readable_here(self, recipients: Sequence[Recipient]) -> bool | None:
        """Whether this machine can decrypt files for `recipients`; None if unknown."""
        try:
            keys = [age.recipient_of(key) for key in identities(self._environment, self._state)]
        except StalledError:
            return False
        if any(key is None for key in keys):
            return None
        return any(recipient.key in keys for recipient in recipients)

    def write(self, path: str, content: bytes) -> None:
        """Encrypt `content` for the current recipients and write it to `path` atomically.

        Raises:
            LehrError: there are no recipients, something else is at `path`, or it cannot be written.
        """
        if self.exists(path):
            self._ciphertext(path)  # nothing but an encrypted file is replaced
        encrypted = age.encrypt(content, [recipient.key for recipient in self.recipients()])
        place = self._workspace / path
        with raised_as(LehrError, f"{path} cannot be written", code="SEC113"):
            place.parent.mkdir(parents=True, exist_ok=True)
            replace(place, encrypted, 0o644)

    def _ciphertext(self, path: str) -> bytes:
        place = self._workspace / path
        if place.is_symlink():
            raise LehrError(
                f"{path} is a symbolic link",
                code="SEC114",
                why="links are not published",
                fix="name the file itself",
            )
        with raised_as(LehrError, f"{path} cannot be read", code="SEC115"):
            content = place.read_bytes()
        if not content.startswith(_BEGINNINGS):
            raise LehrError(
                f"{path} is not encrypted with age",
                code="SEC116",
                why="only files encrypted with age are read or replaced",
                fix="choose another name; if it is plain text, change its secrets and delete it",
            )
        return content


def with_value(content: bytes, path: str, key: Sequence[str], value: str) -> bytes:
    """The document `content` with `value` at `key`; missing mappings on the way are created.

    Raises:
        LehrError: the format cannot be written, or the path leads through something other than a mapping.
    """
    if path.removesuffix(AGE).endswith(".toml"):
        raise LehrError(
            "single keys cannot be written to TOML", code="SEC117", fix=f"lehr secret edit {path}"
        )
    document: Any = document_in(content, path) if content.strip() else {}
    inner = document
    for part in key[:-1]:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else None
    if not isinstance(inner, dict):
        raise LehrError(
            f"{path} has no place for {'.'.join(key)}",
            code="SEC118",
            why="its parent is not a mapping",
            fix=f"lehr secret edit {path}",
        )
    inner[key[-1]] = value
    if path.removesuffix(AGE).endswith(".json"):
        return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, encoding="utf-8")
