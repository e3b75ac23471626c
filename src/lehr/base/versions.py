"""Which of two versions is lower."""

from __future__ import annotations

import re

_RELEASE = re.compile(r"\d+(\.\d+)*")
_PART = re.compile(r"(\d+)|([^\d.+-]+)")


def precedes(one: str, other: str) -> bool:
    """True when version `one` is lower than `other`.

    Numbers divided by dots compare as numbers (`1.9` is lower than `1.10`, `1` is `1.0`); whatever
    follows them makes a version lower than without it (`2.0rc1` is lower than `2.0`).
    """
    return _key(one) < _key(other)


def _key(version: str) -> tuple[list[int], bool, list[tuple[int, str]]]:
    text = version.removeprefix("v")
    found = _RELEASE.match(text)
    release = [int(part) for part in found.group().split(".")] if found else []
    while release and release[-1] == 0:
        release.pop()
    rest = text[found.end() :] if found else text
    parts = [(int(number or 0), word) for number, word in _PART.findall(rest)]
    return release, not rest, parts
