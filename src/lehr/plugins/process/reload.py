"""Notes of what a replica's process has reloaded, next to its definition.

A process reads its configuration when it starts, as its marks state, and again when it is reloaded. The note
of a reload names its process, so that it counts for no other.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from lehr.plugins.process import procfs
from lehr.plugins.process.ownership import read_note

RELOADED = "reloaded"
"""Ending of the note's file."""


class _ReloadNote(msgspec.Struct, frozen=True):
    boot: str
    process: procfs.ProcessId
    loaded: str


_note = msgspec.json.Decoder(_ReloadNote)


def reload_note(process: procfs.ProcessId, loaded: str) -> bytes:
    """The note that `process` has reloaded what has the digest `loaded`."""
    return msgspec.json.encode(_ReloadNote(procfs.boot(), process, loaded))


def reloaded(files: Path, index: int, process: procfs.ProcessId) -> str | None:
    """The digest of what `process` of a replica has reloaded last; None if it was never reloaded.

    Args:
        files: directory of the asset's files.
        index: of the replica.
        process: that runs.
    """
    try:
        note = _note.decode((files / f"{index}.{RELOADED}").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return note.loaded if note.process == process and note.boot == procfs.boot() else None


def command_runs(files: Path, index: int) -> bool:
    """True while a command that reloads a replica runs. Arguments as above."""
    note = read_note(files / f"{index}.reload.run")
    return note is not None and note.boot == procfs.boot() and procfs.alive(note.process)
