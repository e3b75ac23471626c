"""Plain data as values of a type, converted as Terraform converts them."""

from __future__ import annotations

import difflib
import math
import unicodedata
from collections.abc import Iterable
from typing import Any

from lehr.plugins.terraform.provider import UNKNOWN, Diagnostic, Number, Path, Severity, Typed, Value
from lehr.plugins.terraform.values import numbers
from lehr.plugins.terraform.values.canonical import in_order
from lehr.plugins.terraform.values.cty_types import CtyType
from lehr.plugins.terraform.values.msgpack_codec import encode

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def problem(path: Path, summary: str, detail: str = "") -> Diagnostic:
    """An error in what people wrote."""
    return Diagnostic(Severity.ERROR, summary, detail, path)


def unknown_name(path: Path, name: str, known: Iterable[str], what: str) -> Diagnostic:
    """`name` is not in `known`; maybe one of those is meant."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    detail = f'did you mean "{near[0]}"?' if near else ""
    return problem((*path, name), f'unknown {what} "{name}"', detail)


def converted(written: Any, type: CtyType, path: Path, problems: list[Diagnostic]) -> Value:
    """`written` as a value of `type`. Errors are added to `problems`, and what they are about is null.

    Attributes of objects that are not written are null.
    """
    if written is None or written is UNKNOWN:
        return written
    if isinstance(type, str):
        return _scalar(written, type, path, problems)
    match type:
        case ["object", fields, *_] if isinstance(written, dict):
            problems += [
                unknown_name(path, str(name), fields, "attribute") for name in written if name not in fields
            ]
            return {
                name: converted(written.get(name), fields[name], (*path, name), problems) for name in fields
            }
        case ["map", element] if isinstance(written, dict):
            return {
                _normal(_text_of(key)): converted(one, element, (*path, _text_of(key)), problems)
                for key, one in written.items()
            }
        case ["tuple", elements] if isinstance(written, list | tuple) and len(written) == len(elements):
            pairs = enumerate(zip(written, elements, strict=True))
            return [converted(one, element, (*path, index), problems) for index, (one, element) in pairs]
        case ["list", element] if isinstance(written, list | tuple):
            return [converted(one, element, (*path, index), problems) for index, one in enumerate(written)]
        case ["set", element] if isinstance(written, list | tuple | set | frozenset):
            found = [converted(one, element, path, problems) for one in written]
            return in_order(found, element, encode)
    problems.append(problem(path, f"must be {_described(type)}, not {_kind(written)}"))
    return None


def _scalar(written: Any, type_: str, path: Path, problems: list[Diagnostic]) -> Value:
    match type_, written:
        case "dynamic", _:
            return _plain(written, path, problems)
        case "string", str():
            return _normal(written)
        case "string", bool() | int() | float() | Number():
            return _text_of(written)
        case "bool", bool():
            return written
        case "bool", str() if written in _BOOLEANS:
            return _BOOLEANS[written]
        case "number", Number():
            return written
        case "number", int() | float() if not isinstance(written, bool):
            return _number(written, path, problems)
        case "number", str():
            try:
                return numbers.parsed(written.strip())
            except ValueError:
                problems.append(problem(path, "must be a number"))
                return None
    problems.append(problem(path, f"must be {_described(type_)}, not {_kind(written)}"))
    return None


def _number(written: float, path: Path, problems: list[Diagnostic]) -> Value:
    try:
        return numbers.normal(written)
    except ValueError as error:
        problems.append(problem(path, f"must be a number: it is {error}"))
        return None


def _plain(written: Any, path: Path, problems: list[Diagnostic]) -> Value:
    """`written` for an attribute of any type, with the type that it has."""
    match written:
        case None | bool() | Number() | Typed():
            return written
        case _ if written is UNKNOWN:
            return written
        case str():
            return _normal(written)
        case int() | float():
            return _number(written, path, problems)
        case list() | tuple():
            return [_plain(one, (*path, index), problems) for index, one in enumerate(written)]
        case dict():
            return {
                _normal(_text_of(key)): _plain(one, (*path, _text_of(key)), problems)
                for key, one in written.items()
            }
    problems.append(problem(path, f"cannot be {_kind(written)}"))
    return None


def _text_of(written: Any) -> str:
    """A scalar as text, as Terraform converts it; keys of YAML may be any scalar."""
    match written:
        case bool():
            return "true" if written else "false"
        case float() if not math.isfinite(written):
            return str(written)
        case int() | float() | Number():
            return numbers.digits_of(written)
    return str(written)


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _described(type_: CtyType) -> str:
    match type_:
        case "bool":
            return "true or false"
        case ["list" | "set" | "tuple", *_]:
            return "a list"
        case ["map" | "object", *_]:
            return "a mapping"
    return f"a {type_}"


def _kind(written: Any) -> str:
    match written:
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float() | Number():
            return "a number"
        case list() | tuple():
            return "a list"
        case dict():
            return "a mapping"
    return f"a {type(written).__name__}"
