"""Writes values as text, in the style of the existing text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

import yaml

from lehr.base.documents import load
from lehr.base.documents.nodes import Node

_PLAIN = re.compile(r"(?:\.{1,2}/)?[A-Za-z0-9_/](?:[\w ./@+=%~()-]|:(?=[^\s:]))*(?<! )", re.ASCII)
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_YES_OR_NO = frozenset("yYnN")  # YAML 1.1, in some readers
_YAML_1_1 = yaml.resolver.Resolver()
_STEP = 2


class ValueWriter(Protocol):
    """Writes values in a format."""

    def inline(self, value: Any, like: Node | None = None, *, nested: bool = False) -> str:
        """`value` in one line.

        Args:
            like: a scalar whose quotes it gets, if possible.
            nested: it will be inside brackets.

        Raises:
            ValueError: the format cannot hold it.
        """
        ...

    def pair(self, key: str, value: str) -> str:
        """An entry with `value` as the text of its value."""
        ...


class YamlWriter:
    """YAML that readers of versions 1.1 and 1.2 parse identically."""

    def inline(self, value: Any, like: Node | None = None, *, nested: bool = False) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(self.pair(key, self._nested(item)) for key, item in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self._nested, value)) + "]"
        if isinstance(value, str):
            return _yaml_text(value, like.style if like is not None else "", nested=nested)
        return _yaml_number(value)

    def pair(self, key: str, value: str) -> str:
        return f"{_yaml_text(key, '', nested=True)}: {value}"

    def _nested(self, value: Any) -> str:
        return _yaml_text(value, "", nested=True) if isinstance(value, str) else self.inline(value)

    def block(self, value: Any) -> Iterator[str]:
        """The lines of a list or mapping that is not empty, one for each entry."""
        for key, item in value.items() if isinstance(value, dict) else ((None, item) for item in value):
            if not (isinstance(item, (dict, list)) and item):
                yield f"- {self.inline(item)}" if key is None else self.pair(key, self.inline(item))
            elif key is None:
                first, *others = self.block(item)
                yield f"- {first}"
                yield from (" " * _STEP + line for line in others)
            else:
                yield self.pair(key, "").rstrip()
                yield from (" " * _STEP + line for line in self.block(item))


class JsonWriter:
    """JSON, in one line."""

    def inline(self, value: Any, like: Node | None = None, *, nested: bool = False) -> str:
        return _json_text(value)

    def pair(self, key: str, value: str) -> str:
        return f"{_json_text(key)}: {value}"


class TomlWriter:
    """TOML; lists and tables as inline ones."""

    def inline(self, value: Any, like: Node | None = None, *, nested: bool = False) -> str:
        if isinstance(value, dict):
            inner = ", ".join(self.pair(key, self.inline(item)) for key, item in value.items())
            return f"{{{inner}}}"
        if isinstance(value, list):
            return "[" + ", ".join(map(self.inline, value)) + "]"
        if value is None:
            raise ValueError("TOML has no null")
        if isinstance(value, str) and like is not None and like.style == "'" and _fits_single(value, "'"):
            return f"'{value}'"
        return _json_text(value)

    def pair(self, key: str, value: str) -> str:
        return f"{key if _BARE_KEY.fullmatch(key) else _json_text(key)} = {value}"


def literal(text: str, indent: str, newline: str) -> str | None:
    """`text` of several lines as a YAML literal block scalar; None if that is impossible."""
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 2 or lines[0][:1] in {" ", "\t", ""} or not lines[-1]:
        return None
    if not all(line.replace("\t", "").isprintable() for line in lines):
        return None
    mark = "|" if text.endswith("\n") else "|-"
    return newline.join([mark, *(indent + line if line else "" for line in lines)]) + newline


def _yaml_text(text: str, style: str, *, nested: bool) -> str:
    if style == "'" and _fits_single(text, ""):
        return "'" + text.replace("'", "''") + "'"
    if style != '"' and _is_plain(text) and not (nested and ":" in text):
        return text
    return _json_text(text)


def _is_plain(text: str) -> bool:
    """Whether readers of YAML 1.1 and 1.2 read `text` unchanged."""
    if not _PLAIN.fullmatch(text) or text in _YES_OR_NO:
        return False
    loaded = load("value.yaml", text.encode()).documents
    tag: str = _YAML_1_1.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return bool(loaded) and loaded[0].value == text and tag == "tag:yaml.org,2002:str"


def _fits_single(text: str, forbidden: str) -> bool:
    return text.isprintable() and not any(character in text for character in forbidden)


def _yaml_number(value: Any) -> str:
    written = _json_text(value)
    if isinstance(value, float) and "e" in written and "." not in written:
        return written.replace("e", ".0e")  # required by YAML 1.1
    return written


def _json_text(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", written)
