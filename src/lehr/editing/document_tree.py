"""Follows a path into a document, in its data and its text at the same time."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic
from lehr.base.digest import canonical
from lehr.base.documents import Document
from lehr.base.documents.nodes import Node
from lehr.base.pointers import pointer
from lehr.editing.paths import Match, Name, Step, quoted, spelt

_SHOWN = 8


class Spot(msgspec.Struct):
    """The target of a path.

    Attributes:
        holders: the nodes that contain it, outermost first, each with the number of its entry.
        keys: the path to it in the plain data.
        node, value: the node and value there.
    """

    holders: list[tuple[Node, int]]
    keys: list[str | int]
    node: Node
    value: Any


class PathError(Exception):
    """A path has no target, or one that cannot be changed."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.what)
        self.diagnostic = diagnostic


class Tree:
    """The documents of a file, and their text."""

    def __init__(self, file: str, documents: Sequence[Document], nodes: list[Node]) -> None:
        self._file = file
        self._documents = documents
        self.values = [document.value for document in documents]
        whole = Node.holder("documents", 0, 0, False)
        for node in nodes:
            whole.add_item(node)
        self._root = Spot([], [], whole, self.values)
        if len(nodes) == 1:
            self._root = Spot([(whole, 0)], [0], nodes[0], self.values[0])

    def walk(self, steps: tuple[Step, ...]) -> Spot:
        """Follow `steps` from the top.

        Raises:
            PathError: they have no target, or lead through an alias.
        """
        spot = self._root
        for number, step in enumerate(steps):
            if not number and isinstance(step, Match) and _fits(spot.value, step):
                continue  # a file with a single asset is found by its id, as in a list
            spot = self._inner(spot, self._number(spot, step, steps[:number]))
            if spot.node.tied:
                raise self.error(spot, "EDT006", *_tied(spelt(steps[: number + 1]), spot.node))
        return spot

    def pointer(self, spot: Spot) -> str:
        """The JSON pointer to `spot`."""
        keys = spot.keys if self._root.node.kind == "documents" else spot.keys[1:]
        return pointer(keys)

    def error(self, spot: Spot, code: str, what: str, why: str, fix: str) -> PathError:
        """The problem `code` at `spot`."""
        ordinal, *keys = spot.keys or [0]
        at = self._documents[int(ordinal)].position(pointer(keys)) if self._documents else None
        return PathError(Diagnostic(code=code, what=what, why=why, fix=fix, subject=self._file, at=at))

    def _inner(self, spot: Spot, number: int) -> Spot:
        entry = spot.node.entries[number]
        key = entry.key if spot.node.kind == "mapping" else int(entry.key)
        return Spot([*spot.holders, (spot.node, number)], [*spot.keys, key], entry.value, spot.value[key])

    def _number(self, spot: Spot, step: Step, before: tuple[Step, ...]) -> int:
        """The number of the entry that `step` names."""
        if isinstance(step, Match):
            return self._matched(spot, step, before)
        found = spot.node.entry(step.text)
        if found is not None:
            return found
        raise self.error(spot, "EDT002", *self._missing(spot, step, before))

    def _matched(self, spot: Spot, step: Match, before: tuple[Step, ...]) -> int:
        items = spot.value if isinstance(spot.value, list) else []
        found = [number for number, item in enumerate(items) if _fits(item, step)]
        if len(found) == 1:
            return found[0]
        where = spelt(before)
        if not isinstance(spot.value, list):
            why = f"{where} is {kind_of(spot.value)}, not a list"
        elif found:
            why = f"{len(found)} items of {where} have it; a path must lead to exactly one"
        else:
            has = [str(item[step.key]) for item in items if isinstance(item, dict) and step.key in item]
            why = f"of {where}, " + (f"the items have {_listed(has)}" if has else f"no item has {step.key}")
            near = difflib.get_close_matches(step.text, has, 1)
            if near:
                fix = f"did you mean [{step.key}={near[0]}]?"
                raise self.error(spot, "EDT002", f"no item has {step.key}={step.text}", why, fix)
        what = (
            f"{len(found) or 'no'} items have {step.key}={step.text}"
            if found
            else f"no item has {step.key}={step.text}"
        )
        raise self.error(spot, "EDT002", what, why, "name the item by another key, or by its number")

    def _missing(self, spot: Spot, step: Name, before: tuple[Step, ...]) -> tuple[str, str, str]:
        where, value = spelt(before), spot.value
        what = f"{where} has no {quoted(step.text)}"
        if isinstance(value, dict):
            near = difflib.get_close_matches(step.text, value, 1)
            dotted = [key for key in value if key.startswith(f"{step.text}.")]
            if dotted:
                fix = f"quote a key that contains a dot: {quoted(dotted[0])}"
            elif near:
                fix = f"did you mean {quoted(near[0])}?"
            else:
                fix = "name an existing one, or add it"
            return what, f"it has {_listed(list(value)) or 'nothing'}", fix
        if isinstance(value, list):
            return (
                what,
                f"it is a list of {len(value)}, counted from 0",
                "name an item by its number, or as [id=web]",
            )
        return what, f"it is {kind_of(value)}", "end the path there, or replace the whole value"


def kind_of(value: Any) -> str:
    """The kind of a value, for messages; integers and floats are one kind."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _fits(value: Any, step: Match) -> bool:
    if not isinstance(value, dict) or step.key not in value:
        return False
    has = value[step.key]
    return step.text == (has if isinstance(has, str) else canonical(has).decode())


def _tied(where: str, node: Node) -> tuple[str, str, str]:
    return f"{where} cannot be edited on its own", node.tied, "write out the value by hand where it is used"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (" and more" if len(names) > _SHOWN else "")
