"""The registry of payload and addon types, and references found through their annotations."""

from __future__ import annotations

import functools
import types as builtin_types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.secret import Placed, Secret, mappings_of, secret_leaf, sensitive_leaf

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


class External(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that is too large to be intent, and is named instead. Use it as the type of a field.

    It is as fixed as intent itself: either `digest` says what it is, or `uri` names one version of
    it that nobody can replace. A branch or a tag will not do.

    Attributes:
        uri: where it is.
        digest: algorithm and hexadecimal digits (`sha256:9f86...`).
    """

    uri: str
    digest: str | None = None


Named = tuple[str, External]
"""Something outside of intent, after the JSON pointer to where an asset names it."""


class Schema:
    """A payload type that is declared as data: what a JSON schema describes.

    Attributes:
        document: the JSON schema (draft 2020-12).
        references: which fields name other assets, by JSON pointer; `*` stands for every key or index.
        externals: which fields name something outside of intent, in the same way: text, a URI; or a
            mapping as `External` is.
        secrets: which fields hold references to secrets, in the same way.
        description: what assets of the type stand for.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        references: Mapping[str, Reference],
        description: str = "",
        externals: Iterable[str] = (),
        secrets: Iterable[str] = (),
    ) -> None:
        self.document = document
        self.description = description
        self.references = references
        self.externals = tuple(externals)
        self.secrets = tuple(secrets)
        self._paths = [(_parts(pattern), mark) for pattern, mark in references.items()]

    def mentions(self, value: Any, path: str) -> Iterator[Mention]:
        """The references in plain data of this type that stands at `path` of its asset's document."""
        for parts, mark in self._paths:
            for place, item in _found(value, path, parts):
                yield from _mention(item, place, mark)

    def outside(self, value: Any, path: str) -> Iterator[Named]:
        """What is named outside of intent by plain data of this type that stands at `path`."""
        for pattern in self.externals:
            for place, item in _found(value, path, _parts(pattern)):
                yield from _external({"uri": item} if isinstance(item, str) else item, place)

    def sensitive(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """What stands in plain data of this type, at `path`, where references to secrets have to."""
        for pattern in self.secrets:
            yield from _found(value, path, _parts(pattern))

    def secret_data(self, value: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """The references to secrets in plain data of this type that stands at `path`."""
        for place, item in self.sensitive(value, path):
            yield from mappings_of(item, place)


class AssetType(msgspec.Struct, frozen=True):
    """A registered payload type.

    Attributes:
        name: also the type of every asset with this payload (`lehr.File`).
        payload: frozen `msgspec.Struct` class, whose docstring is the type's documentation; or the
            schema that a workspace declares.
        governs: True for assets that configure checks and limits. They have no production, and are
            read at the governing incarnation.
        enforced: False for assets without production: no loop enforces them, and they may go from
            intent without a turndown.
        claims: names of the things in production that an asset with this payload alone may
            change (`file:/etc/motd`, `port:8080`). Two assets that claim one thing would undo
            each other for ever, so validation refuses them.
    """

    name: str
    payload: type[msgspec.Struct] | Schema
    governs: bool = False
    claims: Callable[[Any], Iterable[str]] | None = None
    enforced: bool = True


class Registry:
    """Types by name: those of this installation, and those that a workspace declares.

    Attributes:
        types: all of them.
        addons: addon types by name.
    """

    def __init__(
        self, types: Iterable[AssetType] = (), addons: Mapping[str, type[msgspec.Struct]] | None = None
    ) -> None:
        self.types: dict[str, AssetType] = {}
        self.addons: dict[str, type[msgspec.Struct]] = dict(addons or {})
        self._declared: tuple[AssetType, ...] = ()
        for item in types:
            self.add(item)

    def declare(self, types: Iterable[AssetType]) -> None:
        """Know the types that a workspace declares, and no longer those that it declared before.

        One whose name is taken by a type of this installation is left out.
        """
        for item in self._declared:
            del self.types[item.name]
        self._declared = tuple(item for item in types if item.name not in self.types)
        self.types.update((item.name, item) for item in self._declared)

    @property
    def declared(self) -> tuple[AssetType, ...]:
        """Types that the workspace declares."""
        return self._declared

    def add(self, item: AssetType) -> None:
        """Register a payload type.

        Raises:
            ValueError: the name is taken.
        """
        if item.name in self.types:
            raise ValueError(f"type {item.name} is registered twice")
        self.types[item.name] = item

    def inert(self, type_name: str) -> bool:
        """True when assets of this type have no production; of a type that nobody knows, they may."""
        item = self.types.get(type_name)
        return item is not None and (item.governs or not item.enforced)

    def copy(self) -> Registry:
        """Another registry with the same types, to declare others in."""
        other = Registry(addons=self.addons)
        other.types = dict(self.types)
        other._declared = self._declared
        return other

    def payload(self, asset: Asset, kind: type[T]) -> T:
        """The payload of `asset` as `kind`; of a declared type, as `dict`.

        Raises:
            TypeError: the asset is of another type.
        """
        item = self.types.get(asset.type)
        if item is not None and isinstance(item.payload, Schema) and kind is dict:
            return typing.cast(T, msgspec.json.decode(asset.body)["payload"])
        if item is None or item.payload is not kind or isinstance(item.payload, Schema):
            raise TypeError(f"asset {asset.id} is a {asset.type}, not a {kind.__name__}")
        return typing.cast(T, _body_decoder(item.payload).decode(asset.body).payload)

    def addon(self, asset: Asset, name: str, kind: type[T]) -> T | None:
        """The addon `name` of `asset` as `kind`; None when the asset has none."""
        raw = addon_names(asset).get(name)
        return None if raw is None else msgspec.json.decode(raw, type=kind)

    def claims(self, asset: Asset) -> tuple[str, ...]:
        """What the asset alone may change in production."""
        item = self.types.get(asset.type)
        if item is None or item.claims is None or isinstance(item.payload, Schema):
            return ()
        return tuple(dict.fromkeys(item.claims(self.payload(asset, item.payload))))

    def dependencies(self, asset: Asset) -> list[AssetId]:
        """Assets that are pushed before this one, each once, in order of mention."""
        return list(dict.fromkeys(item.target for item in self.mentions(asset) if item.goes_first))

    def mentions(self, asset: Asset) -> list[Mention]:
        """All references that the asset makes, in its payload and its addons."""
        return self._extracted(asset, _reference_leaf)

    def externals(self, asset: Asset) -> list[Named]:
        """All that the asset names outside of intent, after JSON pointers into its document."""
        return self._extracted(asset, _external_leaf)

    def secrets(self, asset: Asset) -> list[Placed]:
        """All references to secrets in the asset, after JSON pointers into its document."""
        if _SECRET not in asset.body:
            return []
        return [(path, msgspec.convert(item, Secret)) for path, item in self._extracted(asset, secret_leaf)]

    def with_secrets(self, asset: Asset, change: Callable[[Secret], Secret]) -> Asset:
        """`asset` with each of its references to secrets changed; itself where nothing changes."""
        body = msgspec.json.decode(asset.body)
        changes = False
        for _path, item in self._extracted(asset, secret_leaf, body):
            before = msgspec.convert(item, Secret)
            after = change(before)
            changes |= after != before
            item.update(msgspec.to_builtins(after))
        if not changes:
            return asset
        return make_asset(
            asset.id,
            asset.type,
            body["payload"],
            body["addons"],
            asset.origin,
            asset.made_by,
            asset.annotated_by,
        )

    def _extracted(self, asset: Asset, leaf: Leaf, decoded: dict[str, Any] | None = None) -> list[Any]:
        """What `leaf` finds in the asset; in `decoded`, where its body is decoded already."""
        found: list[Any] = []
        item = self.types.get(asset.type)
        extract = None if item is None else _extractor_of(item.payload, leaf)
        if extract is None and _has_no_addons(asset):
            return found  # most assets refer to nothing: decoding them is most of what validating costs
        addons = {
            name: named
            for name in addon_names(asset)
            if (named := _extractor(self.addons.get(name), leaf)) is not None
        }
        if extract is None and not addons:
            return found
        body = msgspec.json.decode(asset.body) if decoded is None else decoded
        if extract is not None:
            found.extend(extract(body["payload"], "/payload"))
        for name, named in addons.items():
            found.extend(named(body["addons"][name], f"/addons/{name}"))
        return found


class _RawBody(msgspec.Struct):
    addons: dict[str, msgspec.Raw]


_NO_ADDONS = b'{"addons":{},'

_SECRET = b'"secret":'
"""What the body of an asset has that refers to a secret."""


def _has_no_addons(asset: Asset) -> bool:
    """Seen from the beginning of the canonical body, whose keys are sorted."""
    return asset.body.startswith(_NO_ADDONS)


_raw_body = msgspec.json.Decoder(_RawBody)


def addon_names(asset: Asset) -> dict[str, msgspec.Raw]:
    """The addons of `asset` by name, not decoded."""
    if _has_no_addons(asset):
        return {}
    return _raw_body.decode(asset.body).addons


@functools.cache
def _body_decoder(payload: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    body = msgspec.defstruct("Body", [("payload", payload)])
    return msgspec.json.Decoder(body)


Extract = Callable[[Any, str], Iterator[Any]]
Leaf = Callable[[Any], Extract | None]
"""From a field's type to what finds in its value what is looked for; None if that is not held itself."""


def _extractor_of(payload: type[msgspec.Struct] | Schema, leaf: Leaf) -> Extract | None:
    if not isinstance(payload, Schema):
        return _extractor(payload, leaf)
    if leaf is _reference_leaf:
        return payload.mentions if payload.references else None
    if leaf is _external_leaf:
        return payload.outside if payload.externals else None
    return payload.secret_data if payload.secrets else None


def sensitive_values(value: Any, kind: type[msgspec.Struct] | Schema, path: str) -> Iterator[tuple[str, Any]]:
    """What stands in plain data meant to be of type `kind` where references to secrets have to stand.

    Args:
        path: JSON pointer to `value`, which those of the answer begin with.
    """
    extract = kind.sensitive if isinstance(kind, Schema) else _extractor(kind, sensitive_leaf)
    return iter(()) if extract is None else extract(value, path)


@functools.cache
def _extractor(kind: Any, leaf: Leaf) -> Extract | None:
    """A function that finds what `leaf` knows in plain data of type `kind`; None if it can have none."""
    held = leaf(kind)
    if held is not None:
        return held
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin is Annotated:
        return _extractor(arguments[0], leaf)
    if origin in (list, tuple, set, frozenset) and arguments:
        return _each(_extractor(arguments[0], leaf), lambda value: enumerate(value))
    if origin is dict:
        return _each(_extractor(arguments[1], leaf), lambda value: value.items())
    if origin in (typing.Union, builtin_types.UnionType):
        return _first([_extractor(item, leaf) for item in arguments if item is not type(None)])
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _fields(kind, leaf)
    return None


def _reference_leaf(kind: Any) -> Extract | None:
    marks = typing.get_args(kind)[1:] if typing.get_origin(kind) is Annotated else ()
    found = next((mark for mark in marks if isinstance(mark, Reference)), None)
    return None if found is None else functools.partial(_mention, mark=found)


def _external_leaf(kind: Any) -> Extract | None:
    return _external if kind is External else None


def _external(value: Any, path: str) -> Iterator[Named]:
    if isinstance(value, dict) and isinstance(value.get("uri"), str):
        yield path, External(value["uri"], value.get("digest"))


def _mention(value: Any, path: str, mark: Reference) -> Iterator[Mention]:
    if isinstance(value, str):
        yield Mention(path, AssetId(value), mark.types, mark.goes_first)


def _parts(pointer: str) -> tuple[str, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def values_at(value: Any, pattern: str, path: str) -> Iterator[tuple[str, Any]]:
    """What stands in plain data where `pattern` says, which is a JSON pointer with `*` for any key or index.

    Args:
        path: JSON pointer to `value`, which those of the answer begin with.
    """
    return _found(value, path, _parts(pattern))


def _found(value: Any, path: str, parts: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if not parts:
        yield path, value
        return
    first, *rest = parts
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        if first in ("*", str(name)):
            yield from _found(item, f"{path}/{name}", tuple(rest))


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


def _fields(kind: type[msgspec.Struct], leaf: Leaf) -> Extract | None:
    hints = typing.get_type_hints(kind, include_extras=True)
    known = {name: extract for name, hint in hints.items() if (extract := _extractor(hint, leaf)) is not None}
    if not known:
        return None

    def every(value: Any, path: str) -> Iterator[Mention]:
        if isinstance(value, dict):
            for name, extract in known.items():
                if value.get(name) is not None:
                    yield from extract(value[name], f"{path}/{name}")

    return every
