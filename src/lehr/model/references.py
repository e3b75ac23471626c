"""References to other assets, and names of what is outside of intent: found anywhere in a payload.

The targets are read off the annotations of a type, once; values are then searched as plain data.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import types as builtin_types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

import msgspec

from lehr.base.pointers import escaped, parts_of
from lehr.model.asset import AssetId


class Reference(msgspec.Struct, frozen=True):
    """Marks a string field as naming another asset of the same partition.

    Use it as `Annotated[str, Reference(("lehr.File",))]`, in any field, list or map, or for a map's
    keys. An empty `types` allows an asset of any type. With `goes_first`, the named asset is a
    dependency: it is pushed before the one that names it.

    With `follows`, the asset that names it takes up its changes and its removal: it does not keep
    the named asset from being turned down, and is pushed again after the removal.
    """

    types: tuple[str, ...] = ()
    goes_first: bool = False
    follows: bool = False


AnyReference = Annotated[str, Reference()]
"""A field that names an asset of any type."""

Dependency = Annotated[str, Reference(goes_first=True)]
"""A field that names an asset of any type, which must be pushed first."""

Followed = Annotated[str, Reference(goes_first=True, follows=True)]
"""A `Dependency` whose changes are followed, including its removal."""


class Mention(msgspec.Struct, frozen=True):
    """One reference that an asset makes.

    Attributes:
        path: JSON pointer into the asset's document (`/addons/lehr.DependsOn/assets/0`).
        target: the id that is named.
        types: types it must have; empty allows any.
        goes_first: True when the named asset is pushed before the one that names it.
        follows: True when the named asset may be removed before the one that names it lets go of
            it.
    """

    path: str
    target: AssetId
    types: tuple[str, ...]
    goes_first: bool = False
    follows: bool = False


class External(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that is too large to be intent, and is named instead. Use it as the type of a field.

    It is as fixed as intent itself: either `digest` identifies it, or `uri` names one version of it
    that cannot be replaced. A branch or a tag is not enough.

    Attributes:
        uri: where it is.
        digest: algorithm and hexadecimal digits (`sha256:9f86...`).
    """

    uri: str
    digest: str | None = None


Named = tuple[str, External]
"""Something outside of intent, after the JSON pointer to where an asset names it."""

Extract = Callable[[Any, str], Iterator[Any]]
"""From plain data, and the JSON pointer to it, to the targets in it."""

Leaf = Callable[[Any], Extract | None]
"""From a field's type to a function that finds targets in its value; None if the field is not one."""

_KEY = "#"
_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Set)
_MAPS = (dict, collections.abc.Mapping)
_UNIONS = (typing.Union, builtin_types.UnionType)


def reference_leaf(kind: Any) -> Extract | None:
    """Finds references."""
    mark = reference_mark(kind)
    return None if mark is None else functools.partial(mention, mark=mark)


def reference_mark(kind: Any) -> Reference | None:
    """How a field of this type names other assets; None if it does not."""
    marks = typing.get_args(kind)[1:] if typing.get_origin(kind) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, Reference)), None)


def external_leaf(kind: Any) -> Extract | None:
    """Finds what is outside of intent."""
    return external if kind is External else None


def mention(value: Any, path: str, mark: Reference) -> Iterator[Mention]:
    """The reference that `value` is, if it is text."""
    if isinstance(value, str):
        yield Mention(path, AssetId(value), mark.types, mark.goes_first, mark.follows)


def external(value: Any, path: str) -> Iterator[Named]:
    """The name in plain data of something outside of intent, if it is one."""
    if isinstance(value, dict) and isinstance(value.get("uri"), str):
        yield path, External(value["uri"], value.get("digest"))


@functools.cache
def extractor(kind: Any, leaf: Leaf) -> Extract | None:
    """A function that finds what `leaf` knows in plain data of type `kind`; None if it can have none."""
    held = leaf(kind)
    if held is not None:
        return held
    if not _may_hold(kind, leaf, frozenset()):
        return None
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return extractor(arguments[0], leaf)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return _positions([extractor(item, leaf) for item in arguments])
    if origin in _LISTS:
        return _items(extractor(arguments[0], leaf))
    if origin in _MAPS:
        return _entries(extractor(arguments[0], leaf), extractor(arguments[1], leaf))
    if origin in _UNIONS:
        return _any([extractor(item, leaf) for item in arguments])
    return _fields(kind, leaf)


def _may_hold(kind: Any, leaf: Leaf, within: frozenset[Any]) -> bool:
    """Whether a value of this type may hold a target. A type may contain itself."""
    if leaf(kind) is not None:
        return True
    if kind in within:
        return False
    inner = fields_of(kind).values() if has_fields(kind) else typing.get_args(kind)
    return any(_may_hold(item, leaf, within | {kind}) for item in inner if is_type(item))


def is_type(item: Any) -> bool:
    """Whether an argument of a generic type is a type that values may have."""
    return isinstance(item, type) or typing.get_origin(item) is not None


def has_fields(kind: Any) -> bool:
    """Whether values of this type are mappings with fields of their own types."""
    if not isinstance(kind, type):
        return False
    return issubclass(kind, msgspec.Struct) or dataclasses.is_dataclass(kind) or typing.is_typeddict(kind)


