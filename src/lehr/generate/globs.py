"""Glob patterns over the paths of a snapshot."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

_SEGMENT_START = r"(?!\.)"  # as in a shell, a wildcard does not match hidden files
_BRACES = re.compile(r"[^{}]*(\{[^{}]*\}[^{}]*)*")
_MAX_PATTERN = 1000


def glob_problem(pattern: str) -> str | None:
    """Why `pattern` cannot be matched against paths; None when it can."""
    if not pattern:
        return "it is empty"
    if len(pattern) > _MAX_PATTERN:
        return f"it has {len(pattern)} characters, more than {_MAX_PATTERN}"
    if pattern.startswith("/"):
        return "it is absolute; patterns are relative to the workspace"
    segments = pattern.split("/")
    if any(part in ("", ".", "..") for part in segments):
        return "it has an empty part, `.` or `..`; patterns name paths inside the workspace"
    if any("**" in part and part != "**" for part in segments):
        return "`**` stands alone between slashes"
    if not all(_BRACES.fullmatch(part) for part in segments):
        return "its braces are not balanced, stand within each other, or hold a slash"
    return None


@functools.lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether a path matches `pattern`.

    `*` and `?` stay within one path segment, `**` stands for any number of segments, `{a,b}` is
    either. Everything else stands for itself. Wildcards do not match hidden files and folders.

    Raises:
        ValueError: `glob_problem(pattern)` is not None.
    """
    problem = glob_problem(pattern)
    if problem is not None:
        raise ValueError(f"pattern {pattern!r}: {problem}")
    match = re.compile(_expression(pattern), re.DOTALL).fullmatch
    return lambda path: match(path) is not None


def may_lead_to(path: str, pattern: str) -> bool:
    """Whether `pattern` matches `path`, or would match something below it if it were a folder."""
    segments = pattern.split("/")
    return any(matcher("/".join(segments[:length]))(path) for length in range(1, len(segments) + 1))


def _expression(pattern: str) -> str:
    segments = pattern.split("/")
    parts: list[str] = []
    for position, segment in enumerate(segments):
        last = position == len(segments) - 1
        if segment == "**":
            parts.append(rf"(?:{_SEGMENT_START}[^/]+/)*" + (rf"{_SEGMENT_START}[^/]+" if last else ""))
        else:
            hidden = _SEGMENT_START if segment[0] in "*?" else ""
            parts.append(hidden + _segment(segment) + ("" if last else "/"))
    return "".join(parts)


def _segment(segment: str) -> str:
    parts: list[str] = []
    inside = False
    for character in segment:
        if character == "," and inside:
            parts.append("|")
            continue
        inside = (inside or character == "{") and character != "}"
        parts.append({"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}.get(character) or re.escape(character))
    return "".join(parts)
