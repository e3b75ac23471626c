"""The registry of payload and addon types: from an asset's bytes to its meaning."""

from __future__ import annotations

import contextlib
import functools
import re
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.evolution import FIRST, UNCHANGED, Evolution
from lehr.model.references import (
    AnyReference,
    Dependency,
    External,
    Extract,
    Followed,
    Leaf,
    Mention,
    Named,
    Reference,
    external_leaf,
    extractor,
    reference_leaf,
    values_at,
)
from lehr.model.schema import Schema
from lehr.model.secret import Placed, Secret, secret_leaf, sensitive_leaf
from lehr.model.workspace_file import WorkspaceFile, WorkspaceText, file_leaf, text_leaf

__all__ = [
    "AddonType",
    "AnyReference",
    "AssetType",
    "Dependency",
    "External",
    "Followed",
    "Mention",
    "Named",
    "Reference",
    "Registry",
    "Schema",
    "addon_names",
    "is_sensitive",
    "sensitive_values",
    "values_at",
]

T = TypeVar("T")

Kind = type[msgspec.Struct] | Schema
"""Requirements for values of a type: those of a frozen class, or a schema."""


_MOST_KNOWN = 1024
"""Assets whose references and addons are remembered: a turn and its neighbours ask many times for few."""


class TextProblem(msgspec.Struct, frozen=True):
    """Something wrong in a text file of the workspace.

    Attributes:
        line: counts from 1.
    """

    file: str
    line: int
    what: str
    fix: str


class AssetType(msgspec.Struct, frozen=True):
    """A registered payload type.

    Attributes:
        name: also the type of every asset with this payload (`lehr.File`).
        payload: frozen `msgspec.Struct` class, whose docstring is the type's documentation; or the
            schema that a workspace declares.
        governs: True for assets that configure checks and limits. They have no production, and are
            read at the governing incarnation.
        enforced: False for assets without production: no loop enforces them, and they may leave
            intent without a turndown.
        claims: names of the things in production that an asset with this payload alone may
            change (`file:/etc/motd`, `port:8080`). Two assets that claim one thing would undo
            each other for ever, so validation refuses them, in all partitions of this host: a
            name has to mean the same thing everywhere on it. Paths of `file:` and `folder:` may
            be relative to the base folder.
        encloses: the folder that an asset with this payload owns whole; None if it owns none. The field
            `declared` of the payload then gets the names in it that the `file:` claims of other assets lead
            to.
        evolution: which version of the type `payload` is, and how former ones become it.
        text_problems: problems in the text files of the workspace that a payload has; validation
            refuses it.
    """

    name: str
    payload: Kind
    governs: bool = False
    claims: Callable[[Any], Iterable[str]] | None = None
    encloses: Callable[[Any], str | None] | None = None
    enforced: bool = True
    evolution: Evolution = UNCHANGED
    text_problems: Callable[[Any], Iterable[TextProblem]] | None = None


class AddonType(msgspec.Struct, frozen=True):
    """A registered type of addons.

    Attributes:
        name: the addon's key (`lehr.DependsOn`).
        payload, evolution: as of an `AssetType`.
    """

    name: str
    payload: Kind
    evolution: Evolution = UNCHANGED


AnyType = AssetType | AddonType


