"""The registry of payload and addon types, and references found through their annotations."""

from __future__ import annotations

import functools
import types as builtin_types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from lehr.model.asset import Asset, AssetId

T = TypeVar("T")


class Reference(msgspec.Struct, frozen=True):
    """Marks a string field as naming another asset of the same partition.

    Use it as `Annotated[str, Reference(("lehr.File",))]`, in any field, list or map.
    An empty `types` allows an asset of any type. With `goes_first`, the asset that is named is a
    dependency: it is pushed before the one that names it.
    """

    types: tuple[str, ...] = ()
    goes_first: bool = False


AnyReference = Annotated[str, Reference()]
"""A field that names an asset of whatever type."""

Dependency = Annotated[str, Reference(goes_first=True)]
"""A field that names an asset of whatever type, which is to be pushed first."""


class Mention(msgspec.Struct, frozen=True):
    """One reference that an asset makes.

    Attributes:
        path: JSON pointer into the asset's document (`/addons/lehr.DependsOn/assets/0`).
        target: the id that is named.
        types: types it must have; empty allows any.
        goes_first: True when the asset named is pushed before the one that names it.
    """

    path: str
    target: AssetId
    types: tuple[str, ...]
    goes_first: bool = False


class AssetType(msgspec.Struct, frozen=True):
    """A registered payload type.

    Attributes:
        name: also the type of every asset with this payload (`lehr.File`).
        payload: frozen `msgspec.Struct` class; its docstring is the type's documentation.
        governs: True for assets that configure checks and limits. They have no production,
            so no loop enforces them, and they are read at the governing incarnation.
        claims: names of the things in production that an asset with this payload alone may
            change (`file:/etc/motd`, `port:8080`). Two assets that claim one thing would undo
            each other for ever, so validation refuses them.
    """

    name: str
    payload: type[msgspec.Struct]
    governs: bool = False
    claims: Callable[[Any], Iterable[str]] | None = None


class Registry:
    """Types by name. Filled once, at start, in `lehr.wiring`."""

    def __init__(
        self, types: Iterable[AssetType] = (), addons: Mapping[str, type[msgspec.Struct]] | None = None
    ) -> None:
        self.types: dict[str, AssetType] = {}
        self.addons: dict[str, type[msgspec.Struct]] = dict(addons or {})
        for item in types:
            self.add(item)

    def add(self, item: AssetType) -> None:
        """Register a payload type.

        Raises:
            ValueError: the name is taken.
        """
        if item.name in self.types:
            raise ValueError(f"type {item.name} is registered twice")
        self.types[item.name] = item

    def governs(self, type_name: str) -> bool:
        """True when assets of this type configure checks and have no production."""
        item = self.types.get(type_name)
        return item is not None and item.governs

    def payload(self, asset: Asset, kind: type[T]) -> T:
        """The payload of `asset` as `kind`.

        Raises:
            TypeError: the asset is of another type.
        """
        item = self.types.get(asset.type)
        if item is None or item.payload is not kind:
            raise TypeError(f"asset {asset.id} is a {asset.type}, not a {kind.__name__}")
        return typing.cast(T, _body_decoder(item.payload).decode(asset.body).payload)

    def addon(self, asset: Asset, name: str, kind: type[T]) -> T | None:
        """The addon `name` of `asset` as `kind`; None when the asset has none."""
        raw = addon_names(asset).get(name)
        return None if raw is None else msgspec.json.decode(raw, type=kind)

    def claims(self, asset: Asset) -> tuple[str, ...]:
        """What the asset alone may change in production."""
        item = self.types.get(asset.type)
        if item is None or item.claims is None:
            return ()
        return tuple(dict.fromkeys(item.claims(self.payload(asset, item.payload))))

    def dependencies(self, asset: Asset) -> list[AssetId]:
        """Assets that are pushed before this one, each once, in order of mention."""
        return list(dict.fromkeys(item.target for item in self.mentions(asset) if item.goes_first))

    def mentions(self, asset: Asset) -> list[Mention]:
        """All references that the asset makes, in its payload and its addons."""
        found: list[Mention] = []
        item = self.types.get(asset.type)
        body = msgspec.json.decode(asset.body)
        if item is not None:
            found.extend(_mentions(item.payload, body["payload"], "/payload"))
        for name, value in body["addons"].items():
            kind = self.addons.get(name)
            if kind is not None:
                found.extend(_mentions(kind, value, f"/addons/{name}"))
        return found


class _RawBody(msgspec.Struct):
    addons: dict[str, msgspec.Raw]


_raw_body = msgspec.json.Decoder(_RawBody)


def addon_names(asset: Asset) -> dict[str, msgspec.Raw]:
    """The addons of `asset` by name, not decoded."""
    return _raw_body.decode(asset.body).addons


@functools.cache
def _body_decoder(payload: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    body = msgspec.defstruct("Body", [("payload", payload)])
    return msgspec.json.Decoder(body)


Extract = Callable[[Any, str], Iterator[Mention]]


def _mentions(kind: Any, value: Any, path: str) -> Iterator[Mention]:
    extract = _extractor(kind)
    return iter(()) if extract is None else extract(value, path)


@functools.cache
def _extractor(kind: Any) -> Extract | None:
    """A function that finds the references in plain data of type `kind`; None if it can have none."""
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin is Annotated:
        for mark in arguments[1:]:
            if isinstance(mark, Reference):
                return functools.partial(_mention, mark=mark)
        return _extractor(arguments[0])
    if origin in (list, tuple, set, frozenset) and arguments:
        return _each(_extractor(arguments[0]), lambda value: enumerate(value))
    if origin is dict:
        return _each(_extractor(arguments[1]), lambda value: value.items())
    if origin in (typing.Union, builtin_types.UnionType):
        return _first([_extractor(item) for item in arguments if item is not type(None)])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _fields(kind)
    return None


def _mention(value: Any, path: str, mark: Reference) -> Iterator[Mention]:
    if isinstance(value, str):
        yield Mention(path, AssetId(value), mark.types, mark.goes_first)


def _each(extract: Extract | None, items: Callable[[Any], Iterable[tuple[Any, Any]]]) -> Extract | None:
    if extract is None:
        return None

    def every(value: Any, path: str) -> Iterator[Mention]:
        if isinstance(value, list | dict):
            for key, item in items(value):
                yield from extract(item, f"{path}/{key}")

    return every


def _first(extracts: list[Extract | None]) -> Extract | None:
    known = [extract for extract in extracts if extract is not None]
    return known[0] if known else None


def _fields(kind: type[msgspec.Struct]) -> Extract | None:
    hints = typing.get_type_hints(kind, include_extras=True)
    known = {name: extract for name, hint in hints.items() if (extract := _extractor(hint)) is not None}
    if not known:
        return None

    def every(value: Any, path: str) -> Iterator[Mention]:
        if isinstance(value, dict):
            for name, extract in known.items():
                if value.get(name) is not None:
                    yield from extract(value[name], f"{path}/{name}")

    return every
