"""Questions to target selection, in YAML, JSON or TOML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from lehr.base.diagnostics import Diagnostic, file_problem
from lehr.base.documents.document import Document
from lehr.base.pointers import pointer
from lehr.cli.typed_file import FileType, read_typed
from lehr.generate.typing.problems import problems_of
from lehr.rollouts.question import Question, problems_of_question
from lehr.rollouts.units import Amount, Seconds, Unit

_ABOUT = FileType(
    "ROL001", "a question", "write it like the example in docs/how-to/choose-what-is-updated-next.md"
)


class ServiceLimits(msgspec.Struct, frozen=True):
    """The settings of a selection that mean the same for all of them."""

    at_most: Amount | None = None
    new: Literal["in_wave", "after_first_pass"] = "in_wave"


class ServiceQuestion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to a service, which interprets all other settings itself."""

    units: tuple[Unit, ...]
    selection: dict[str, Any] = {}
    now: Seconds | None = None

    @property
    def limits(self) -> ServiceLimits:
        return msgspec.convert(self.selection, ServiceLimits)

    @property
    def settings(self) -> dict[str, Any]:
        """Those that are its own."""
        limits = ServiceLimits.__struct_fields__
        return {name: value for name, value in self.selection.items() if name not in limits}


def read_service_question(file: str, content: bytes) -> tuple[ServiceQuestion | None, list[Diagnostic]]:
    """The question in a file, for a service; None if it has a problem."""
    read, problems = read_typed(file, content, ServiceQuestion, _ABOUT)
    if read is None:
        return None, problems
    question, document = read
    problems = [
        file_problem(
            "ROL001",
            document.position(f"/selection{item.pointer}"),
            what=item.what,
            why=item.why,
            fix=item.fix,
        )
        for item in problems_of(question.selection, ServiceLimits, "a selection")
    ]
    problems += _problems(Question(question.units), document)
    return (None if problems else question), problems


def read_question(file: str, content: bytes) -> tuple[Question | None, list[Diagnostic]]:
    """The question in a file; None if it has a problem."""
    read, problems = read_typed(file, content, Question, _ABOUT)
    if read is None:
        return None, problems
    question, document = read
    problems = list(_problems(question, document))
    return (None if problems else question), problems


def _problems(question: Question, document: Document) -> Iterator[Diagnostic]:
    for item in problems_of_question(question):
        at = document.position(pointer(item.path))
        code = "ROL002" if item.of_order else "ROL001"
        yield file_problem(code, at, what=item.what, why=item.why, fix=item.fix)
