"""All the ways in which plain data does not fit a type, each with its place.

msgspec is fast and stops at the first error, so it decides; if it rejects a value, a JSON schema of the same
type lists all problems.
"""

from __future__ import annotations

import difflib
import functools
import itertools
import json
import re
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, cast

import jsonschema_rs
import msgspec

from lehr.base.digest import canonical
from lehr.base.documents import MAX_PROBLEMS
from lehr.base.pointers import pointer
from lehr.generate.typing.schema_cost import MOST_LOOKS, looks, pattern_bytes
from lehr.model.types import Schema

_SHOWN = 60
_MOST_OPTIONS = 20
_LARGE = 1_000_000  # bytes
_LARGEST_PATTERN = 1 << 20  # bytes of the compiled program
_SMALLEST_PATTERN = 1 << 10
_MOST_MATCHING = 30_000_000_000
"""Bytes of a value times bytes of the patterns that each is matched against: about a second of work."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
NAMES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "boolean": "true or false",
    "null": "null",
}
"""Names in messages for the kinds of values in JSON schemas."""


class Problem(msgspec.Struct, frozen=True):
    """One problem.

    Attributes:
        pointer: JSON pointer to it, or to the value that should contain it.
    """

    pointer: str
    what: str
    why: str = ""
    fix: str = ""


def problems_of(value: Any, kind: Any, of: str = "") -> list[Problem]:
    """Everything that prevents converting plain data `value` to `kind`; empty if nothing does.

    Args:
        of: name of the type in messages (`lehr.Process`).
    """
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as err:
        return _listed(value, kind, of) or [_from_message(str(err), of)]
    except RecursionError:
        return [Problem("", "it is nested too deeply", fix="reduce the nesting")]
    return []


def unknown_field(path: Sequence[str | int], name: str, known: Sequence[str], of: str) -> Problem:
    """The problem of an unknown field at `path`, where the fields in `known` exist.

    Args:
        of: name of the type of the whole value, if it has one.
    """
    inside = " of ".join(filter(None, (f"`{_cut(dotted(path))}`" if path else "", of)))
    fix = did_you_mean(name, known, f"its fields: {', '.join(known)}" if known else "delete it")
    what = f"unknown field {quoted(name)}" + (f" in {inside}" if inside else "")
    return Problem(pointer((*path, name)), what, fix=fix)


def did_you_mean(text: str, known: Iterable[str], otherwise: str) -> str:
    """Advice that suggests the entries of `known` closest to `text`, or else `otherwise`."""
    names = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(text.casefold(), list(names), n=1, cutoff=0.5)
    return f"did you mean `{names[close[0]]}`?" if close else otherwise


class _Declared(NamedTuple):
    """Validator for values of a declared type.

    Attributes:
        pattern_bytes: as returned by `lehr.generate.typing.schema_cost.pattern_bytes`.
    """

    validator: Any
    pattern_bytes: int


_declared: weakref.WeakKeyDictionary[Schema, _Declared] = weakref.WeakKeyDictionary()


def unusable(document: Any) -> list[Problem]:
    """Everything that makes a JSON schema unusable, each by JSON pointer into it."""
    named = document.get("$schema", _DRAFT) if isinstance(document, dict) else _DRAFT
    if named not in (_DRAFT, _DRAFT + "#"):  # the library would download it
        return [Problem("/$schema", f"its $schema is {show(named)}, but only {_DRAFT} is supported")]
    try:
        size = len(canonical(document))
        found = _first(_unusable(error) for error in _errors(_meta_schema(), document, size))
        if not found and isinstance(document, dict) and looks(document) > MOST_LOOKS:
            raise RecursionError
        if not found:
            _validator(document)
    except RecursionError:
        return [
            Problem(
                "",
                "its parts refer to each other in such a way that a value would be checked more than "
                f"{MOST_LOOKS:,} times",
            )
        ]
    except jsonschema_rs.ValidationError as error:
        return [_unusable_pattern(error) or _unusable(error)]
    except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
        return [Problem("", _first_line(str(error)))]
    return found


def _unusable(error: Any) -> Problem:
    return Problem(pointer(error.instance_path), _first_line(str(error)))


def _unusable_pattern(error: Any) -> Problem | None:
    """Why a pattern that other engines may accept is refused; None if the schema has another problem."""
    pattern, at = error.instance, pointer(error.instance_path)
    if not isinstance(pattern, str) or "pattern" not in at:
        return None
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern})
    except (jsonschema_rs.ValidationError, ValueError):
        return None
    if _compiles(pattern, 1 << 30):
        return Problem(
            at,
            f"its pattern {quoted(pattern)} is too large with all its repetitions",
            fix="bound the length with `minLength` and `maxLength`, and write `+` or `*` in the pattern",
        )
    return Problem(
        at,
        f"its pattern {quoted(pattern)} uses look-around or a back-reference, which can take very long",
        fix="write it without `(?=`, `(?!`, `(?<=`, `(?<!` and `\\1`: under `allOf` several patterns must "
        "match, and under `not` none may",
    )


def _compiles(pattern: str, size: int) -> bool:
    try:
        _validator({"pattern": pattern}, size)
    except (jsonschema_rs.ValidationError, ValueError):
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _pattern_size(pattern: str) -> int:
    """Bytes of its compiled program, rounded up to a power of two."""
    size = _SMALLEST_PATTERN
    while size < _LARGEST_PATTERN and not _compiles(pattern, size):
        size *= 2
    return size


def _first_line(text: str) -> str:
    return _short_message(text.partition("\n")[0])


@functools.cache
def _meta_schema() -> Any:
    """Validator for schemas, like `jsonschema_rs.meta`, which stops at the first problem."""
    return jsonschema_rs.Draft202012Validator({"$ref": _DRAFT}, validate_formats=True)


def schema_problems(value: Any, schema: Schema, of: str = "") -> list[Problem]:
    """Everything that prevents plain data `value` from fitting a declared type, called `of` in messages."""
    known = _declared.get(schema)
    if known is None:
        patterns = pattern_bytes(schema.document, _pattern_size)
        known = _declared[schema] = _Declared(_validator(schema.document), patterns)
    document, size = dict(schema.document), len(canonical(value))
    if known.pattern_bytes * size > _MOST_MATCHING:
        return [_too_much_matching(size)]
    errors = _errors(known.validator, value, size)
    return _first(item for error in errors for item in _explain(error, document, (), of))


def _too_much_matching(size: int) -> Problem:
    return Problem(
        "",
        f"it has {size:,} bytes, too many to match against the patterns of its type",
        "the time that a match takes grows with the value and with the pattern",
        "split the value; or use `maxLength` in the type instead of counted repetitions in its patterns",
    )


def _errors(validator: Any, value: Any, size: int) -> Iterable[Any]:
    """Problems of `value`; only the first if it is large, because the library lists all at once."""
    if size <= _LARGE:
        return cast("Iterable[Any]", validator.iter_errors(value))
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        return [error]
    return []


def _first(problems: Iterator[Problem]) -> list[Problem]:
    """As many as are reported for one file, plus one, which shows that there are more."""
    return list(itertools.islice(problems, MAX_PROBLEMS + 1))


def _validator(document: Any, largest_pattern: int = _LARGEST_PATTERN) -> Any:
    """Validator for a schema of a workspace, which accepts only patterns with linear-time matching."""
    return jsonschema_rs.Draft202012Validator(
        document,
        retriever=_no_retrieval,
        validate_formats=True,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=largest_pattern),
    )


def _no_retrieval(uri: str) -> NoReturn:
    raise ValueError(f"it refers to {uri}, but nothing is downloaded while types are read")


@functools.lru_cache(maxsize=256)
def _schema(kind: Any) -> tuple[dict[str, Any], Any] | None:
    try:
        # This validator accepts what a schema cannot describe: msgspec decides.
        schema = _understood(msgspec.json.schema(kind, schema_hook=lambda unknown: {}))
        return schema, jsonschema_rs.Draft202012Validator(schema)
    except (TypeError, ValueError, NameError):  # a type that JSON schema cannot describe
        return None


def _understood(schema: Any) -> Any:
    """`schema` without patterns that only Python supports: one of them would hide all other problems."""
    if isinstance(schema, list):
        return [_understood(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _understood(item)
        for key, item in schema.items()
        if key != "pattern" or not isinstance(item, str) or _is_pattern(item)
    }


def _is_pattern(text: str) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": text})
    except jsonschema_rs.ValidationError:
        return False
    return True


def _listed(value: Any, kind: Any, of: str) -> list[Problem]:
    known = _schema(kind)
    if known is None:
        return []
    schema, validator = known
    try:
        errors = _errors(validator, value, len(canonical(value)))
        return _first(item for error in errors for item in _explain(error, schema, (), of))
    except (ValueError, TypeError, RecursionError):  # not JSON; msgspec has reported the problem
        return []


def _explain(error: Any, schema: dict[str, Any], base: tuple[str | int, ...], of: str) -> Iterator[Problem]:
    path = (*base, *error.instance_path)
    at = pointer(path)
    field = f"`{_cut(dotted(path))}`" if path else "it"
    kind = error.kind
    match kind.name:
        case "required":
            yield Problem(
                at, f"`{_cut(dotted((*path, kind.property)))}` is missing", fix=f"add `{kind.property}`"
            )
        case "additionalProperties":
            fields = list(_parent(schema, error.schema_path).get("properties", ()))
            for name in kind.unexpected:
                yield unknown_field(path, name, fields, of)
        case "type":
            wanted = " or ".join(NAMES.get(item, item) for item in kind.types)
            yield Problem(
                at, f"{field} is {show(error.instance)}, not {wanted}", fix=_as(wanted, error.instance)
            )
        case "enum":
            what = f"{field} is {show(error.instance)}, not {_one_of(kind.options)}"
            texts = [item for item in kind.options if isinstance(item, str)]
            fix = did_you_mean(error.instance, texts, "") if isinstance(error.instance, str) else ""
            yield Problem(at, what, fix=fix)
        case "anyOf":
            yield from _any_of(error, schema, path, of)
        case "minimum" | "maximum":
            yield Problem(at, f"{field}: {_cut(error.message)}", fix=_within(kind))
        case "exclusiveMinimum" | "exclusiveMaximum":
            yield Problem(
                at, f"{field}: {error.instance} is not {_BOUNDS[kind.name]} {kind.limit}", fix=_within(kind)
            )
        case _:
            yield Problem(at, f"{field}: {_cut(error.message)}")


_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "greater than",
    "exclusiveMaximum": "less than",
}


def _within(kind: Any) -> str:
    """Advice to keep to a bound."""
    return f"write a number that is {_BOUNDS[kind.name]} {kind.limit}"


def _as(wanted: str, value: Any) -> str:
    """Advice to write `wanted` instead of `value`."""
    return (
        "put it in quotes"
        if wanted == NAMES["string"] and isinstance(value, int | float)
        else f"write {wanted}"
    )


def _any_of(error: Any, schema: dict[str, Any], path: tuple[str | int, ...], of: str) -> Iterator[Problem]:
    branches = [branch for branch in error.kind.context if not _only_null(branch)]
    depth = len(error.instance_path)
    meant = [branch for branch in branches if len(branches) == 1 or not _another_kind(branch, depth)]
    if len(meant) == 1:
        for inner in meant[0]:
            yield from _explain(inner, schema, path[: len(path) - depth], of)
        return
    wanted: list[str] = []
    for inner in itertools.chain.from_iterable(branches):
        if inner.kind.name == "type":
            wanted += [NAMES.get(item, item) for item in inner.kind.types]
        elif inner.kind.name == "enum":
            wanted.append(_one_of(inner.kind.options))
    either = " or ".join(dict.fromkeys(wanted)) or "any of its allowed forms"
    field = f"`{_cut(dotted(path))}`" if path else "it"
    yield Problem(pointer(path), f"{field} is {show(error.instance)}, which is not {either}")


def _only_null(branch: Sequence[Any]) -> bool:
    return len(branch) == 1 and branch[0].kind.name == "type" and list(branch[0].kind.types) == ["null"]


def _another_kind(branch: Sequence[Any], depth: int) -> bool:
    """Whether the value, `depth` steps from the top, is of another kind than this branch of `anyOf`."""
    return any(len(inner.instance_path) == depth and inner.kind.name in {"type", "enum"} for inner in branch)


def _one_of(options: Sequence[Any]) -> str:
    """The values that may be written, for a message."""
    shown = [quoted(item) if isinstance(item, str) else json.dumps(item) for item in options]
    listed = f"{', '.join(shown[:_MOST_OPTIONS])}" + (", ..." if len(shown) > _MOST_OPTIONS else "")
    return listed if len(shown) == 1 else f"one of {listed}"


def _parent(schema: Any, path: Sequence[str | int]) -> dict[str, Any]:
    """The sub-schema whose keyword `path` ends in; empty if it cannot be found."""
    for part in path[:-1]:
        try:
            schema = schema[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return schema if isinstance(schema, dict) else {}


def dotted(path: Sequence[str | int]) -> str:
    """Keys and indexes as people write them: `ports[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def show(value: Any) -> str:
    """`value` for a message: its kind, and the value itself if it is short."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the {'string' if isinstance(value, str) else 'number'} {_short(repr(value))}"


def quoted(text: str) -> str:
    """`text` in backquotes for a message: bounded, and with control characters made visible."""
    return f"`{_short(repr(text)[1:-1])}`"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _cut(text: str) -> str:
    """`text`, with its middle cut if it is long: the problem is at the end."""
    return text if len(text) <= 2 * _SHOWN else f"{text[: _SHOWN // 2]}...{text[-_SHOWN:]}"


_MESSAGE = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def _from_message(message: str, of: str) -> Problem:
    """Parse one message of msgspec (``Expected `int` - at `$.ports[0]` ``)."""
    found = _MESSAGE.fullmatch(message)
    assert found is not None  # the pattern matches any text
    steps = [name or int(index) for name, index in _STEP.findall(found["path"] or "")]
    if unknown := _UNKNOWN.fullmatch(found["what"]):
        return unknown_field(steps, unknown["name"], (), of)
    what = _short_message(found["what"])
    return Problem(pointer(steps), f"`{_cut(dotted(steps))}`: {what}" if steps else what)


def _short_message(text: str) -> str:
    return text if len(text) <= 300 else text[:297] + "..."
