"""Providers: configurations of plugins in other processes, such as accounts and regions, as assets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from lehr.model.secret import SecretsWithin, reference_problem
from lehr.model.types import AddonType, AssetType, Reference

PROVIDER = "lehr.Provider"
PROVIDED_BY = "lehr.ProvidedBy"

_MOST_BYTES = 1 << 16
_MOST_DEPTH = 32


class Provider(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One configuration of a plugin that runs in a process of its own: an account, a region, a server.

    Assets name it in the addon `lehr.ProvidedBy`. All providers of a plugin share its process.

    Attributes:
        plugin: the plugin's name in the deployment's file of plugins.
        config: settings for the plugin, in its own terms. `{secret: "env:TOKEN"}` at any depth refers to a
            secret.
        concurrency: most comparisons at the same time, and most pushes at the same time. Default: only the
            limits of the plugin itself.
        rate: most comparisons and pushes that start in a second, on average. Only comparisons wait. Pushes,
            each of which follows a comparison, count and do not wait. Default: no limit.
    """

    plugin: Annotated[str, msgspec.Meta(min_length=1)]
    config: Annotated[dict[str, Any], SecretsWithin()] = {}
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    rate: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None

    def __post_init__(self) -> None:
        if problems := list(_problems(self.config)):
            raise ValueError("; ".join(problems))


class ProvidedBy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The provider with whose configuration the plugin compares and pushes this asset.

    Attributes:
        provider: a `lehr.Provider` of the plugin that serves this asset's type.
    """

    provider: Annotated[str, Reference((PROVIDER,))]


TYPES = (AssetType(PROVIDER, Provider, enforced=False), AddonType(PROVIDED_BY, ProvidedBy))


def _problems(config: dict[str, Any]) -> Iterator[str]:
    try:
        size = len(msgspec.json.encode(config))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
        yield "`config` must be plain JSON"
        return
    if size > _MOST_BYTES:
        yield f"`config` has {size:,} bytes; at most {_MOST_BYTES:,} are allowed"
    yield from _wrong_parts(config, "config", 0)


def _wrong_parts(value: Any, path: str, depth: int) -> Iterator[str]:
    if depth > _MOST_DEPTH:
        yield f"`config` is nested more than {_MOST_DEPTH} levels deep"
        return
    if isinstance(value, dict):
        if "secret" in value and value.keys() <= {"secret", "version", "digest"}:
            # Never with the value: it may be the secret, by mistake.
            if problem := reference_problem(value):
                yield f"`{path}` does not refer to a secret: {problem}"
            return
        for name, item in value.items():
            yield from _wrong_parts(item, f"{path}/{name}", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _wrong_parts(item, f"{path}/{index}", depth + 1)
