"""Questions to target selection, in YAML, JSON or TOML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from lehr.base.diagnostics import Diagnostic, file_problem
from lehr.base.documents.document import Document
from lehr.base.pointers import pointer
from lehr.cli.typed_file import FileType, read_typed
from lehr.generate.typing.problems import quoted
from lehr.rollouts import TargetSelection, Unit
from lehr.rollouts.waves import in_order

_ORDER = "write a CEL expression over `id` and `labels`, such as `labels.stage`"
_ABOUT = FileType(
    "ROL001", "a question", "write it like the example in docs/how-to/choose-what-is-updated-next.md"
)


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question to target selection.

    Attributes:
        now: in seconds since the epoch; None for the time at which it is asked.
    """

    units: tuple[Unit, ...]
    selection: TargetSelection = TargetSelection()
    now: float | None = None


def read_question(file: str, content: bytes) -> tuple[Question | None, list[Diagnostic]]:
    """The question in a file; None if it has a problem."""
    read, problems = read_typed(file, content, Question, _ABOUT)
    if read is None:
        return None, problems
    question, document = read
    problems = list(_problems(question, document))
    return (None if problems else question), problems


def _problems(question: Question, document: Document) -> Iterator[Diagnostic]:
    known = Counter(unit.id for unit in question.units)
    for number, unit in enumerate(question.units):
        at = document.position(pointer(("units", number)))
        if known[unit.id] > 1:
            what = f"there are {known[unit.id]} units {quoted(unit.id)}"
            yield file_problem("ROL001", at, what=what, fix="give each unit an id of its own")
        if unit.validated and not unit.updated:
            what = f"unit {quoted(unit.id)} is validated and not updated"
            yield file_problem("ROL001", at, what=what, fix="add `updated_at`, or remove `validated_at`")
    try:
        in_order(question.selection, question.units)
    except ValueError as error:
        at = document.position(pointer(("selection", "order")))
        yield file_problem("ROL002", at, what="the order cannot be used", why=str(error), fix=_ORDER)
