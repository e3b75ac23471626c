"""Files with one value of a type, that a command is given: in YAML, JSON or TOML."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position, file_problem
from lehr.base.documents.document import Document
from lehr.generate.typing.problems import problems_of

T = TypeVar("T")


class FileType(NamedTuple):
    """How problems of a kind of file are reported.

    Attributes:
        code: of the diagnostics.
        name: of the value, with its article.
        fix: for a file that does not hold a mapping.
    """

    code: str
    name: str
    fix: str


def read_typed(
    file: str, content: bytes, kind: type[T], about: FileType
) -> tuple[tuple[T, Document] | None, list[Diagnostic]]:
    """The value in a file, and the document with its places; None if it has a problem."""
    loaded = documents.load(file, content)
    if loaded.diagnostics:
        return None, list(loaded.diagnostics)
    if len(loaded.documents) != 1 or not isinstance(loaded.documents[0].value, dict):
        return None, [
            file_problem(about.code, Position(file), what="it is not a single mapping", fix=about.fix)
        ]
    document = loaded.documents[0]
    problems = [
        file_problem(about.code, document.position(item.pointer), what=item.what, why=item.why, fix=item.fix)
        for item in problems_of(document.value, kind, about.name)
    ]
    return (None if problems else (msgspec.convert(document.value, kind), document)), problems
