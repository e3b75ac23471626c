"""Programmatic edits: change a few values in files of intent, as one commit.

In: a location, changes to values (`Replace`, `Compute`, `Add`, `Delete`), and a message. Out: a commit on the
branch, whose diff is only the lines of these values; or an `EditError` with the reasons.

Architecture invariants:

* Text outside of a value never changes: edits are splices by position, and the result is parsed again before
  it is written.
* A branch moves only by compare-and-swap. Other people's commits are never lost, and uncommitted edits in a
  work tree are never overwritten.
* Nothing is checked out: commits are built from objects. A work tree that has the branch checked out is
  updated.
* `file_edit` and everything below it know neither files nor git.
"""

from __future__ import annotations

from lehr.editing.changes import Add, Change, Compute, Delete, EditError, Replace
from lehr.editing.edit import Check, Commit, FileChange, edit

__all__ = [
    "Add",
    "Change",
    "Check",
    "Commit",
    "Compute",
    "Delete",
    "EditError",
    "FileChange",
    "Replace",
    "edit",
]
