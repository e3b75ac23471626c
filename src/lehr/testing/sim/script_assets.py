"""The text below `commit` and `file`: assets in the short form, and whole files.

web: value 1, depends on db cache
launch: lehr.Freeze
    select: {all: true}
    reason: launch
old: turndown after 1m fence 2m
gone: let go
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import yaml

from lehr.base import documents
from lehr.model.addons import DEPENDS_ON, LABELS, TURNDOWN
from lehr.model.asset import id_problem
from lehr.testing.sim.script_arguments import seconds_of
from lehr.testing.sim.script_commands import Line, Misuse
from lehr.testing.world import THING

_HEAD = re.compile(r"(?P<id>[^\s:]+(?::[^\s:]+)*):(?:\s+(?P<clauses>.*))?")
_TYPE = re.compile(r"[A-Za-z][\w-]*(\.[A-Za-z][\w-]*)*\.[A-Z]\w*")


class Entry(msgspec.Struct):
    """A commit's entry for one asset.

    Attributes:
        payload: fields in YAML below it, or of the short form.
        gone: its file is taken out.
        let_go: ... and Lehr no longer manages it.
    """

    id: str
    type: str = THING
    payload: dict[str, Any] = msgspec.field(default_factory=dict)
    addons: dict[str, Any] = msgspec.field(default_factory=dict)
    gone: bool = False
    let_go: bool = False

    def text(self) -> bytes:
        """Its file."""
        document = {"id": self.id, "type": self.type, "payload": self.payload}
        if self.addons:
            document["addons"] = self.addons
        return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100).encode()

    def depends(self) -> dict[str, Any]:
        """The addon for the order in which it is pushed."""
        addon: dict[str, Any] = self.addons.setdefault(DEPENDS_ON, {})
        return addon


Meaning = Callable[[Entry, re.Match[str]], object]
"""The effect of a clause."""


def _turndown(entry: Entry, found: re.Match[str]) -> None:
    addon: dict[str, Any] = {"reason": found["reason"] or "not needed any more"}
    for field, text in (("stand_seconds", found["after"]), ("fence_seconds", found["fence"])):
        if text is not None:
            addon[field] = seconds_of(text)
    entry.addons[TURNDOWN] = addon


def _needs(entry: Entry, found: re.Match[str]) -> None:
    needed = {"asset": found["id"], "at_least": found["version"]}
    entry.depends().setdefault("versions", []).append(needed)


def _let_go(entry: Entry, found: re.Match[str]) -> None:
    entry.gone = entry.let_go = True


def _label(entry: Entry, found: re.Match[str]) -> None:
    entry.addons.setdefault(LABELS, {"labels": {}})["labels"][found["key"]] = found["value"]


def _ids(field: str, place: Callable[[Entry], dict[str, Any]]) -> Meaning:
    return lambda entry, found: place(entry).update({field: found["ids"].split()})


_CLAUSES: tuple[tuple[str, str, Meaning], ...] = (
    ("value TEXT", r"value (?P<value>\S.*)", lambda entry, found: entry.payload.update(value=found["value"])),
    ("reads ID...", r"reads (?P<ids>\S.*)", _ids("reads", lambda entry: entry.payload)),
    ("versioned", r"versioned", lambda entry, found: entry.payload.update(versioned=True)),
    ("destroys", r"destroys", lambda entry, found: entry.payload.update(destroys=True)),
    ("depends on ID...", r"depends on (?P<ids>\S.*)", _ids("assets", Entry.depends)),
    ("sends to ID...", r"sends to (?P<ids>\S.*)", _ids("capacity", Entry.depends)),
    ("needs ID at least VERSION", r"needs (?P<id>\S+) at least (?P<version>\S+)", _needs),
    ("label KEY=VALUE", r"label (?P<key>[^\s=]+)=(?P<value>\S+)", _label),
    (
        "turndown [after TIME] [fence TIME] [because REASON]",
        r"turndown(?: after (?P<after>\S+))?(?: fence (?P<fence>\S+))?(?: because (?P<reason>\S.*))?",
        _turndown,
    ),
    ("gone", r"gone", lambda entry, found: setattr(entry, "gone", True)),
    ("let go", r"let go", _let_go),
)
"""How each clause is written, its expression, and its effect."""

CLAUSES = tuple(usage for usage, _expression, _meaning in _CLAUSES)
"""How each clause is written, for the reference."""


def read_entries(lines: Sequence[Line]) -> tuple[list[Entry], list[Misuse]]:
    """The entries of a commit, and everything that is wrong with it."""
    entries: list[Entry] = []
    misuses: list[Misuse] = []
    told = [line for line in lines if line.text.strip() and not line.text.lstrip().startswith("#")]
    margin = min((line.indent for line in told), default=0)
    heads = [index for index, line in enumerate(told) if line.indent == margin]
    for index, end in itertools.pairwise([*heads, len(told)]):
        entry = _entry(told[index], misuses)
        if entry is not None:
            _below(entry, told[index + 1 : end], misuses)
            entries.append(entry)
    return entries, misuses


def read_text(lines: Sequence[Line]) -> tuple[bytes, list[Misuse]]:
    """A file without its indentation."""
    text = textwrap.dedent("\n".join(line.text for line in lines))
    return f"{text}\n".encode(), []


def _entry(line: Line, misuses: list[Misuse]) -> Entry | None:
    start = line.indent
    found = _HEAD.fullmatch(line.text.lstrip())
    if found is None or id_problem(found["id"]):
        why = id_problem(found["id"]) if found else "it is written `ID: CLAUSE, CLAUSE`"
        misuses.append(Misuse(line, start, "this declares no asset", str(why)))
        return None
    entry = Entry(found["id"])
    column = start + (found.start("clauses") if found["clauses"] else 0)
    for clause in (found["clauses"] or "").split(", "):
        if clause.strip():
            _take(entry, clause.strip(), line, column, misuses)
        column += len(clause) + 2
    return entry


def _take(entry: Entry, clause: str, line: Line, column: int, misuses: list[Misuse]) -> None:
    if _TYPE.fullmatch(clause):
        entry.type = clause
        return
    for usage, expression, meaning in _CLAUSES:
        found = re.fullmatch(expression, clause)
        if found is None:
            continue
        try:
            meaning(entry, found)
        except ValueError as error:
            misuses.append(Misuse(line, column, str(error), f"write `{usage}`"))
        return
    known = ", ".join(f"`{usage}`" for usage in CLAUSES)
    misuses.append(Misuse(line, column, f"`{clause}` cannot be understood", f"write a type, or {known}"))


def _below(entry: Entry, lines: Sequence[Line], misuses: list[Misuse]) -> None:
    """Take the fields of the payload that are below an asset in YAML."""
    if not lines:
        return
    # Empty lines before it make the loader count lines as the script does.
    text = "\n" * (lines[0].number - 1)
    number = lines[0].number
    for line in lines:
        text += "\n" * (line.number - number) + line.text
        number = line.number
    loaded = documents.load("payload.yaml", text.encode())
    for item in loaded.diagnostics:
        at = item.at.line if item.at is not None else lines[0].number
        line = next((line for line in lines if line.number == at), lines[-1])
        column = max((item.at.column if item.at is not None else 1) - 1, 0)
        misuses.append(Misuse(line, column, item.what, item.fix or "fix it here"))
    if loaded.diagnostics:
        return
    value = loaded.documents[0].value if loaded.documents else {}
    if isinstance(value, dict):
        entry.payload.update(value)
    else:
        misuses.append(
            Misuse(lines[0], lines[0].indent, "this is not a payload", "write its fields: `reason: x`")
        )
