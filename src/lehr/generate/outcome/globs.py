"""Glob patterns over the paths of a snapshot."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable

_SEGMENT_START = r"(?!\.)"  # as in a shell, a wildcard does not match hidden files
_FOLDER = rf"(?:{_SEGMENT_START}[^/]+/)"
_BRACE = re.compile(r"\{([^{}]*)\}")
_BRACES = re.compile(r"[^{}]*(\{[^{}]*\}[^{}]*)*")
_MAX_PATTERN = 1000
_MAX_NAMES = 100


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
        return "`**` must be alone between slashes"
    if not all(_BRACES.fullmatch(part) for part in segments):
        return "its braces are unbalanced, nested, or contain a slash"
    if any(math.prod(map(len, _choices(part))) > _MAX_NAMES for part in segments):
        return f"the braces between two slashes expand to more than {_MAX_NAMES} names"
    return None


@functools.lru_cache(maxsize=8192)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that checks whether a path matches `pattern`.

    `*` and `?` stay within one path segment, `**` matches any number of segments, `{a,b}` either. Everything
    else matches itself. Wildcards do not match hidden files and folders.

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
    """The regular expression of a pattern. Matching takes at most quadratic time in the path's length.

    The text between two wildcards has a fixed length, so its first match is as good as any later one and
    never needs backtracking (an atomic group); only the last wildcard does.
    """
    chunks: list[list[str]] = [[]]
    for segment in pattern.split("/"):
        if segment == "**":
            chunks.append([])
        else:
            chunks[-1].append(_segment(segment))
    first, *others = chunks
    if not others:
        return "/".join(first)
    *inner, last = others
    parts = [f"{part}/" for part in first]
    parts += [f"(?>{_FOLDER}*?{'/'.join(chunk)}/)" for chunk in inner if chunk]
    return "".join(parts) + f"{_FOLDER}*" + ("/".join(last) or f"{_SEGMENT_START}[^/]+")


def _segment(segment: str) -> str:
    names = [_name(name) for name in _names(segment)]
    return names[0] if len(names) == 1 else rf"(?>(?:{'|'.join(names)})(?=/|\Z))"


def _choices(segment: str) -> list[list[str]]:
    """The alternatives for each part of a segment, in order."""
    return [part.split(",") if index % 2 else [part] for index, part in enumerate(_BRACE.split(segment))]


def _names(segment: str) -> list[str]:
    """All expansions of the braces in a segment."""
    return ["".join(chosen) for chosen in itertools.product(*_choices(segment))]


def _name(name: str) -> str:
    first, *others = (re.escape(part).replace(r"\?", "[^/]") for part in name.split("*"))
    hidden = _SEGMENT_START if name[:1] in ("*", "?") else ""
    if not others:
        return hidden + first
    *inner, last = others
    return hidden + first + "".join(f"(?>[^/]*?{part})" for part in inner if part) + f"[^/]*{last}"
