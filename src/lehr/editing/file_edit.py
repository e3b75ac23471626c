"""Applies a change to the bytes of one file, or reports why that is impossible.

Changes are made by position: the strict loader provides the data, the nodes provide its place in the text,
and no character outside of the change is touched. Then the result is parsed again, and must equal the old
document with this one change; a layout that misleads us is refused, never written.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import msgspec

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Excerpt, Position, file_problem
from lehr.base.digest import canonical
from lehr.base.documents.json_text import json_nodes
from lehr.base.documents.nodes import Node
from lehr.base.documents.toml_nodes import toml_nodes
from lehr.base.documents.yaml_nodes import yaml_nodes
from lehr.editing.changes import Add, Change, Compute, Delete, EditError, Replace
from lehr.editing.document_tree import PathError, Spot, Tree, kind_of
from lehr.editing.partial_changes import Part, parts, same
from lehr.editing.paths import END, Name, parse_path, spelt
from lehr.editing.splices import CannotSpliceError, Splicer
from lehr.editing.text_lines import Splice, spliced
from lehr.editing.value_text import JsonWriter, TomlWriter, ValueWriter, YamlWriter

_FORMATS: Mapping[str, tuple[Callable[[str], list[Node]], Callable[[], ValueWriter]]] = {
    ".json": (json_nodes, JsonWriter),
    ".toml": (toml_nodes, TomlWriter),
    ".yaml": (yaml_nodes, YamlWriter),
    ".yml": (yaml_nodes, YamlWriter),
}

_LONGEST = 160


class Applied(msgspec.Struct, frozen=True):
    """A completed change.

    Attributes:
        content: all bytes of the file.
        before: the old value; `msgspec.UNSET` if something was added.
    """

    content: bytes
    before: Any


def apply(content: bytes, change: Change) -> Applied:
    """Make one change in a file with `content`.

    Raises:
        EditError: it is impossible; the diagnostics have the reasons and positions.
    """
    loaded = documents.load(change.file, content)
    if loaded.diagnostics:
        raise EditError(tuple(_quoting(item, content) for item in loaded.diagnostics))
    try:
        return _Edit(change, content, loaded.documents).applied()
    except PathError as err:
        raise EditError((_quoting(err.diagnostic, content),)) from err


class _Edit:
    """One change in one text."""

    def __init__(self, change: Change, content: bytes, loaded: tuple[documents.Document, ...]) -> None:
        self._change = change
        self._text = content.decode()
        nodes_of, writing = _FORMATS[PurePosixPath(change.file).suffix.lower()]
        self._splicer = Splicer(self._text, writing())
        self._tree = Tree(change.file, loaded, nodes_of(self._text))
        self._error = self._tree.error
        try:
            self._steps = parse_path(change.path)
        except ValueError as err:
            what = f"the path {change.path} is not valid"
            fix = "write it like `payload.replicas`, `[id=web].payload` or `/0/payload`"
            at = Position(change.file)
            raise PathError(file_problem("EDT001", at, what=what, why=str(err), fix=fix)) from err

    def applied(self) -> Applied:
        change = self._change
        if isinstance(change, Add):
            return self._add(change.value)
        spot = self._tree.walk(self._steps)
        if not spot.holders or spot.holders[-1][0].kind == "documents":
            raise self._error(
                spot, "EDT001", "a document cannot be edited as a whole", "", "name a part of it"
            )
        if isinstance(change, Compute):
            return self._replace(spot, change.function(copy.deepcopy(spot.value)))
        if change.expect is not msgspec.UNSET and not same(change.expect, spot.value):
            raise self._unexpected(spot, change.expect)
        if isinstance(change, Delete):
            return self._delete(spot)
        self._check_kind(spot, change)
        return self._replace(spot, change.value)

    def _replace(self, spot: Spot, wanted: Any) -> Applied:
        value = self._plain(spot, wanted)
        if same(value, spot.value):
            return Applied(self._text.encode(), spot.value)
        holder, number = spot.holders[-1]
        inside = parts(spot.value, value) if spot.node.entries else None
        if inside is not None:
            with contextlib.suppress(EditError):  # if changes inside fail, replace it as a whole
                return Applied(self._in_parts(spot, inside), spot.value)
        return self._made(spot, spot.value, value, lambda: self._splicer.replace(holder, number, value))

    def _in_parts(self, spot: Spot, inside: list[Part]) -> bytes:
        """The content after changes inside the value at `spot`."""
        file, top, content = self._change.file, self._tree.pointer(spot), self._text.encode()
        for part in inside:
            path = top + part.pointer
            change: Change = Replace(file=file, path=path, value=part.value, retype=True)
            if part.value is msgspec.UNSET:
                change = Delete(file=file, path=path)
            elif part.new:
                change = Add(file=file, path=path, value=part.value)
            content = apply(content, change).content
        return content

    def _add(self, wanted: Any) -> Applied:
        last = self._steps[-1]
        spot = self._tree.walk(self._steps[:-1])
        where = spelt(self._steps[:-1])
        if not isinstance(last, Name):
            fix = f"end it with the new key, or with {END} for the end of a list"
            raise self._error(
                spot, "EDT001", f"the path {self._change.path} does not name anything new", "", fix
            )
        if isinstance(spot.value, list) and spot.node.kind == "list":
            if last.text != END:
                fix = f"end the path with {END}, or set the whole list"
                raise self._error(spot, "EDT003", "items can only be added at the end of a list", "", fix)
            key: str | int = len(spot.value)
        elif isinstance(spot.value, dict):
            key = last.text
        else:
            what = f"nothing can be added to {where}"
            raise self._error(spot, "EDT003", what, f"it is {kind_of(spot.value)}", "replace it as a whole")
        if isinstance(spot.value, dict) and key in spot.value:
            inner = self._tree.walk(self._steps)
            fix = "replace it, or choose another key"
            raise self._error(inner, "EDT003", f"{spelt(self._steps)} already exists", "", fix)
        value = self._plain(spot, wanted)
        spot.keys.append(key)
        name = key if isinstance(key, str) else None
        return self._made(spot, msgspec.UNSET, value, lambda: self._splicer.add(spot.node, name, value))

    def _delete(self, spot: Spot) -> Applied:
        holder, number = spot.holders[-1]
        if len(holder.entries) > 1 or holder.inline or holder.after is not None:
            return self._made(spot, spot.value, msgspec.UNSET, lambda: self._splicer.delete(holder, number))
        above, place = spot.holders[-2]
        return self._made(spot, spot.value, msgspec.UNSET, lambda: self._splicer.empty(above, place, holder))

    def _made(self, spot: Spot, before: Any, value: Any, splice: Callable[[], list[Splice]]) -> Applied:
        """Apply `splice`, parse the result, and check that it is as intended."""
        wanted = _with(self._tree.values, spot.keys, value)
        try:
            text = spliced(self._text, splice())
            loaded = documents.load(self._change.file, text.encode())
        except ValueError as err:
            raise self._error(
                spot, "EDT007", "the file cannot hold this value", str(err), "write a different one"
            ) from err
        except CannotSpliceError as err:
            raise self._misled(spot, str(err)) from err
        if loaded.diagnostics or not same([item.value for item in loaded.documents], wanted):
            raise self._misled(spot, "its layout is unusual")
        return Applied(text.encode(), before)

    def _check_kind(self, spot: Spot, change: Replace) -> None:
        old, new = kind_of(spot.value), kind_of(change.value)
        if change.retype or old == new or spot.value is None or change.value is None:
            return
        what = f"{spelt(self._steps)} is {old}, and would become {new}"
        quote = "to make it a string, quote it; " if old == kind_of("") else ""
        fix = f"{quote}to allow a different kind, set `retype`"
        raise self._error(spot, "EDT004", what, "a change of kind is usually a mistake", fix)

    def _plain(self, spot: Spot, value: Any) -> Any:
        """`value` as plain data, as if read from a file."""
        try:
            written = json.dumps(msgspec.to_builtins(value, str_keys=True), allow_nan=False)
            loaded = documents.load("value.json", written.encode())
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as err:
            fix = "use lists, mappings and scalars"
            raise self._error(spot, "EDT007", "the value is not plain data", str(err), fix) from err
        if loaded.diagnostics or not same(loaded.documents[0].value, value):
            why = loaded.diagnostics[0].what if loaded.diagnostics else "it would be read back differently"
            raise self._error(spot, "EDT007", "the file cannot hold this value", why, "write a different one")
        return loaded.documents[0].value

    def _unexpected(self, spot: Spot, expected: Any) -> PathError:
        what = f"{spelt(self._steps)} is {shown(spot.value)}, not {shown(expected)} as expected"
        return self._error(
            spot, "EDT005", what, "it was changed in the meantime", "review the new value, and edit again"
        )

    def _misled(self, spot: Spot, why: str) -> PathError:
        what = f"{spelt(self._steps)} cannot be edited by a program"
        return self._error(spot, "EDT008", what, why, "edit it by hand, or write it in a simpler layout")


def shown(value: Any) -> str:
    """`value` for a message."""
    try:
        text = canonical(value).decode()
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(value)[:60]
    return text if len(text) <= 60 else text[:57] + "..."


def _quoting(item: Diagnostic, content: bytes) -> Diagnostic:
    """The diagnostic with the line that it points to, unless that is long."""
    if item.at is None or not item.at.line:
        return item
    lines = content.split(b"\n", item.at.line)
    if len(lines) < item.at.line:  # something missing at the end of a file is reported after it
        return item
    line = lines[item.at.line - 1].decode(errors="replace").rstrip("\r")
    if len(line) > _LONGEST:
        return item
    return msgspec.structs.replace(
        item, excerpt=Excerpt(line, item.at.column - 1 if item.at.column else None)
    )


def _with(value: Any, keys: list[str | int], new: Any) -> Any:
    """A copy of `value` with `new` at `keys`; `msgspec.UNSET` deletes. Shares what it does not change."""
    key, *rest = keys
    changed = value.copy()
    if rest:
        changed[key] = _with(value[key], rest, new)
    elif new is msgspec.UNSET:
        del changed[key]
    elif isinstance(changed, list) and key == len(changed):
        changed.append(new)
    else:
        changed[key] = new
    return changed
