"""Where assets come from, as the store keeps it next to them: in no digest, and small."""

from __future__ import annotations

import msgspec

from lehr.base.diagnostics import Position
from lehr.model.asset import Asset
from lehr.model.provenance import Annotated, Derivation


class Origin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that `Asset` records of where it comes from. Also reads what was written as a `Position`."""

    file: str = ""
    line: int = 0
    column: int = 0
    made_by: Derivation | None = None
    annotated_by: tuple[Annotated, ...] = ()

    @property
    def position(self) -> Position | None:
        """`Asset.origin`."""
        return Position(self.file, self.line, self.column) if self.file else None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Origin | None).decode
_NOWHERE = Origin()


def origin_bytes(asset: Asset) -> bytes:
    """The stored form of where `asset` comes from."""
    at = asset.origin or Position("")
    return _encode(Origin(at.file, at.line, at.column, asset.made_by, asset.annotated_by))


def origin_of(kept: bytes | None) -> Origin:
    """Reverses `origin_bytes`; `None` if nothing was kept."""
    return _NOWHERE if kept is None else _decode(kept) or _NOWHERE
