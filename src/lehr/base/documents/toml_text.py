"""TOML: the standard library's parser, held to the rules of the other formats."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from lehr.base.diagnostics import Diagnostic, Position, file_problem
from lehr.base.documents.document import Document, Documents, Lines, Places, end_of
from lehr.base.documents.text import (
    MAX_PROBLEMS,
    bad_number,
    bounded,
    number_problem,
    syntax_error,
    too_deep,
)
from lehr.base.documents.toml_nodes import first_too_deep, first_too_long, toml_nodes
from lehr.base.pointers import escaped

_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


_TWICE = ("Cannot overwrite a value", "Cannot declare")  # how the parser's messages start


def load_toml(file: str, content: bytes) -> Documents:
    """Load a TOML file that is known to be text."""
    text = content.decode()
    deep = first_too_deep(text)
    if deep is not None:
        return Documents((), (too_deep(Lines(file, text).at(deep)),))
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as err:
        return Documents((), (_syntax(file, text, str(err)),))
    except ValueError as err:  # Python converts no integer with that many digits
        number = first_too_long(text)
        if number is None:
            return Documents((), (_syntax(file, text, str(err)),))
        return Documents((), (bad_number(number.group(), Lines(file, text).at(number.start())),))
    document = Document(value, Places(file, text, toml_nodes))
    if _is_common(value):
        return Documents((document,))
    return Documents((), bounded(file, _value_problems(file, document)))


def _syntax(file: str, text: str, message: str) -> Diagnostic:
    where = _WHERE.search(message)
    at = end_of(file, text)
    if where is not None and where.group(1):
        at = Position(file, int(where.group(1)), int(where.group(2)))
    problem = message if where is None else message[: where.start()]
    if problem.startswith(_TWICE):
        return file_problem(
            "DOC005",
            at,
            what="a key or a table occurs again",
            why=f"one of the two would be lost; the parser reports: {problem}",
            fix="delete or rename one of them",
        )
    return syntax_error("TOML", problem, at)


def _is_common(value: Any) -> bool:
    """Whether all values are such as the other formats can hold. Needs no pointers."""
    rest = [value]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest.extend(value.values())
        elif isinstance(value, list):
            rest.extend(value)
        elif not isinstance(value, (str, int, float)) or (
            not isinstance(value, str) and number_problem(value) is not None
        ):
            return False
    return True


def _value_problems(file: str, document: Document) -> list[Diagnostic]:
    """Values that TOML can express and the other formats cannot. Depth is known to be bounded."""
    diagnostics: list[Diagnostic] = []
    rest: list[tuple[str, Any]] = [("", document.value)]
    while rest and len(diagnostics) <= MAX_PROBLEMS:
        pointer, value = rest.pop()
        if isinstance(value, dict):
            rest.extend((f"{pointer}/{escaped(key)}", inner) for key, inner in reversed(value.items()))
        elif isinstance(value, list):
            rest.extend((f"{pointer}/{index}", value[index]) for index in reversed(range(len(value))))
        elif isinstance(value, (str, bool)):
            continue
        elif isinstance(value, (int, float)):
            if number_problem(value) is not None:
                shown = str(value) if isinstance(value, float) else hex(value)
                diagnostics.append(bad_number(shown, document.position(pointer)))
        else:
            diagnostics.append(_date_problem(str(value), document.position(pointer)))
    return sorted(diagnostics, key=lambda item: item.at or Position(file))


def _date_problem(shown: str, at: Position) -> Diagnostic:
    return file_problem(
        "DOC012",
        at,
        what=f"the date or time {shown} is not quoted",
        why="the other formats have no dates, so payloads hold them as strings",
        fix="quote it",
    )
