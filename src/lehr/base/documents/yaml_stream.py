"""YAML: events of libyaml in, plain data out.

libyaml parses in C and hands over one event at a time, so nothing here recurses, and depth and
aliases are bounded while they appear. A PyYAML loader would build the same data more slowly, under
the rules of YAML 1.1, and would not report that a key occurs twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any

import yaml

from lehr.base.diagnostics import Diagnostic, Position, file_problem
from lehr.base.documents.document import Document, Documents, Places, end_of
from lehr.base.documents.scalars import Scalar, resolve
from lehr.base.documents.text import (
    MAX_DEPTH,
    MAX_PROBLEMS,
    bad_number,
    bounded,
    duplicate_key,
    separator_problem,
    shown,
    syntax_error,
    too_deep,
)
from lehr.base.documents.yaml_nodes import Event, Mark, events, yaml_nodes

_MAX_ALIASED = 1_000_000
"""How much aliases may add to a file: characters, and `_NODE` for each value."""
_NODE = 16

_DIRECTIVE = re.compile(rb"^%TAG[ \t]", re.MULTILINE)
_MAX_DIRECTIVES = 64  # libyaml compares each with all before it

_CORE = "tag:yaml.org,2002:"
_SCALAR_TAGS: dict[str, tuple[type, ...]] = {
    _CORE + "int": (int,),
    _CORE + "float": (int, float),
    _CORE + "bool": (bool,),
    _CORE + "null": (type(None),),
}
_COLLECTION_TAGS = {dict: (None, "!", _CORE + "map"), list: (None, "!", _CORE + "seq")}


class _StopError(Exception):
    """The rest of the file cannot be read; the diagnostic has been recorded."""


class _Frame:
    """A list or mapping whose end has not come yet."""

    __slots__ = ("anchor", "first", "key", "value", "weight")

    def __init__(self, value: list[Any] | dict[str, Any], anchor: str | None, weight: int) -> None:
        self.value = value
        self.anchor = anchor
        self.weight = weight
        self.key: str | None = None
        self.first: dict[str, int] = {}


class _Anchored:
    """A value that aliases can name; `weight` is None until its end is reached."""

    __slots__ = ("value", "weight")

    def __init__(self, value: Any, weight: int | None) -> None:
        self.value = value
        self.weight = weight


def load_yaml(file: str, content: bytes) -> Documents:
    """Load every document of a YAML file that is known to be text."""
    problem = separator_problem(file, content) or _directive_problem(file, content)
    if problem is not None:
        return Documents((), (problem,))
    construction = _Construction(file, content.decode())
    try:
        for event in events(content):
            construction.take(event)
            if len(construction.diagnostics) > MAX_PROBLEMS:
                break
    except yaml.YAMLError as err:
        construction.diagnostics.append(_syntax(file, construction.position, err))
    except _StopError:
        pass
    return Documents(tuple(construction.documents), bounded(file, construction.diagnostics))


class _Construction:
    """Builds documents from events, and collects problems in them."""

    def __init__(self, file: str, text: str) -> None:
        self.documents: list[Document] = []
        self.diagnostics: list[Diagnostic] = []
        self._places = Places(file, text, yaml_nodes)
        self._file = file
        self._text = text
        self._last = text.count("\n")
        self._ordinal = 0
        self._aliased = 0
        self._begin_document()
        self._steps: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._mapping,
            yaml.SequenceStartEvent: self._sequence,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentEndEvent: self._end_document,
        }

    def take(self, event: Any) -> None:
        """Process the next event."""
        step = self._steps.get(type(event))
        if step is not None:
            step(event)

    def _begin_document(self) -> None:
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._weight = 0
        self._root: Any = None
        self._problems_before = len(self.diagnostics)

    def _end_document(self, event: Any) -> None:
        if len(self.diagnostics) == self._problems_before:
            self.documents.append(Document(self._root, self._places, self._ordinal))
        self._ordinal += 1
        self._begin_document()

    def _scalar(self, event: Event) -> None:
        self._weight += _NODE + len(event.value)
        mark = event.start_mark
        value = self._meaning(event, mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, _NODE + len(event.value))
        if self._frames and event.value == "<<" and event.style == "" and self._expects_key():
            self._report_merge_key(mark)
        self._add(value, event.value, mark)

    def _meaning(self, event: Event, mark: Mark) -> Scalar:
        tag, text = event.tag, event.value
        if tag is None and not event.implicit[0]:
            return text  # quoted, or a block
        if tag in {"!", _CORE + "str"}:
            return text
        try:
            value = resolve(text)
        except ValueError:
            self.diagnostics.append(bad_number(text, self.position(mark)))
            return None
        if tag is None:
            return value
        if type(value) not in _SCALAR_TAGS.get(tag, ()):
            self._report_tag(tag, mark)
        elif tag == _CORE + "float":
            return float(value)  # type: ignore[arg-type]
        return value

    def _mapping(self, event: Event) -> None:
        self._begin({}, event)

    def _sequence(self, event: Event) -> None:
        self._begin([], event)

    def _begin(self, value: list[Any] | dict[str, Any], event: Event) -> None:
        mark = event.start_mark
        if len(self._frames) == MAX_DEPTH:
            self.diagnostics.append(too_deep(self.position(mark)))
            raise _StopError
        if event.tag not in _COLLECTION_TAGS[type(value)]:
            self._report_tag(event.tag, mark)
        self._add(value, "", mark)
        self._frames.append(_Frame(value, event.anchor, self._weight))
        self._weight += _NODE
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, None)

    def _end(self, event: Any) -> None:
        frame = self._frames.pop()
        if frame.anchor is not None:
            anchored = self._anchors[frame.anchor]
            if anchored.value is frame.value:  # the name may have been given again inside
                anchored.weight = self._weight - frame.weight

    def _alias(self, event: Event) -> None:
        mark = event.start_mark
        anchored = self._anchors.get(event.anchor)
        if anchored is None or anchored.weight is None:
            self._report_alias(event.anchor, mark, itself=anchored is not None)
            self._add(None, f"*{event.anchor}", mark, reported=True)
            return
        self._weight += anchored.weight
        self._aliased += anchored.weight
        if self._aliased > _MAX_ALIASED:
            self._report_bomb(mark)
            raise _StopError
        self._add(anchored.value, f"*{event.anchor}", mark)

    def _expects_key(self) -> bool:
        frame = self._frames[-1]
        return type(frame.value) is dict and frame.key is None

    def _add(self, value: Any, text: str, mark: Mark, *, reported: bool = False) -> None:
        """Put `value`, spelt `text`, where the innermost open list or mapping expects it."""
        if not self._frames:
            self._root = value
            return
        frame = self._frames[-1]
        if type(frame.value) is list:
            frame.value.append(value)
        elif frame.key is not None:
            frame.value[frame.key] = value  # type: ignore[call-overload]
            frame.key = None
        elif type(value) is str:
            self._add_key(frame, value, mark)
        else:
            frame.key = text
            if not reported:
                self._report_key(text, mark)

    def _add_key(self, frame: _Frame, key: str, mark: Mark) -> None:
        frame.key = key
        if key in frame.first:
            self.diagnostics.append(duplicate_key(key, frame.first[key], self.position(mark)))
        else:
            frame.first[key] = mark.line + 1

    def position(self, mark: Mark) -> Position:
        """The position of a mark: libyaml ends the last line itself where the file does not."""
        if mark.line > self._last:
            return end_of(self._file, self._text)
        return Position(self._file, mark.line + 1, mark.column + 1)

    def _report(self, code: str, what: str, why: str, fix: str, mark: Mark) -> None:
        self.diagnostics.append(file_problem(code, self.position(mark), what=what, why=why, fix=fix))

    def _report_key(self, text: str, mark: Mark) -> None:
        text = shown(text)
        what = f"the key {text} is not a string" if text else "a key is not a string"
        fix = f'quote it: "{text}"' if text else "use a string as the key"
        self._report("DOC006", what, "keys are strings in every format that Lehr reads", fix, mark)

    def _report_merge_key(self, mark: Mark) -> None:
        self._report(
            "DOC010",
            "the merge key << is not supported",
            "YAML 1.2 does not have it, and its overrides are easily misread",
            "write the entries out, or create them in a generator",
            mark,
        )

    def _report_tag(self, tag: str | None, mark: Mark) -> None:
        self._report(
            "DOC009",
            f"the tag {shown((tag or '!').replace(_CORE, '!!'))} does not belong here",
            "only the tags of YAML's core schema are known, on values that fit them",
            "remove the tag",
            mark,
        )

    def _report_alias(self, anchor: str, mark: Mark, *, itself: bool) -> None:
        anchor = shown(anchor)
        if itself:
            what, why = f"the alias *{anchor} is inside the value that it refers to", "it would never end"
        else:
            what, why = f"the alias *{anchor} refers to nothing", f"there is no anchor &{anchor} before it"
        self._report("DOC008", what, why, "write the value out, or refer to another anchor", mark)

    def _report_bomb(self, mark: Mark) -> None:
        self._report(
            "DOC008",
            "the aliases of this file expand to too much",
            f"together they expand to more than {_MAX_ALIASED:,} characters",
            "write the values out, or create them in a generator",
            mark,
        )


def _directive_problem(file: str, content: bytes) -> Diagnostic | None:
    found = next(islice(_DIRECTIVE.finditer(content), _MAX_DIRECTIVES, None), None)
    if found is None:
        return None
    return file_problem(
        "DOC009",
        Position(file, content.count(b"\n", 0, found.start()) + 1, 1),
        what=f"the file has more than {_MAX_DIRECTIVES} directives for tags",
        why="only the tags of YAML's core schema are known, so it needs none",
        fix="delete the lines that begin with %TAG",
    )


def _syntax(file: str, position: Callable[[Mark], Position], err: yaml.YAMLError) -> Diagnostic:
    mark = getattr(err, "problem_mark", None) or getattr(err, "context_mark", None)
    problem = getattr(err, "problem", None) or getattr(err, "reason", None) or "it cannot be parsed"
    context = getattr(err, "context", None)
    at = Position(file) if mark is None else position(mark)
    began = getattr(err, "context_mark", None)
    why = ""
    if context:
        why = str(context) + (f" that begins in line {position(began).line}" if began is not None else "")
    if "cannot start any token" in str(problem):
        problem = f"{problem} (a tab used to indent, or one of @ ` % at the start of an unquoted text)"
    return syntax_error("YAML", str(problem), at, why=why)