class Registry:
    """Types by name: those of this installation, and those that a workspace declares.

    Attributes:
        types: all of them.
        addons: addon types by name, each with its requirements.
    """

    def __init__(self, types: Iterable[AnyType] = (), addons: Mapping[str, Kind] | None = None) -> None:
        self.types: dict[str, AssetType] = {}
        self.addons: dict[str, Kind] = dict(addons or {})
        self._evolutions: dict[str, Evolution] = {}
        self._declared: tuple[AnyType, ...] = ()
        self._mentions: dict[tuple[str, bytes], tuple[Mention, ...]] = {}
        for item in types:
            self.add(item)

    def declare(self, types: Iterable[AnyType]) -> None:
        """Know the types that a workspace declares, and no longer those that it declared before.

        One whose name is taken by a type of this installation is left out.
        """
        for item in self._declared:
            self.types.pop(item.name, None)
            self.addons.pop(item.name, None)
            self._evolutions.pop(item.name, None)
        taken = self.types.keys() | self.addons.keys()
        self._declared = tuple(item for item in types if item.name not in taken)
        for item in self._declared:
            self._know(item)
        self._mentions = {}

    @property
    def declared(self) -> tuple[AnyType, ...]:
        """Types that the workspace declares."""
        return self._declared

    def is_declared(self, name: str) -> bool:
        """Whether the workspace declares a type of this name."""
        return any(item.name == name for item in self._declared)

    def add(self, item: AnyType) -> None:
        """Register a type of payloads or addons.

        Raises:
            ValueError: the name is taken.
        """
        if item.name in self.types or item.name in self.addons:
            raise ValueError(f"type {item.name} is registered twice")
        self._know(item)

    def _know(self, item: AnyType) -> None:
        if isinstance(item, AssetType):
            self.types[item.name] = item
        else:
            self.addons[item.name] = item.payload
        if item.evolution is not UNCHANGED:
            self._evolutions[item.name] = item.evolution
        self._mentions = {}  # not emptied: another thread may be about to add to it

    def evolution(self, name: str) -> Evolution:
        """How the type of payloads or addons of this name has changed."""
        return self._evolutions.get(name, UNCHANGED)

    def versions(self, names: Iterable[str]) -> dict[str, int] | None:
        """The versions of those types of payloads or addons that are not of the first one; None for none."""
        if not self._evolutions:  # so it is where assets are made by the million
            return None
        known = ((name, self.evolution(name).version) for name in names)
        return {name: version for name, version in known if version != FIRST} or None

    def inert(self, type_name: str) -> bool:
        """True when assets of this type have no production; those of an unknown type may have."""
        item = self.types.get(type_name)
        return item is not None and (item.governs or not item.enforced)

    def copy(self) -> Registry:
        """Another registry with the same types, to declare others in."""
        other = Registry(addons=self.addons)
        other.types = dict(self.types)
        other._evolutions = dict(self._evolutions)
        other._declared = self._declared
        return other

    def payload(self, asset: Asset, kind: type[T], version: int | None = None) -> T:
        """The payload of `asset` as `kind`; of a declared type, as `dict`.

        Args:
            version: of its type, up to which the caller understands it; None for the newest. It is
                converted to that one, or to the newest that is known.

        Raises:
            TypeError: the asset is of another type.
            StalledError: it is of a version of its type that cannot become the wanted one.
        """
        item = self.types.get(asset.type)
        if item is not None and isinstance(item.payload, Schema) and kind is dict:
            return typing.cast(T, self.data(asset, version))
        if item is None or item.payload is not kind or isinstance(item.payload, Schema):
            raise TypeError(f"asset {asset.id} is a {asset.type}, not a {kind.__name__}")
        has = asset.version(item.name)
        if version is not None and has > version:
            self.data(asset, version)  # which it cannot be
        if has == item.evolution.version:
            return typing.cast(T, _body_decoder(item.payload).decode(asset.body).payload)
        return msgspec.convert(self.data(asset), kind)

    def addon(self, asset: Asset, name: str, kind: type[T]) -> T | None:
        """The addon `name` of `asset` as `kind`; None when the asset has none.

        Raises:
            StalledError: as `payload`.
        """
        raw = addon_names(asset).get(name)
        if raw is None:
            return None
        if asset.version(name) == self.evolution(name).version:
            return msgspec.json.decode(raw, type=kind)
        return msgspec.convert(self._current(asset, name, msgspec.json.decode(raw)), kind)

    def data(self, asset: Asset, version: int | None = None) -> Any:
        """The payload of `asset` as plain data, up to a `version` of its type as in `payload`.

        Raises:
            StalledError: as `payload`.
        """
        return self._current(asset, asset.type, msgspec.json.decode(asset.body)["payload"], version)

    def _current(self, asset: Asset, name: str, value: Any, version: int | None = None) -> Any:
        evolution, has = self.evolution(name), asset.version(name)
        wanted = evolution.version if version is None else min(version, max(evolution.version, has))
        if has == wanted:
            return value
        try:
            return evolution.convert(value, has, wanted)
        except StalledError as error:
            what = f"the {name} of asset {asset.id} cannot be read: {error.what}"
            raise StalledError(what, code=error.code, why=error.why, fix=error.fix) from error

    def claims(self, asset: Asset) -> tuple[str, ...]:
        """Names of the things in production that only this asset may change."""
        item = self.types.get(asset.type)
        if item is None or item.claims is None or isinstance(item.payload, Schema):
            return ()
        return tuple(dict.fromkeys(item.claims(self.payload(asset, item.payload))))

    def encloses(self, asset: Asset) -> str | None:
        """The folder that the asset owns whole; None for most."""
        item = self.types.get(asset.type)
        if item is None or item.encloses is None or isinstance(item.payload, Schema):
            return None
        return item.encloses(self.payload(asset, item.payload))

    def dependencies(self, asset: Asset) -> list[AssetId]:
        """Assets that are pushed before this one, each once, in order of mention."""
        return list(dict.fromkeys(item.target for item in self.mentions(asset) if item.goes_first))

    def mentions(self, asset: Asset) -> list[Mention]:
        """All references that the asset makes, in its payload and its addons."""
        known, key = self._mentions, (asset.type, asset.body)
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            found = known[key] = tuple(self._extracted(asset, reference_leaf))
        return list(found)

    def externals(self, asset: Asset) -> list[Named]:
        """All names in the asset of things outside of intent, after JSON pointers into its document."""
        return self._extracted(asset, external_leaf)

    def secrets(self, asset: Asset) -> list[Placed]:
        """All references to secrets in the asset, after JSON pointers into its document."""
        if _SECRET not in asset.body:
            return []
        return [(path, msgspec.convert(item, Secret)) for path, item in self._extracted(asset, secret_leaf)]

    def files(self, asset: Asset) -> list[tuple[str, WorkspaceFile]]:
        """All files of the workspace that the asset names, after JSON pointers into its document."""
        if _FILE.search(asset.body) is None:
            return []
        return [
            (path, msgspec.convert(item, WorkspaceFile)) for path, item in self._extracted(asset, file_leaf)
        ]

    def texts(self, asset: Asset) -> list[tuple[str, WorkspaceText]]:
        """All text files of the workspace in the asset, after JSON pointers into its document."""
        if _FILE.search(asset.body) is None:
            return []
        return [
            (path, msgspec.convert(item, WorkspaceText)) for path, item in self._extracted(asset, text_leaf)
        ]

    def text_problems(self, asset: Asset) -> list[TextProblem]:
        """Problems in the text files of the workspace that the asset has."""
        item = self.types.get(asset.type)
        if item is None or item.text_problems is None or isinstance(item.payload, Schema):
            return []
        return list(item.text_problems(self.payload(asset, item.payload)))

    def with_secrets(self, asset: Asset, change: Callable[[Secret], Secret]) -> Asset:
        """`asset` with each of its references to secrets changed; itself where nothing changes."""
        return self._rewritten(asset, secret_leaf, Secret, change)

    def with_files(self, asset: Asset, change: Callable[[WorkspaceFile], WorkspaceFile]) -> Asset:
        """`asset` with each file of the workspace that it names changed; itself where nothing changes."""
        if _FILE.search(asset.body) is None:
            return asset
        return self._rewritten(asset, file_leaf, WorkspaceFile, change)

    def with_texts(self, asset: Asset, change: Callable[[WorkspaceText], WorkspaceText]) -> Asset:
        """`asset` with each text file of the workspace changed; itself where nothing changes."""
        if _FILE.search(asset.body) is None:
            return asset
        return self._rewritten(asset, text_leaf, WorkspaceText, change)

    def _rewritten(self, asset: Asset, leaf: Leaf, kind: type[T], change: Callable[[T], T]) -> Asset:
        body = msgspec.json.decode(asset.body)
        changes = False
        for _path, item in self._extracted(asset, leaf, body):
            before = msgspec.convert(item, kind)
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
            body.get("versions"),
        )

    def _extracted(self, asset: Asset, leaf: Leaf, decoded: dict[str, Any] | None = None) -> list[Any]:
        """The values that `leaf` finds in the asset; in `decoded`, where its body is decoded already."""
        item = self.types.get(asset.type)
        extract = None if item is None else _extract_of(item.payload, leaf)
        if extract is None and _has_no_addons(asset):
            return []  # most assets refer to nothing: decoding them is most of what validating costs
        found: list[Any] = []
        addons = {
            name: named
            for name in addon_names(asset)
            if (kind := self.addons.get(name)) is not None and (named := _extract_of(kind, leaf)) is not None
        }
        if extract is None and not addons:
            return found
        body = self._newest(asset) if decoded is None else decoded
        if extract is not None:
            found.extend(extract(body["payload"], "/payload"))
        for name, named in addons.items():
            found.extend(named(body["addons"][name], f"/addons/{name}"))
        return found

    def _newest(self, asset: Asset) -> dict[str, Any]:
        """The asset's body, decoded, as far as possible in the newest versions of its types."""
        body: dict[str, Any] = msgspec.json.decode(asset.body)
        if not self._evolutions:
            return body
        with contextlib.suppress(StalledError):  # its references are looked for where they would be now
            body["payload"] = self._current(asset, asset.type, body["payload"])
        for name, value in body["addons"].items():
            with contextlib.suppress(StalledError):
                body["addons"][name] = self._current(asset, name, value)
        return body


