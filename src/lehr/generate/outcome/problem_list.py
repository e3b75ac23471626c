"""Problems in the order found, up to a readable number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lehr.base.diagnostics import Diagnostic, Position, Severity, errors, file_problem, in_order
from lehr.base.documents import MAX_BYTES, MAX_PROBLEMS
from lehr.sdk.source import FileEntry

MAX_REPORTED = 10_000
"""Maximum number of reported problems of a workspace."""


class Collected:
    """The problems of one file, or of the output of one generator call.

    Args:
        subject: the file or generator.
    """

    def __init__(self, subject: str, diagnostics: Iterable[Diagnostic] = ()) -> None:
        self._subject = subject
        self._diagnostics: list[Diagnostic] = []
        self._errors = 0
        self.add(diagnostics)

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add these problems."""
        found = list(diagnostics)
        self._diagnostics += found
        self._errors += len(errors(found))

    @property
    def full(self) -> bool:
        """True once there are so many errors that searching for more is useless."""
        return self._errors > MAX_PROBLEMS

    def all(self) -> tuple[Diagnostic, ...]:
        """Problems in the order found. If there are too many, the last one reports that."""
        if not self.full:
            return tuple(self._diagnostics)
        shown, rest = self._diagnostics[:MAX_PROBLEMS], self._diagnostics[MAX_PROBLEMS:]
        shown += [item for item in rest if item.confidential]  # or another might show their lines
        what = f"{self._subject} has more than {MAX_PROBLEMS:,} problems"
        return (*shown, _more(what, self._subject, rest[0].at, Severity.ERROR))


def reported(diagnostics: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The problems of a workspace that are worth sending and storing: errors before warnings.

    Confidential ones come first: without them, others might show their lines.
    """
    if len(diagnostics) <= MAX_REPORTED + 1:  # one more may be the note that there are more
        return tuple(diagnostics)
    listed = sorted(
        in_order(diagnostics), key=lambda item: (not item.confidential, item.severity is not Severity.ERROR)
    )
    first = listed[MAX_REPORTED]
    what = f"there are {len(listed) - MAX_REPORTED:,} more problems"
    return (*listed[:MAX_REPORTED], _more(what, first.subject, first.at, first.severity))


def too_large(entry: FileEntry) -> Diagnostic:
    """A file that was not read."""
    return file_problem(
        "GEN011",
        Position(entry.path),
        what=f"the file has {entry.size:,} bytes, more than {MAX_BYTES:,}",
        why="files of intent are read as a whole, also by reviewers",
        fix="split it",
    )


def _more(what: str, subject: str, at: Position | None, severity: Severity) -> Diagnostic:
    return Diagnostic(
        code="GEN036",
        what=what,
        why="a list of all of them would be larger than the intent itself",
        fix="fix those shown first",
        subject=subject,
        at=at,
        severity=severity,
    )
