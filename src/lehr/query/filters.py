"""Filters: which assets, in CEL over `id`, `type`, `payload` and `addons`.

A filter is evaluated in two steps. Its conditions on ids and types become `Bounds`, which a store looks up in
its indexes; these return possibly too many assets, never too few. Then the filter itself is evaluated for
each asset, decoding only the parts of the body that it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import astuple

from lehr.base.errors import LehrError, raised_as
from lehr.cel import Compiled, NoAnswerError, compile_question, no_condition
from lehr.cel.closures import closure_of, framed
from lehr.cel.tree import Call, Constant, Fold, ListOf, Node, Select, Variable, folds_within, parts_of, walk
from lehr.model.asset import Asset
from lehr.sdk.store import Row

VARIABLES = ("id", "type", "payload", "addons")

_EXAMPLE = "type == 'lehr.File' && payload.mode == '0600'"

Strings = frozenset[str]
Kept = Asset | Row


LIBRARY_WORK = 2_000
"""Operations counted for one evaluation by the CEL library."""

_HEAVY = 100
"""A filter without macros is heavy from this number of operations on."""


class TookTooLongError(Exception):
    """Raised inside a filter that takes too long for one asset, which then has no answer."""


class Sifted(msgspec.Struct, frozen=True, array_like=True):
    """Result of a filter for some assets, one after the other.

    Attributes:
        looked_at: how many of them were checked, from the first on: at least one.
        matched: places of those that match.
        work: approximate number of operations.
        unanswered: how many it had no answer for; `why` is the reason for the first.
    """

    looked_at: int
    matched: tuple[int, ...]
    work: int
    unanswered: int = 0
    why: str = ""


class Bounds(msgspec.Struct, frozen=True):
    """Where to look: every asset that a filter matches lies within.

    Attributes:
        ids, types: the id, the type is one of these; None for any.
        prefix: the id begins with this.
    """

    ids: Strings | None = None
    types: Strings | None = None
    prefix: str = ""

    def told(self) -> list[str]:
        """As text, one line for each bound."""
        lines = []
        for name, values in (("id", self.ids), ("type", self.types)):
            if values is not None:
                lines.append(f"{name} is one of {', '.join(sorted(values)) or 'nothing'}")
        if self.prefix:
            lines.append(f"id begins with {self.prefix}")
        return lines


ANYWHERE = Bounds()


class Filter:
    """A condition on assets.

    Attributes:
        text: as it was written.
        bounds: where to look.
        fast: False if it needs the CEL library, which takes several times as long.
        heavy: it may be slow for each asset: it has macros, needs the library, or is long.
        unanswered: why it had no answer for some assets, which then do not match: the first reason, and
            how many they were.
    """

    def __init__(self, text: str) -> None:
        """The filter that `text` writes.

        Raises:
            LehrError: it cannot be parsed.
        """
        self.text = text
        fix = f"write a CEL expression over id, type, payload and addons: {_EXAMPLE}"
        what = f"the filter {text!r} cannot be parsed"
        with raised_as(LehrError, what, code="QRY103", fix=fix, on=ValueError):
            compiled = compile_question(text, VARIABLES)
        self.fast = compiled.fast
        self.bounds = ANYWHERE if compiled.tree is None else _bounds(compiled.tree)
        parts = [] if compiled.tree is None else list(walk(compiled.tree))
        folds, size = [part for part in parts if isinstance(part, Fold)], len(parts) or 1
        self.heavy = bool(folds) or not self.fast or size > _HEAVY
        self._each = size if self.fast else size + LIBRARY_WORK
        self._within = max((_size(fold.goes_on) + _size(fold.step) for fold in folds), default=0)
        self._steps = [0]
        self._answer = _answer_of(compiled, self._steps)
        self.unanswered: tuple[str, int] = ("", 0)

    def matches(self, asset: Kept) -> bool:
        """True if the condition holds for `asset`; False also if it has no answer."""
        try:
            answer = self._answer(asset)
        except (NoAnswerError, TookTooLongError) as error:
            return self._no_answer(asset, error)
        if answer is True or answer is False:
            return answer
        return self._no_answer(asset, no_condition(answer))

    def sift(self, assets: Sequence[Kept], most_work: int, enough: Callable[[], bool]) -> Sifted:
        """Evaluate for `assets` until `most_work` operations are done or `enough` returns True."""
        self.unanswered, self._steps[0] = ("", 0), 0
        matched = []
        place = -1
        for place, asset in enumerate(assets[: max(1, -(-most_work // self._each))]):
            if self.matches(asset):
                matched.append(place)
            if self.heavy and (enough() or self._work(place + 1) >= most_work):
                break
        why, unanswered = self.unanswered
        return Sifted(place + 1, tuple(matched), self._work(place + 1), unanswered, why)

    def _work(self, evaluated: int) -> int:
        """Approximate number of operations of `sift` so far: the same for the same assets on any machine."""
        return evaluated * self._each + self._steps[0] * self._within

    def _no_answer(self, asset: Kept, error: Exception) -> bool:
        why, count = self.unanswered
        self.unanswered = why or f"{asset.id}: {error}", count + 1
        return False

    def of(self, assets: Iterable[Asset]) -> Iterator[Asset]:
        """Those of `assets` that match."""
        return filter(self.matches, assets)


def _size(node: Node) -> int:
    return sum(1 for _ in walk(node))


# --- where to look -------------------------------------------------------------------------


def _bounds(node: Node) -> Bounds:
    match node:
        case Call("_&&_", (one, other)):
            return _both(_bounds(one), _bounds(other))
        case Call("_||_", (one, other)):
            return _either(_bounds(one), _bounds(other))
        case Call("_==_", (Variable(name), Constant(str(value)))):
            return _one_of(name, [value])
        case Call("_==_", (Constant(str(value)), Variable(name))):
            return _one_of(name, [value])
        case Call("@in", (Variable(name), ListOf(items))):
            values = [item.value for item in items if isinstance(item, Constant)]
            return _one_of(name, values) if len(values) == len(items) else ANYWHERE
        case Call("startsWith", (Variable("id"), Constant(str(prefix)))):
            return Bounds(prefix=prefix)
    return ANYWHERE


def _one_of(name: str, values: Iterable[Any]) -> Bounds:
    among = frozenset(value for value in values if isinstance(value, str))
    match name:
        case "id":
            return Bounds(ids=among)
        case "type":
            return Bounds(types=among)
    return ANYWHERE


def _both(one: Bounds, other: Bounds) -> Bounds:
    prefixes = sorted((one.prefix, other.prefix), key=len)
    if not prefixes[1].startswith(prefixes[0]):
        return Bounds(ids=frozenset())
    return Bounds(_within(one.ids, other.ids), _within(one.types, other.types), prefixes[1])


def _either(one: Bounds, other: Bounds) -> Bounds:
    """Wide enough for both. An id in a set on one side and a prefix on the other bound nothing together."""
    ids = None if one.ids is None or other.ids is None else one.ids | other.ids
    types = None if one.types is None or other.types is None else one.types | other.types
    return Bounds(ids, types, one.prefix if one.prefix == other.prefix else "")


def _within(one: Strings | None, other: Strings | None) -> Strings | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


# --- what to decode ------------------------------------------------------------------------


def _answer_of(compiled: Compiled, steps: list[int]) -> Callable[[Kept], Any]:
    """Evaluates the filter for an asset, decoding as little as possible.

    Args:
        steps: of macros, which are counted there.
    """
    answer, tree, fast = compiled
    if tree is None or not fast:
        return lambda asset: answer(_whole(asset))
    if folds_within(tree):
        return _counted(tree, steps)
    used: dict[str, set[str] | None] = {}
    _collect(tree, used)
    fields = used.get("payload", set())
    if "addons" in used or fields is None:
        return lambda asset: answer(_whole(asset))
    if not fields:
        of_head = closure_of(tree, ("id", "type"))
        return lambda asset: of_head([asset.id, asset.type])
    return _answer_of_fields(compiled, sorted(fields))


def _collect(node: Node, used: dict[str, set[str] | None]) -> None:
    """Record which variables `node` uses, and which of their fields; None for more than fields."""
    match node:
        case Variable(name):
            used[name] = None
        case Select(Variable(name), field):
            known = used.setdefault(name, set())
            if known is not None:
                known.add(field)
        case _:
            for part in parts_of(node):
                _collect(part, used)


def _counted(tree: Node, steps: list[int]) -> Callable[[Kept], Any]:
    """The answer of a filter with macros, counting the items that they visit."""
    answer, rest = framed(tree, VARIABLES)

    def counted(asset: Kept) -> Any:
        values = _whole(asset)
        frame = [*(values[name] for name in VARIABLES), *rest]
        try:
            return answer(frame)
        finally:
            steps[0] += rest[0] - frame[len(VARIABLES)]

    return counted


class _Body(msgspec.Struct):
    payload: Any
    addons: dict[str, Any]


_body = msgspec.json.Decoder(_Body)


def _whole(asset: Kept) -> Mapping[str, Any]:
    body = _body.decode(asset.body)
    return {"id": asset.id, "type": asset.type, "payload": body.payload, "addons": body.addons}


def _answer_of_fields(compiled: Compiled, fields: list[str]) -> Callable[[Kept], Any]:
    """Decodes only some fields of the payload. For 1.6 KB in many fields, this takes a third of the time; for
    a few long texts, it makes no difference.
    """
    assert compiled.tree is not None
    names = [f"f{number}" for number in range(len(fields))]
    payload = msgspec.defstruct(
        "Payload",
        [(name, Any, msgspec.UNSET) for name in names],
        rename=dict(zip(names, fields, strict=True)),
        gc=False,
    )
    decode = msgspec.json.Decoder(msgspec.defstruct("Body", [("payload", payload)], gc=False)).decode
    answer, rest = framed(compiled.tree, ("id", "type"), [("payload", field) for field in fields])

    def of_fields(asset: Kept) -> Any:
        try:
            body: Any = decode(asset.body)
        except msgspec.ValidationError:  # a payload that is not a map
            return compiled.answer(_whole(asset))
        return answer([asset.id, asset.type, *astuple(body.payload), *rest])

    return of_fields
