"""Text that can always be written, stored and shown, made of any input.

A name of a file or ref, an answer of a plugin, the message of an exception: any of them may hold
lone surrogates (bytes that are not UTF-8), NUL, or a gigabyte. `writable` is the one mechanism at
every boundary: every error and every diagnostic is made of it (`errors`, `diagnostics`), and so are
the answers of plugins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

MOST_NAMED = 10


def listed(names: Sequence[str]) -> str:
    """Some of `names`, and how many more there are: `a, b and 290 more`."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


MOST_CHARACTERS = 8_000
"""Most characters of one text. A longer one is cut, with a note."""

_UNWRITABLE = re.compile("[\0\ud800-\udfff]")


def writable(text: object, most: int = MOST_CHARACTERS) -> str:
    r"""`text` so that it can be encoded as UTF-8: `\xff` for a byte that is not, `\0` for NUL.

    Args:
        most: characters; the rest is left out, and counted.
    """
    found = text if type(text) is str else described(text)
    if len(found) > most:
        found = f"{found[:most]}... ({len(found) - most:,} more characters)"
    if found.isascii() and "\0" not in found:
        return found
    return _UNWRITABLE.sub(_escaped, found)


def one_line(text: str) -> str:
    """`text` with its lines joined by ` | `, without empty ones, and blanks for unprintable characters.

    So a program's output can be quoted in a message: no terminal obeys it.
    """
    text = " | ".join(line for line in map(str.strip, text.splitlines()) if line)
    return "".join(character if character.isprintable() else " " for character in text).strip()


def described(value: object) -> str:
    """`str(value)`, also of a value whose `__str__` fails."""
    try:
        return str.__str__(str(value))  # a plain string, whatever subclass it was
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if not code:
        return "\\0"
    # Python's character for a byte that is not UTF-8 (PEP 383) is shown as that byte.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def data_line(data: Any) -> str:
    """Plain data on one line: a text as it is, a flat object as `size 8, mode 0644`, all else as JSON."""
    if isinstance(data, dict) and data and not any(isinstance(item, dict | list) for item in data.values()):
        return ", ".join(f"{key} {item}" for key, item in data.items())
    return data if isinstance(data, str) else msgspec.json.encode(data).decode()
