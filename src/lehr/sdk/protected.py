"""Folders that no path of intent may lead into: Lehr's own state, and git repositories.

An author of intent who could have a file pushed there would decide what is enforced, or run a hook.
An asset's claims are checked against this in validation and before each push; a plugin that writes
to a path should also ask right before it does, with the path that it then uses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from lehr.base.real_paths import is_inside

_GIT = ".git"
_REPOSITORY = ("HEAD", "objects", "refs")
_STATE = ("state.sqlite", "lock")


class Protected:
    """Reports whether real paths (`lehr.base.real_paths`) lead into such a folder.

    Args:
        folders: those that are known, each with its description.
    """

    def __init__(self, folders: Mapping[Path, str]) -> None:
        self._folders = tuple(
            (place, f"{name} {folder}")
            for folder, name in folders.items()
            for place in dict.fromkeys((os.path.realpath(folder), os.path.abspath(folder)))
        )

    def why(self, path: str, *, entry: bool = True, seen: dict[str, str] | None = None) -> str:
        """The protected folder that `path` leads into, as text; empty if it may be changed.

        Args:
            entry: whether what is replaced is the entry at `path` itself, and not something in the folder
                `path`. Replacing a link on the way to a protected folder replaces what is found there.
            seen: findings of earlier calls about folders, to look at each only once.
        """
        for place, name in self._folders:
            if is_inside(path, place) or (entry and is_inside(place, path)):
                return name
        known = {} if seen is None else seen
        for folder in _upwards(path):
            if folder not in known:
                # Nearly every path leads to a file, or to nothing, which needs one look.
                known[folder] = _kind_of(folder) if folder != path or _may_be_folder(path) else ""
            if known[folder]:
                return f"{known[folder]} {folder}"
        return ""


def _upwards(path: str) -> Iterator[str]:
    while path != (above := os.path.dirname(path)):
        yield path
        path = above


def _may_be_folder(path: str) -> bool:
    return os.path.basename(path) == _GIT or os.path.isdir(path)


def _kind_of(folder: str) -> str:
    if os.path.basename(folder) == _GIT or _has(folder, _REPOSITORY):
        return "the git repository"
    return "the state folder" if _has(folder, _STATE) else ""


def _has(folder: str, names: tuple[str, ...]) -> bool:
    return all(os.path.lexists(os.path.join(folder, name)) for name in names)
