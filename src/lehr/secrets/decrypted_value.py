"""One value of a decrypted document. Problems are reported without quoting its content."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lehr.base import documents
from lehr.base.errors import StalledError

AGE = ".age"


def document_in(content: bytes, place: str) -> Any:
    """Parse decrypted `content` as one document.

    Args:
        place: path of the encrypted file. The suffix before `.age` determines the format; the default is
            YAML.

    Raises:
        StalledError: it cannot be read.
    """
    name = place.removesuffix(AGE)
    name = name if name.endswith(tuple(documents.SUFFIXES)) else f"{name}.yaml"
    loaded = documents.load(name, content)
    lines = sorted({item.at.line for item in loaded.diagnostics if item.at is not None})
    if loaded.diagnostics or len(loaded.documents) != 1:
        where = f"see line {lines[0]}" if lines and lines[0] else "it must hold one document"
        raise StalledError(
            f"the decrypted content of {place} cannot be read",
            code="SEC120",
            why=where,
            fix=f"lehr secret edit {place}",
        )
    return loaded.documents[0].value


def picked(document: Any, key: Sequence[str], place: str) -> bytes:
    """The value at `key`: text unchanged, anything else as JSON.

    Raises:
        StalledError: there is no such value.
    """
    value = document
    for part in key:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise StalledError(
                f"{place} has no value {'.'.join(key)}",
                code="SEC121",
                why=f"there is no {part}",
                fix=f"lehr secret edit {place}" if place.endswith(AGE) else "fix the key or the file",
            )
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
