"""JSON pointers (RFC 6901): from keys and indexes to text, and back."""

from __future__ import annotations

from collections.abc import Iterable


def escaped(key: object) -> str:
    """`key`, a key or an index, as one part of a pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def unescaped(part: str) -> str:
    """The key that one part of a pointer represents."""
    return part.replace("~1", "/").replace("~0", "~")


def pointer(parts: Iterable[str | int]) -> str:
    """The pointer that follows keys and indexes."""
    return "".join(f"/{escaped(part)}" for part in parts)


def parts_of(pointer: str) -> tuple[str, ...]:
    """The keys that a pointer follows, unescaped; indexes are also text."""
    return tuple(unescaped(part) for part in pointer.split("/")[1:])
