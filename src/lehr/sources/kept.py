"""Files of past revisions, by content id."""

from __future__ import annotations

from pathlib import Path

import pygit2

_MIRRORS = "sources"


def kept_content(state: Path, content_id: str) -> bytes | None:
    """The content that `content_id` names, if any mirror in the state folder has it.

    Content ids are git's in all kinds of sources: any mirror that has it has the same content.

    Args:
        state: the state folder.
        content_id: as in `lehr.sdk.source.FileEntry`.
    """
    try:
        id = pygit2.Oid(hex=content_id)
    except ValueError:
        return None
    for folder in sorted((state / _MIRRORS).glob("*.git")):
        try:
            repository = pygit2.Repository(str(folder), pygit2.enums.RepositoryOpenFlag.NO_SEARCH)
            return bytes(repository.odb.read(id)[1])
        except (KeyError, pygit2.GitError):
            continue  # another mirror may have it; a damaged one has lost it
    return None


def content_at(path: Path, content_id: str) -> bytes | None:
    """The content of the file at `path`, if `content_id` names it: for unpublished files."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if str(pygit2.hash(content)) == content_id else None
