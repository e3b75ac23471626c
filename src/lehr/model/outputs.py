"""Outputs: values that an asset's plugin observes in production, for other assets to read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lehr.base.digest import canonical
from lehr.base.moments import Moment
from lehr.base.pointers import unescaped
from lehr.model.asset import AssetId, AssetKey, Partition

MOST_BYTES = 8192
"""Longest outputs of an asset, as JSON."""


class OutputNames(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs that assets of a type may have.

    Attributes:
        stable: what stays as long as production itself (an identifier, an address): part of the content of
            assets that read it, which are compared again as soon as it changes.
        changing: anything else (a load, a status): assets that read it find the newest value when they
            are compared for another cause.
    """

    stable: frozenset[str] = frozenset()
    changing: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        return name in self.stable or name in self.changing

    def __str__(self) -> str:
        return ", ".join(f"`{name}`" for name in sorted(self.stable | self.changing))


NO_OUTPUTS = OutputNames()


class Outputs(msgspec.Struct, frozen=True):
    """The last values that the plugin of an asset observed.

    Attributes:
        type: of the asset; outputs of another type are never read.
        values: plain data by name, never secret; at most `MOST_BYTES` as JSON. Empty to forget them.
        at: wall-clock seconds since when these are the values.
    """

    partition: Partition
    asset: AssetId
    type: str
    values: dict[str, Any]
    at: Moment

    @property
    def key(self) -> AssetKey:
        return AssetKey(self.partition, self.asset)


class NoSuchValueError(LookupError):
    """There is nothing at a path."""


def name_in(path: str) -> str:
    """The output that a path (`endpoint/port`) leads into."""
    return unescaped(path.partition("/")[0])


def value_at(values: Mapping[str, Any], path: str) -> Any:
    """The value at `path`, whose parts are escaped as those of JSON pointers.

    Raises:
        NoSuchValueError: there is none.
    """
    value: Any = values
    for part in map(unescaped, path.split("/")):
        try:
            value = value[int(part)] if isinstance(value, list) and part.isdecimal() else value[part]
        except (LookupError, TypeError) as error:
            raise NoSuchValueError(path) from error
    return value


def changed_names(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Names of outputs that differ, or are there only before or after."""
    return [
        name
        for name in sorted(before.keys() | after.keys())
        if name not in before or name not in after or canonical(before[name]) != canonical(after[name])
    ]


def problem_with(values: Mapping[str, Any], names: OutputNames) -> str:
    """Why a plugin must not return these outputs; empty if it may."""
    undeclared = [f"`{name}`" for name in sorted(values) if name not in names]
    if undeclared:
        known = f"its type has {names}" if str(names) else "its type has none"
        return f"the output {', '.join(undeclared)}, and {known}"
    size = len(canonical(values))
    return f"outputs of {size:,} bytes; at most {MOST_BYTES:,} are kept" if size > MOST_BYTES else ""
