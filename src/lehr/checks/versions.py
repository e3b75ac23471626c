"""Which of two versions is lower."""

from __future__ import annotations

import re

_PART = re.compile(r"(\d+)|([^\d.+-]+)")


def precedes(one: str, other: str) -> bool:
    """True when version `one` is lower than `other`.

    Parts of digits compare as numbers (`1.9` is lower than `1.10`), others as text; a part of text
    is lower than a number or nothing at all, so that `2.0rc1` is lower than `2.0`.
    """
    return _key(one) < _key(other)


def _key(version: str) -> tuple[tuple[int, int, str], ...]:
    parts = [
        (2, int(number), "") if number else (0, 0, text)
        for number, text in _PART.findall(version.removeprefix("v"))
    ]
    while parts and parts[-1] == (2, 0, ""):
        parts.pop()  # 2.0 is 2
    return (*parts, (1, 0, ""))
