"""Edits by program: a few values in files of intent, as one commit.

In: a location, changes to values (`Replace`, `Compute`, `Add`, `Delete`), and a message. Out: a commit on
the branch, whose diff is the lines of these values and nothing else; or an `EditError` that says why not.

Architecture invariants:

* What is written outside of a value never changes: edits are splices by position, and what comes of them
  is read again before it is written.
* A branch moves by compare-and-swap alone. No commit of somebody else is ever lost, no uncommitted edit
  in a work tree ever overwritten.
* Nothing is checked out: commits are made of objects. A work tree that has the branch checked out follows.
* `file_edit` and all below it know neither files nor git.
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
