"""`${NAME}` in the texts of a configuration: outputs of other assets, and secrets. Pure."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

from lehr.plugins.terraform.provider import UNKNOWN, Path

_PLACEHOLDER = re.compile(r"\$\{([a-z][a-z0-9_]*)\}")


def names_in(value: Any) -> set[str]:
    """Every name in a text of `value`, declared or not."""
    return {name for _path, text in _texts(value, ()) for name in _PLACEHOLDER.findall(text)}


def uses(value: Any, names: Container[str]) -> set[Path]:
    """Where in `value` a text uses one of `names`."""
    return {
        path for path, text in _texts(value, ()) if any(name in names for name in _PLACEHOLDER.findall(text))
    }


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """`value` with the named values in place of `${NAME}`. Other names are left as they are.

    A text that is nothing but `${NAME}` becomes the value itself, of whatever type; within a longer text the
    value is written as text. A text with a value that is `UNKNOWN` is `UNKNOWN`.

    Raises:
        ValueError: a list or a mapping is used within a longer text. The message does not quote values.
    """
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    return _filled_text(value, values) if isinstance(value, str) else value


def _filled_text(text: str, values: Mapping[str, Any]) -> Any:
    whole = _PLACEHOLDER.fullmatch(text)
    if whole is not None and whole[1] in values:
        return values[whole[1]]
    if any(values.get(name) is UNKNOWN for name in _PLACEHOLDER.findall(text)):
        return UNKNOWN
    return _PLACEHOLDER.sub(
        lambda found: _as_text(found[1], values[found[1]]) if found[1] in values else found[0], text
    )


def _as_text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"${{{name}}} is not a text or a number, so it cannot be a part of a text")


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
