"""Values in JSON documents, by JSON pointer. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lehr.base.pointers import parts_of

MISSING = object()
"""There is nothing at a pointer."""

_POINTER = re.compile(r"(/([^~/\x00-\x1f\x7f]|~[01])+)+")


def is_pointer(text: str) -> bool:
    """Whether `text` is a JSON pointer to a value within a document."""
    return _POINTER.fullmatch(text) is not None


def at(document: Any, pointer: str) -> Any:
    """The value at `pointer`, or `MISSING`. The empty pointer leads to the document."""
    found = document
    for part in parts_of(pointer) if pointer else ():
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and len(part) < 10 and int(part) < len(found):
            found = found[int(part)]
        else:
            return MISSING
    return found


def with_values(document: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """`document` with these values at their pointers, in objects that are made where there are none."""
    filled = dict(document)
    for pointer, value in values.items():
        *within, last = parts_of(pointer)
        place = filled
        for part in within:
            place[part] = dict(place.get(part) or {})
            place = place[part]
        place[last] = value
    return filled


def within(pointer: str, other: str) -> bool:
    """Whether one of two pointers leads into, or to, the value of the other."""
    return f"{pointer}/".startswith(f"{other}/") or f"{other}/".startswith(f"{pointer}/")
