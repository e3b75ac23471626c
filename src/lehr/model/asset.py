"""Assets: one aspect of production each, with a typed payload and typed addons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NewType

import msgspec

from lehr.base.diagnostics import Position
from lehr.base.digest import Digest, canonical, digest_all
from lehr.model.provenance import Annotated, Derivation

AssetId = NewType("AssetId", str)
"""Unique within a partition."""

Partition = NewType("Partition", str)
"""Name of the unit of generation, access control and enforcement."""

MAX_ASSET_BYTES = 150_000
WARN_ASSET_BYTES = 10_000

_VERSIONS = b',"versions":{'

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:@-]*(/[A-Za-z0-9_][A-Za-z0-9._:@-]*)*")
_MAX_ID = 200
_PARTITION = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


class AssetKey(NamedTuple):
    """An asset among all partitions."""

    partition: Partition
    id: AssetId

    def __str__(self) -> str:
        return f"{self.partition}:{self.id}"


class Asset(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An asset of an incarnation.

    Attributes:
        body: canonical JSON, `{"addons": {type: value}, "payload": value}`, every default
            written out; and `"versions": {type: version}` for types that are not of the first
            version. Kept as bytes; `lehr.model.types.Registry` decodes it when asked.
        digest: of id, type and body. Where it comes from does not count.
        origin: where it was declared, at the revision in which it last changed.
        made_by: the call of a generator that made it; None when an asset file declares it.
        annotated_by: what put addons on it from elsewhere, sorted.
    """

    id: AssetId
    type: str
    body: bytes
    digest: Digest
    origin: Position | None = None
    made_by: Derivation | None = None
    annotated_by: tuple[Annotated, ...] = ()

    def document(self) -> dict[str, Any]:
        """The asset as plain data: id, type, payload, addons.

        And `versions`, if one of its types is not of the first version.
        """
        body = msgspec.json.decode(self.body)
        more = {"versions": body["versions"]} if "versions" in body else {}
        return {
            "id": self.id,
            "type": self.type,
            "payload": body["payload"],
            "addons": body["addons"],
            **more,
        }

    def version(self, name: str) -> int:
        """The version of its own type, or of that of an addon, in which the asset is written."""
        # Where there are versions, the last is a number before two braces: hardly any other body is searched.
        if not 0x30 <= self.body[-3] <= 0x39 or _VERSIONS not in self.body:
            return 1
        return _body_versions.decode(self.body).versions.get(name, 1)


class _BodyVersions(msgspec.Struct):
    versions: dict[str, int] = {}


_body_versions = msgspec.json.Decoder(_BodyVersions)


def make_asset(
    id: AssetId,
    type: str,
    payload: Any,
    addons: Mapping[str, Any],
    origin: Position | None = None,
    made_by: Derivation | None = None,
    annotated_by: tuple[Annotated, ...] = (),
    versions: Mapping[str, int] | None = None,
) -> Asset:
    """The asset with this payload and these addons (typed values or plain data).

    Args:
        versions: of those of its types that are not of the first version.
    """
    content = {"addons": dict(addons), "payload": payload}
    if versions:
        content["versions"] = dict(versions)
    text = canonical(content).decode()
    # Encoded once more: the first encoder's result holds on to its whole buffer, a third more than
    # its content.
    return Asset(id, type, text.encode(), digest_all((id, type, text)), origin, made_by, annotated_by)


def id_problem(text: str) -> str | None:
    """Why `text` is not a valid asset id; None when it can."""
    if not text:
        return "it is empty"
    if len(text) > _MAX_ID:
        return f"it has {len(text)} characters, more than {_MAX_ID}"
    if not _ID.fullmatch(text):
        return (
            "an id consists of letters, digits and _ . : @ -, in parts divided by single slashes, "
            "and each part starts with a letter, a digit or _"
        )
    return None


def partition_problem(text: str) -> str | None:
    """Why `text` is not a valid partition name; None when it can."""
    if _PARTITION.fullmatch(text):
        return None
    return "a partition's name has 1 to 63 lower-case letters, digits and inner hyphens"