class _RawBody(msgspec.Struct):
    addons: dict[str, msgspec.Raw]


_NO_ADDONS = b'{"addons":{},'

_SECRET = b'"secret":'
"""The parts of an asset's body that refer to a secret."""

_FILE = re.compile(rb'\{"digest":(?:null|"[^"]*"),"file":"')
"""The parts of an asset's body that may name a file of the workspace."""


def _has_no_addons(asset: Asset) -> bool:
    """Seen from the beginning of the canonical body, whose keys are sorted."""
    return asset.body.startswith(_NO_ADDONS)


_raw_body = msgspec.json.Decoder(_RawBody)


_NONE: Mapping[str, msgspec.Raw] = {}


def addon_names(asset: Asset) -> Mapping[str, msgspec.Raw]:
    """The addons of `asset` by name, not decoded."""
    if _has_no_addons(asset):
        return _NONE
    return _addons_of(asset.body)


@functools.lru_cache(_MOST_KNOWN)
def _addons_of(body: bytes) -> Mapping[str, msgspec.Raw]:
    return _raw_body.decode(body).addons


@functools.cache
def _body_decoder(payload: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    body = msgspec.defstruct("Body", [("payload", payload)])
    return msgspec.json.Decoder(body)


def _extract_of(kind: Kind, leaf: Leaf) -> Extract | None:
    if not isinstance(kind, Schema):
        return extractor(kind, leaf)
    if leaf is reference_leaf:
        return kind.mentions if kind.references else None
    if leaf is external_leaf:
        return kind.outside if kind.externals else None
    return kind.secret_data if kind.secrets else None


def is_sensitive(kind: Kind) -> bool:
    """Whether something of type `kind` may have to refer to a secret."""
    return bool(kind.secrets) if isinstance(kind, Schema) else extractor(kind, sensitive_leaf) is not None


def sensitive_values(value: Any, kind: Kind, path: str) -> Iterator[tuple[str, Any]]:
    """Values in plain data of type `kind` where references to secrets are required.

    Args:
        path: JSON pointer to `value`, which those of the answer begin with.
    """
    extract = kind.sensitive if isinstance(kind, Schema) else extractor(kind, sensitive_leaf)
    return iter(()) if extract is None else extract(value, path)
