"""Texts with `{{name}}` in them."""

from __future__ import annotations

import re
from collections.abc import Mapping

_FIELD = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_-]*) *\}\}")

Value = str | int | float | bool


def rendered(text: str, values: Mapping[str, Value]) -> str:
    """`text` with each `{{name}}` replaced by that value; true and false as YAML writes them.

    Raises:
        LookupError: with the name that has no value.
    """

    def one(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise LookupError(match[1])
        value = values[match[1]]
        return str(value).lower() if isinstance(value, bool) else str(value)

    return _FIELD.sub(one, text)
