"""Judges drafts of existing production: which can be adopted unchanged, and why the others cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard, TypeVar

import msgspec

from lehr.base.clock import Clock
from lehr.base.diagnostics import Position
from lehr.base.errors import LehrError
from lehr.dry_run.revealed import revealed_secret
from lehr.enforce.intent_readers import RecordingReader
from lehr.enforce.lane import Lane
from lehr.enforce.output_reads import Observed
from lehr.enforce.state import DiffFailed
from lehr.generate.typing.conversion import convert
from lehr.model.asset import Asset, AssetId, AssetKey, Partition
from lehr.model.diff import Target
from lehr.model.outputs import NO_OUTPUTS
from lehr.model.provider import PROVIDED_BY
from lehr.model.types import Registry
from lehr.sdk.plugin import AssetPlugin, Found
from lehr.sdk.provider import configured

LEFT_OUT = "left out because it looks like a secret; replace it with a reference to the secret"

T = TypeVar("T")

_INCARNATION = 1
_NOWHERE = Position("")


class Draft(msgspec.Struct, frozen=True):
    """A draft of an asset that can be shown.

    Attributes:
        payload: with `LEFT_OUT` in place of every value that looks like a secret.
        obstacle: why it cannot be adopted unchanged; if empty, its diff is empty now.
        addons: by name.
    """

    id: str
    type: str
    payload: dict[str, Any]
    notes: tuple[str, ...] = ()
    obstacle: str = ""
    addons: dict[str, Any] = {}


async def drafts_of(
    plugin: AssetPlugin,
    query: Sequence[str],
    partition: Partition,
    registry: Registry,
    clock: Clock,
    provider: Asset | None = None,
) -> list[Draft]:
    """The drafts that `plugin` finds, each judged: it must be valid, contain no secret, and match production.

    Those of types without production are not judged and not returned: the drafts after them read them.

    Args:
        provider: the `lehr.Provider` with whose configuration to look; the drafts name it.

    Raises:
        LehrError: the plugin cannot discover, or failed.
    """
    judge = _Judge(plugin, partition, registry, clock, provider)
    try:
        if provider is None:
            discovered = plugin.discover(query, partition)
        else:
            discovered = plugin.discover_in(configured(provider), query, partition)
        return [await judge.draft(found) async for found in discovered if not judge.is_only_read(found)]
    except LehrError:
        raise
    except Exception as error:
        raise LehrError(f"the plugin failed: {type(error).__name__}: {error}", code="CLI104") from error


def _is_option(word: object) -> TypeGuard[str]:
    return isinstance(word, str) and word.startswith("-") and "=" not in word


async def _no_turn(asset: Asset) -> None:
    """Drafts have no turns."""


class _Earlier:
    """The other assets that a draft may read: drafts that were found before."""

    def __init__(self) -> None:
        self.assets: dict[AssetId, Asset] = {}
        self.outputs: dict[AssetId, dict[str, Any]] = {}

    def asset(self, key: AssetKey, sequence: int) -> Asset | None:
        return self.assets.get(key.id)

    async def run(self, look: Callable[[], T]) -> T:
        return look()


class _Judge:
    def __init__(
        self,
        plugin: AssetPlugin,
        partition: Partition,
        registry: Registry,
        clock: Clock,
        provider: Asset | None,
    ) -> None:
        self._lane: Lane[Asset] = Lane(plugin, clock, _no_turn)
        self._plugin = plugin
        self._partition = partition
        self._registry = registry
        self._earlier = _Earlier()
        self._addons: dict[str, Any] = {}
        if provider is not None:
            self._addons = {PROVIDED_BY: {"provider": provider.id}}
            self._earlier.assets[provider.id] = provider

    def is_only_read(self, found: Found) -> bool:
        """Whether a draft is of a type without production. Later drafts can read it."""
        if not self._registry.inert(found.type):
            return False
        document = {"id": found.id, "type": found.type, "payload": found.payload}
        asset, problems = convert(document, self._registry, _NOWHERE, lambda pointer: _NOWHERE)
        if asset is None:
            raise LehrError(f"asset {found.id} is not valid", code="CLI199", why=problems[0].what)
        self._earlier.assets[asset.id] = asset
        return True

    async def draft(self, found: Found) -> Draft:
        payload = self._without_secrets(found.payload)
        notes, obstacle = found.notes, found.obstacle
        if payload != found.payload:
            obstacle = obstacle or "intent must not contain secrets"
        elif not obstacle:
            notes, obstacle = await self._judged(found)
        return Draft(found.id, found.type, payload, notes, obstacle, self._addons)

    async def _judged(self, found: Found) -> tuple[tuple[str, ...], str]:
        document = {"id": found.id, "type": found.type, "payload": found.payload, "addons": self._addons}
        asset, problems = convert(document, self._registry, _NOWHERE, lambda pointer: _NOWHERE)
        if asset is None:
            return found.notes, f"the draft is not valid: {problems[0].what}"
        notes = found.notes + tuple(item.what for item in problems)
        return notes, await self._differing(asset)

    async def _differing(self, asset: Asset) -> str:
        """The changes that a push of the asset would make; empty if there are none."""
        target = Target(self._partition, asset.id, asset.type, _INCARNATION)
        read = RecordingReader(
            self._earlier, self._registry, self._partition, _INCARNATION, observed=self._observed
        )
        read.know(asset)
        found = await self._lane.diff(target, asset, read)
        if isinstance(found, DiffFailed):
            return found.message
        self._earlier.assets[asset.id] = asset
        self._earlier.outputs[asset.id] = found.diff.outputs if isinstance(found.diff.outputs, dict) else {}
        paths = ", ".join(change.path for change in found.diff.changes)
        return f"it does not match production; a push would change {paths}" if paths else ""

    def _observed(self, asset: Asset) -> Observed:
        names = self._plugin.outputs.get(asset.type, NO_OUTPUTS)
        return Observed(names, self._earlier.outputs.get(asset.id, {}))

    def _without_secrets(self, value: Any, key: str = "payload") -> Any:
        if isinstance(value, dict):
            return {name: self._without_secrets(item, name) for name, item in value.items()}
        if isinstance(value, list):
            # The word after an option is its value (`--password`, then the password).
            before = [None, *value[:-1]]
            keys = [item.lstrip("-") if _is_option(item) else key for item in before]
            return [self._without_secrets(item, name) for item, name in zip(value, keys, strict=True)]
        return LEFT_OUT if isinstance(value, str) and revealed_secret(key, value) else value
