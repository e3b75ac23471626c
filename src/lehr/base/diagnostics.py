"""Errors in user input, as values: collected, all shown at once, each with a place."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec
from msgspec.structs import force_setattr

from lehr.base.text import writable


class Severity(enum.StrEnum):
    """Severity. Only an error keeps an incarnation from being published."""

    ERROR = "error"
    WARNING = "warning"


class Position(msgspec.Struct, frozen=True, order=True, gc=False):
    """A place in a source file. `line` and `column` count from 1; 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if not self.line:
            return self.file
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class Excerpt(msgspec.Struct, frozen=True):
    """A line of source, cut around the place that is meant where it is long.

    Attributes:
        caret: index of the character that is meant; None when the line as a whole is.
    """

    text: str
    caret: int | None = None


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True):
    """One problem with what a user wrote. It can always be written down, whatever it quotes.

    Attributes:
        code: stable, with a page in `docs/reference/diagnostics.md` (`GEN004`).
        what: the problem.
        why: why that is a problem, or how it came about.
        fix: what to do about it.
        subject: the asset id or file it is about.
        at: where; None without a file to point into.
        excerpt: the line at `at`, for readers who do not have the file as it was then.
        confidential: True when that line must not be shown, by this diagnostic or another.
    """

    code: str
    what: str
    why: str = ""
    fix: str = ""
    subject: str = ""
    at: Position | None = None
    severity: Severity = Severity.ERROR
    excerpt: Excerpt | None = None
    confidential: bool = False

    def __post_init__(self) -> None:
        for name in ("what", "why", "fix", "subject"):
            before = getattr(self, name)
            after = writable(before)
            if after is not before:
                force_setattr(self, name, after)


def file_problem(
    code: str, at: Position, *, what: str, why: str = "", fix: str = "", severity: Severity = Severity.ERROR
) -> Diagnostic:
    """A problem of the file that `at` points into."""
    return Diagnostic(code=code, what=what, why=why, fix=fix, subject=at.file, at=at, severity=severity)


def errors(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Those that keep an incarnation from being published."""
    return [item for item in diagnostics if item.severity is Severity.ERROR]


def in_order(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Sorted for people: by place, then code."""
    nowhere = Position("")
    return sorted(diagnostics, key=lambda item: (item.at or nowhere, item.code, item.subject))
