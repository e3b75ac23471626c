"""Splits the replacement of a list or mapping into few changes inside it: the rest stays as written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from lehr.base.digest import canonical
from lehr.base.pointers import escaped

_MOST = 50


class Part(NamedTuple):
    """One change inside a value.

    Attributes:
        pointer: a JSON pointer, from the value.
        value: the new value; `msgspec.UNSET` to remove it.
        new: True if there is no value yet.
    """

    pointer: str
    value: Any
    new: bool = False


def parts(before: Any, after: Any) -> list[Part] | None:
    """The changes from `before` to `after`; None if rewriting it as a whole is better."""
    found = list(_inside(before, after, ""))
    whole = not found or any(not part.pointer for part in found) or len(found) > _MOST
    return None if whole else sorted(found, key=_in_order)


def _inside(before: Any, after: Any, pointer: str) -> Iterator[Part]:
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() & after.keys():
        for key in after:
            inner = f"{pointer}/{escaped(key)}"
            if key in before:
                yield from _inside(before[key], after[key], inner)
            else:
                yield Part(inner, after[key], new=True)
        for key in before.keys() - after.keys():
            yield Part(f"{pointer}/{escaped(key)}", msgspec.UNSET)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _items(before, after, pointer)
    else:
        yield Part(pointer, after)


def _items(before: list[Any], after: list[Any], pointer: str) -> Iterator[Part]:
    """Changes of items; if some are inserted between others, the list as a whole."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if not same(before[n], after[n])), shorter)
    rest = range(1, shorter - head + 1)
    tail = next((n - 1 for n in rest if not same(before[-n], after[-n])), shorter - head)
    old, new = len(before) - head - tail, len(after) - head - tail
    if not head + tail + min(old, new) or (new > old and tail):
        yield Part(pointer, after)
        return
    for number in range(head, head + min(old, new)):
        yield from _inside(before[number], after[number], f"{pointer}/{number}")
    for item in after[len(before) :] if new > old else ():
        yield Part(f"{pointer}/-", item, new=True)
    for number in range(head + new, head + old):
        yield Part(f"{pointer}/{number}", msgspec.UNSET)


def _in_order(part: Part) -> tuple[int, int]:
    """Replacements first, then additions, then removals; later items are removed before earlier ones."""
    if part.value is not msgspec.UNSET:
        return (1 if part.new else 0, 0)
    last = part.pointer.rsplit("/", 1)[-1]
    return (2, -int(last) if last.isdecimal() else 0)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of equal kinds: 1, 1.0 and true all differ."""
    try:
        return canonical(one) == canonical(other)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return False