def fields_of(kind: Any) -> dict[str, Any]:
    """The types of its fields, with their annotations, by the names that they have in plain data."""
    hints = typing.get_type_hints(kind, include_extras=True)
    if issubclass(kind, msgspec.Struct):
        return {
            encoded: hints[name]
            for name, encoded in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True)
        }
    return hints


def held_classes(kind: Any) -> list[Any]:
    """Every class with fields whose values a value of this type may hold, or be."""
    found: list[Any] = []
    ahead = [kind]
    for item in ahead:
        inner: Iterable[Any] = typing.get_args(item)
        if has_fields(item):
            if item in found:
                continue
            found.append(item)
            inner = fields_of(item).values()
        ahead.extend(part for part in inner if is_type(part))
    return found


def _items(extract: Extract | None) -> Extract | None:
    if extract is None:
        return None

    def every(value: Any, path: str) -> Iterator[Any]:
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from extract(item, f"{path}/{index}")

    return every


def _positions(extracts: list[Extract | None]) -> Extract:
    def every(value: Any, path: str) -> Iterator[Any]:
        if isinstance(value, list):
            for index, (item, extract) in enumerate(zip(value, extracts, strict=False)):
                if extract is not None:
                    yield from extract(item, f"{path}/{index}")

    return every


def _entries(of_keys: Extract | None, of_values: Extract | None) -> Extract:
    def every(value: Any, path: str) -> Iterator[Any]:
        if isinstance(value, dict):
            for key, item in value.items():
                if of_keys is not None:
                    yield from of_keys(key, f"{path}/{escaped(key)}")
                if of_values is not None:
                    yield from of_values(item, f"{path}/{escaped(key)}")

    return every


def _any(extracts: list[Extract | None]) -> Extract:
    """Of a value's possible forms, those that it has: each looks at its own form."""

    def every(value: Any, path: str) -> Iterator[Any]:
        for extract in extracts:
            if extract is not None:
                yield from extract(value, path)

    return every


def _fields(kind: Any, leaf: Leaf) -> Extract:
    config = kind.__struct_config__ if issubclass(kind, msgspec.Struct) else None

    @functools.cache  # looked up late, since a type may contain itself
    def known() -> Mapping[str, Extract]:
        found = {name: extractor(hint, leaf) for name, hint in fields_of(kind).items()}
        return {name: extract for name, extract in found.items() if extract is not None}

    def every(value: Any, path: str) -> Iterator[Any]:
        if not isinstance(value, dict):
            return
        if config is not None and config.tag is not None and value.get(config.tag_field) != config.tag:
            return
        for name, extract in known().items():
            if value.get(name) is not None:
                yield from extract(value[name], f"{path}/{escaped(name)}")

    return every


# --- by JSON pointer -------------------------------------------------------------------


def values_at(value: Any, pattern: str, path: str) -> Iterator[tuple[str, Any]]:
    """Values in plain data at `pattern`, which is a JSON pointer.

    In it, `*` matches any key or index, and a last part `#` the keys themselves.

    Args:
        path: JSON pointer to `value`, which those of the answer begin with.
    """
    return found_at(value, path, parts_of(pattern))


def found_at(value: Any, path: str, parts: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """As `values_at`, for a pattern in parts."""
    if not parts:
        yield path, value
        return
    first, *rest = parts
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for name, item in items:
        if first == _KEY and not rest and isinstance(value, dict) and _KEY not in value:
            yield f"{path}/{escaped(name)}", name
        elif first in ("*", str(name)):
            yield from found_at(item, f"{path}/{escaped(name)}", tuple(rest))


def patterns(kind: Any, leaf: Callable[[Any], Any]) -> Iterator[tuple[str, Any]]:
    """Where values of a type hold what `leaf` knows: patterns like those of `values_at`, and its result.

    Raises:
        RecursionError: a type that may contain itself holds it, so that it may be at any depth.
    """
    yield from _patterns(kind, leaf, "", frozenset())


def _patterns(
    kind: Any, leaf: Callable[[Any], Any], path: str, within: frozenset[Any]
) -> Iterator[tuple[str, Any]]:
    held = leaf(kind)
    if held is not None:
        yield path, held
        return
    if kind in within:
        if _may_hold(kind, leaf, frozenset()):
            raise RecursionError(f"{kind.__name__} may contain itself")
        return
    within |= {kind}
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    inner: Iterable[tuple[str, Any]] = ()
    if has_fields(kind):
        inner = ((f"/{escaped(name)}", hint) for name, hint in fields_of(kind).items())
    elif origin is tuple and arguments[-1] is not Ellipsis:
        inner = ((f"/{index}", item) for index, item in enumerate(arguments))
    elif origin in _LISTS:
        inner = (("/*", arguments[0]),)
    elif origin in _MAPS:
        inner = ((f"/{_KEY}", arguments[0]), ("/*", arguments[1]))
    elif origin is Annotated or origin in _UNIONS:
        inner = (("", item) for item in (arguments[:1] if origin is Annotated else arguments))
    for part, item in inner:
        if is_type(item):
            yield from _patterns(item, leaf, path + part, within)
