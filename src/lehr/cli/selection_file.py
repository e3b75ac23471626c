"""Questions to target selection, in YAML, JSON or TOML."""

from __future__ import annotations

from collections.abc import Iterator

from lehr.base.diagnostics import Diagnostic, file_problem
from lehr.base.documents.document import Document
from lehr.base.pointers import pointer
from lehr.cli.typed_file import FileType, read_typed
from lehr.rollouts.question import Question, problems_of_question

_ABOUT = FileType(
    "ROL001", "a question", "write it like the example in docs/how-to/choose-what-is-updated-next.md"
)


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
