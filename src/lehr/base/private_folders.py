"""Folders that only their owner may enter."""

from __future__ import annotations

from pathlib import Path


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for their owner alone.

    `Path.mkdir` gives its mode to the last one only.

    Raises:
        OSError: it cannot be made.
    """
    if not folder.parent.exists():
        make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
