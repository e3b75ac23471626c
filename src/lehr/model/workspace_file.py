"""Files of the workspace that assets name. Their content is not part of intent, but its digest is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lehr.model.references import Extract

MOST_BYTES = 10_000_000
"""Maximum size of such a file."""


class WorkspaceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the workspace, at the revision that names it. Use it as the type of a field.

    Attributes:
        file: its path, relative to the folder of lehr.yaml.
        digest: git's blob id of its content. Lehr fills it in, so that new content changes the asset; None if
            this revision has no such file.
        size: bytes. Lehr fills it in.
    """

    file: str
    digest: str | None = None
    size: int | None = None


MOST_TEXT_BYTES = 65_536
"""Maximum size of a file whose text is part of intent."""


class WorkspaceText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A short text file of the workspace, whose content is part of intent. Use it as the type of a field.

    Only for what checks must read, which see nothing but intent.

    Attributes:
        file: its path, relative to the folder of lehr.yaml.
        digest: as of a `WorkspaceFile`.
        size: bytes. Lehr fills it in.
        text: its content. Lehr fills it in; None if this revision has no such file, or if it is too large
            or not UTF-8.
    """

    file: str
    digest: str | None = None
    size: int | None = None
    text: str | None = None


def text_leaf(kind: Any) -> Extract | None:
    """Finds text files in the value of a field of type `WorkspaceText`; None for other fields."""
    return _mapping if kind is WorkspaceText else None


def file_leaf(kind: Any) -> Extract | None:
    """Finds files in the value of a field of type `WorkspaceFile`; None for other fields."""
    return _mapping if kind is WorkspaceFile else None


def path_problem(path: str) -> str | None:
    """Why `path` cannot name a file of the workspace, whether it exists or not; None if it can."""
    if path.startswith("/"):
        return "it is absolute"
    if ".." in path.split("/"):
        return "a part `..` may lead out of the workspace"
    if not all(part not in ("", ".") for part in path.split("/")):
        return "it has an empty part or a part `.`"
    return None


def _mapping(value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict) and isinstance(value.get("file"), str):
        yield path, value
