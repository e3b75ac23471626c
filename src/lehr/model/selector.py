"""Selectors: which assets. An empty selector is an error, never everything."""

from __future__ import annotations

import fnmatch
import re

import msgspec

from lehr.base.errors import LehrError, raised_as
from lehr.model.addons import LABELS, Labels
from lehr.model.asset import Asset, AssetId
from lehr.model.types import addon_names


class Selector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Assets for which every given part holds.

    Attributes:
        all: True selects every asset; excludes the other fields.
        ids: shell patterns; the id matches one of them.
        types: shell patterns; the type matches one of them.
        labels: every one of these labels has this value (addon `lehr.Labels`).
    """

    all: bool = False
    ids: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    labels: dict[str, str] = {}

    def __post_init__(self) -> None:
        parts = bool(self.ids or self.types or self.labels)
        if self.all and parts:
            raise ValueError("`all: true` cannot be combined with ids, types or labels")
        if not self.all and not parts:
            raise ValueError(
                "an empty selector selects nothing; name ids, types or labels, or set `all: true`"
            )

    @property
    def is_one_id(self) -> bool:
        """True when it names exactly one asset by its id."""
        return len(self.exact_ids) == 1 and not (self.types or self.labels)

    @property
    def exact_ids(self) -> tuple[AssetId, ...]:
        """The only ids that it can select; empty when one of them is a pattern, or when it names none."""
        patterns = any(letter in id for id in self.ids for letter in "*?[")
        return () if patterns else tuple(map(AssetId, dict.fromkeys(self.ids)))

    def matches(self, asset: Asset) -> bool:
        """True when `asset` is selected."""
        if self.all:
            return True
        if self.ids and not _any(self.ids, asset.id):
            return False
        if self.types and not _any(self.types, asset.type):
            return False
        return not self.labels or self._labels_match(asset)

    def may_match(self, type: str) -> bool:
        """True when assets of this type can be selected, whatever their ids and labels."""
        return not self.types or _any(self.types, type)

    def may_name(self, id: AssetId) -> bool:
        """True when the asset with this id can be selected, whatever its type and labels."""
        return not self.ids or _any(self.ids, id)

    def may_select(self, id: AssetId, type: str) -> bool:
        """True when an asset of this id and type is selected, or would be with the right labels."""
        return self.may_match(type) and self.may_name(id)

    def _labels_match(self, asset: Asset) -> bool:
        raw = addon_names(asset).get(LABELS)
        if raw is None:
            return False
        have = msgspec.json.decode(raw, type=Labels).labels
        return all(have.get(key) == value for key, value in self.labels.items())

    def __str__(self) -> str:
        if self.all:
            return "all"
        parts = [f"id={item}" for item in self.ids]
        parts += [f"type={item}" for item in self.types]
        parts += [f"label:{key}={value}" for key, value in sorted(self.labels.items())]
        return ",".join(parts)


def parse_selector(text: str) -> Selector:
    """The selector that `text` writes: `web-*`, `type=lehr.File`, `label:team=web,id=a-*`, `all`.

    Raises:
        LehrError: `text` is not valid, or is empty.
    """
    ids: list[str] = []
    types: list[str] = []
    labels: dict[str, str] = {}
    everything = False
    for part in (piece.strip() for piece in text.split(",")):
        name, found, value = part.partition("=")
        if part == "all":
            everything = True
        elif not found and part:
            ids.append(part)
        elif name == "id" and value:
            ids.append(value)
        elif name == "type" and value:
            types.append(value)
        elif re.fullmatch(r"label:.+", name):
            labels[name.removeprefix("label:")] = value
        else:
            raise LehrError(f"selector part {part!r} is not valid", code="MOD104", fix=_SYNTAX)
    with raised_as(LehrError, f"selector {text!r} is not valid", code="MOD105", fix=_SYNTAX, on=ValueError):
        return Selector(everything, tuple(ids), tuple(types), labels)


def selector_of(text: str) -> Selector:
    """Which assets a generator reads: `text` is the name of a type, or a selector as `str` writes it.

    Raises:
        LehrError: as `parse_selector`.
    """
    return parse_selector(text) if "=" in text else Selector(types=(text,))


_SYNTAX = "write an id or pattern, type=TYPE, label:KEY=VALUE, several of these with commas, or the word all"


def _any(patterns: tuple[str, ...], text: str) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
