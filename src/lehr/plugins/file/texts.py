"""The text of a file and the text that a push gives it, for a plan. Blocks.

This is the only place that shows content of files, and it never shows that of a secret, or of a file that is
not, or should not be, for everyone to read.
"""

from __future__ import annotations

import stat

from lehr.base.errors import StalledError
from lehr.plugins.file import disk
from lehr.plugins.file.disk import DiskEntry, EntryKind
from lehr.plugins.file.payload import Intended
from lehr.sdk.plugin import MOST_TEXT, TextChange


def text_changes(path: str, intended: Intended) -> tuple[TextChange, ...]:
    """The change of the content; nothing if there is none, or the content is a secret.

    Raises:
        OSError: the file cannot be read.
    """
    file = intended.file
    if file.content_secret is not None:
        return ()
    found = disk.look(path)
    if found is not None and found.kind is not EntryKind.FILE:
        return ()
    if reason := _reason_to_hide(intended, found):
        return (TextChange("content", hidden=reason),)
    try:
        new = intended.data()
    except StalledError as error:
        return (TextChange("content", hidden=error.what),)
    old = None if found is None else found.data
    if old == new:
        return ()
    try:
        return (TextChange("content", _decoded(old), _decoded(new)),)
    except UnicodeDecodeError:
        return (TextChange("content", hidden="it is binary"),)


def _reason_to_hide(intended: Intended, found: DiskEntry | None) -> str:
    """Why the content must not be shown, or is not worth being read; empty for a text that may be shown."""
    file = intended.file
    for mode in (file.permissions, file.permissions if found is None else found.mode):
        if not mode & stat.S_IROTH:
            return f"mode {mode:04o} keeps it from other users"
    size = len(file.data or b"") if file.workspace_file is None else file.workspace_file.size or 0
    if max(size, 0 if found is None else found.size) > MOST_TEXT:
        return f"it is larger than {MOST_TEXT >> 20} MiB"
    return ""


def _decoded(data: bytes | None) -> str | None:
    """UTF-8 text.

    Raises:
        UnicodeDecodeError: it is something else. NUL is in no text.
    """
    if data is None:
        return None
    if b"\0" in data:
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "a NUL")
    return data.decode()
