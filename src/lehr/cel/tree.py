"""The syntax tree of an expression, as the library returns it: checked, with macros expanded.

The tree arrives as bytes of `cel.expr.CheckedExpr`, a protobuf message of the CEL specification. This reads
only the few fields that matter, so that no protobuf runtime is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import msgspec


class Constant(msgspec.Struct, frozen=True):
    """A literal: None, bool, int, float or str."""

    value: Any


class Variable(msgspec.Struct, frozen=True):
    """A variable that has a given value."""

    name: str


class Name(msgspec.Struct, frozen=True):
    """A variable of a macro, or a name that the language defines."""

    name: str


class Select(msgspec.Struct, frozen=True):
    """`operand.field`; with `test`, `has(operand.field)`."""

    operand: Node
    field: str
    test: bool


class Call(msgspec.Struct, frozen=True):
    """A function or an operator (`_&&_`). A method's target is its first argument."""

    function: str
    arguments: tuple[Node, ...]


class ListOf(msgspec.Struct, frozen=True):
    """`[a, b]`."""

    items: tuple[Node, ...]


class MapOf(msgspec.Struct, frozen=True):
    """`{"a": b}`."""

    entries: tuple[tuple[Node, Node], ...]


class Fold(msgspec.Struct, frozen=True):
    """The expansion of a macro over a list or map.

    Starting with `initial`, `step` recomputes `total` for each `item` of `over`, as long as `goes_on`; the
    answer is `result`.
    """

    item: str
    over: Node
    total: str
    initial: Node
    goes_on: Node
    step: Node
    result: Node


Node = Constant | Variable | Name | Select | Call | ListOf | MapOf | Fold


def parts_of(node: Node) -> tuple[Node, ...]:
    """The direct children of a node."""
    match node:
        case Select(operand):
            return (operand,)
        case Call(_, parts) | ListOf(parts):
            return parts
        case MapOf(entries):
            return tuple(part for entry in entries for part in entry)
        case Fold():
            return (node.over, node.initial, node.goes_on, node.step, node.result)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """A node and all its descendants."""
    yield node
    for part in parts_of(node):
        yield from walk(part)


def folds_within(node: Node) -> int:
    """How many folds are nested, so that each runs for every item of the one around it."""
    if isinstance(node, Fold):
        once = max(map(folds_within, (node.over, node.initial, node.result)))
        return max(once, 1 + max(map(folds_within, (node.goes_on, node.step))))
    return max(map(folds_within, parts_of(node)), default=0)


class UnsupportedError(Exception):
    """The tree has something unsupported: an unsigned number, bytes, a message, an optional."""


CONTAINER = "intent"
"""Namespace of variables, so that they may have names that the language uses, such as `type`."""

_WITHIN = f"{CONTAINER}."
_BODY = 2
_EXPRESSION = 4


def read_tree(serialized: bytes) -> Node:
    """The tree of a serialized expression, a `google.protobuf.Any` with a `CheckedExpr`.

    Raises:
        UnsupportedError: it has something that no `Node` represents.
    """
    return _node(_fields(_fields(serialized)[_BODY][0])[_EXPRESSION][0])


def _node(body: bytes) -> Node:
    for number, values in _fields(body).items():
        read = _NODES.get(number)
        if read is not None:
            return read(values[0])
    raise UnsupportedError("an empty expression")


def _constant(body: bytes) -> Constant:
    [(number, [value])] = _fields(body).items()
    match number:
        case 1:
            return Constant(None)
        case 2:
            return Constant(bool(value))
        case 3:
            return Constant(value - (1 << 64) if value >> 63 else value)
        case 5:
            return Constant(struct.unpack("<d", value)[0])
        case 6:
            return Constant(value.decode())
    raise UnsupportedError("an unsigned number or bytes")


def _name(body: bytes) -> Variable | Name:
    name = _fields(body)[1][0].decode()
    return Variable(name.removeprefix(_WITHIN)) if name.startswith(_WITHIN) else Name(name)


def _select(body: bytes) -> Select:
    fields = _fields(body)
    return Select(_node(fields[1][0]), fields[2][0].decode(), bool(fields.get(3)))


def _call(body: bytes) -> Call:
    fields = _fields(body)
    arguments = (*fields.get(1, ()), *fields.get(3, ()))
    return Call(fields[2][0].decode(), tuple(map(_node, arguments)))


def _list(body: bytes) -> ListOf:
    fields = _fields(body)
    if 2 in fields:
        raise UnsupportedError("an optional element")
    return ListOf(tuple(map(_node, fields.get(1, ()))))


def _map(body: bytes) -> MapOf:
    fields = _fields(body)
    entries = [_fields(entry) for entry in fields.get(2, ())]
    if 1 in fields or any(2 in entry or 5 in entry for entry in entries):
        raise UnsupportedError("a message or an optional entry")
    return MapOf(tuple((_node(entry[3][0]), _node(entry[4][0])) for entry in entries))


def _fold(body: bytes) -> Fold:
    fields = _fields(body)
    if 8 in fields:
        raise UnsupportedError("a macro with two variables")
    item, total = fields[1][0].decode(), fields[3][0].decode()
    over, initial, goes_on, step, result = (_node(fields[number][0]) for number in (2, 4, 5, 6, 7))
    return Fold(item, over, total, initial, goes_on, step, result)


_NODES = {3: _constant, 4: _name, 5: _select, 6: _call, 7: _list, 8: _map, 9: _fold}


def _fields(body: bytes) -> dict[int, list[Any]]:
    """The fields of a message by number: an int for a varint, bytes for everything else."""
    found: dict[int, list[Any]] = {}
    for number, value in _each_field(body):
        found.setdefault(number, []).append(value)
    return found


def _each_field(body: bytes) -> Iterator[tuple[int, Any]]:
    place = 0
    while place < len(body):
        tag, place = _varint(body, place)
        match tag & 7:
            case 0:
                value, place = _varint(body, place)
                yield tag >> 3, value
                continue
            case 1:
                end = place + 8
            case 2:
                length, place = _varint(body, place)
                end = place + length
            case _:
                end = place + 4
        yield tag >> 3, body[place:end]
        place = end


def _varint(body: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
