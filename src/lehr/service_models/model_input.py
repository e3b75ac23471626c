"""Reads a service model's file, and finds all its problems at once."""

from __future__ import annotations

import difflib
import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.documents import Document, load
from lehr.base.pointers import escaped
from lehr.sdk.generator import SourceFile, UnreadableFileError

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


T = TypeVar("T", bound=msgspec.Struct)

PAGE = "docs/reference/models.md"


class InputProblem(NamedTuple):
    """A problem in a file.

    Attributes:
        pointer: JSON pointer to it, or to what should have held it.
    """

    pointer: str
    what: str
    fix: str = f"see {PAGE} for the format"


def document_of(file: SourceFile) -> Document:
    """The one document in `file`, whose extension selects YAML, JSON or TOML.

    Raises:
        UnreadableFileError: it is in none of these formats.
        ValueError: there are several, or none.
    """
    loaded = load(file.path, file.bytes())
    if loaded.diagnostics:
        raise UnreadableFileError(loaded.diagnostics)
    if len(loaded.documents) != 1:
        raise ValueError(f"{file.path} contains {len(loaded.documents)} documents, not one")
    return loaded.documents[0]


def read(file: SourceFile, kind: type[T], noun: str) -> T:
    """The content of `file`, as a `kind`.

    Args:
        noun: what the file should describe, with its article.

    Raises:
        UnreadableFileError: it does not; has all problems, with their positions.
    """
    value = document_of(file).value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = list(_problems(value, kind, "")) or [InputProblem("", _message(error))]
        raise refused(file, noun, found) from error


def refused(file: SourceFile, noun: str, problems: list[InputProblem]) -> UnreadableFileError:
    """The error for a file that does not describe `noun`."""
    document = document_of(file)
    return UnreadableFileError(
        [
            Diagnostic(
                code="GEN034",
                what=f"{file.path} does not describe {noun}: {problem.what}",
                why=f"at {problem.pointer or 'the top'}, which a service model reads",
                fix=problem.fix,
                subject=file.path,
                at=document.position(problem.pointer),
            )
            for problem in problems
        ]
    )


def _message(error: msgspec.ValidationError) -> str:
    return str(error).partition(" - at `")[0]


def _problems(value: Any, kind: Any, pointer: str) -> Iterator[InputProblem]:
    """All problems of the parts of `value`; that of the whole only if the parts have none."""
    inner = list(_of_parts(value, _bare(kind), pointer))
    if inner:
        yield from inner
        return
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        yield InputProblem(pointer, _message(error))


def _of_parts(value: Any, kind: Any, pointer: str) -> Iterator[InputProblem]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, Mapping):
        yield from _of_fields(value, kind, pointer)
    elif typing.get_origin(kind) is dict and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _problems(item, typing.get_args(kind)[1], f"{pointer}/{escaped(name)}")
    elif typing.get_origin(kind) is list and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _problems(item, typing.get_args(kind)[0], f"{pointer}/{index}")


def _of_fields(value: Mapping[str, Any], kind: type[msgspec.Struct], pointer: str) -> Iterator[InputProblem]:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    hints = typing.get_type_hints(kind, include_extras=True)
    meant = set()
    for name, item in value.items():
        place = f"{pointer}/{escaped(name)}"
        if name in fields:
            yield from _problems(item, hints[fields[name].name], place)
            continue
        close = difflib.get_close_matches(name, [known for known in fields if known not in value], n=1)
        meant.update(close)
        fix = f"did you mean `{close[0]}`?" if close else f"fields: {', '.join(fields)}"
        yield InputProblem(place, f"unknown field `{name}`", fix)
    for name, field in fields.items():
        if field.required and name not in value and name not in meant:
            yield InputProblem(pointer, f"`{name}` is missing", f"add `{name}`; see {PAGE}")


def _bare(kind: Any) -> Any:
    """`kind` without its annotations, and without None."""
    if typing.get_origin(kind) is Annotated:
        return _bare(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        kinds = [item for item in typing.get_args(kind) if item is not type(None)]
        return _bare(kinds[0]) if len(kinds) == 1 else kind
    return kind
