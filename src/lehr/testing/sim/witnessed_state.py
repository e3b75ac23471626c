"""What a witness has seen written, and questions about it: a model of the store without SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

import msgspec

from lehr.model.addons import TURNDOWN, Turndown
from lehr.model.asset import Asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Decision
from lehr.model.diff import Goal
from lehr.model.incarnation import Incarnation
from lehr.model.operation import LedgerEntry, Operation
from lehr.model.types import Registry
from lehr.testing.sim.selectors import decoded, selected
from lehr.testing.world import THING

_DAY = 86_400.0


class Published(msgspec.Struct):
    """An incarnation as it was published."""

    header: Incarnation
    assets: dict[str, Asset]


class WitnessedState:
    """The state that the writes so far have made.

    Attributes:
        incarnations: by sequence.
        open: operations that have not ended, by asset.
        ledger: the last entry of each asset.
        jumped: True once the clock was set.
    """

    def __init__(self, registry: Registry) -> None:
        self.incarnations: dict[int, Published] = {}
        self.controls: dict[str, Control] = {}
        self.open: dict[str, Operation] = {}
        self.ledger: dict[str, LedgerEntry] = {}
        self.decisions: dict[str, Decision] = {}
        self.jumped = False
        self._registry = registry

    @property
    def newest(self) -> Published | None:
        return self.incarnations[max(self.incarnations)] if self.incarnations else None

    def operation(self, id: str) -> Operation | None:
        """The open operation with this id."""
        return next((item for item in self.open.values() if item.id == id), None)

    def assets(self, sequence: int | None = None) -> dict[str, Asset]:
        """Of an incarnation, by default the newest."""
        found = self.newest if sequence is None else self.incarnations.get(sequence)
        return {} if found is None else found.assets

    def last(self, id: str) -> Asset | None:
        """The last version of the asset in intent."""
        for sequence in sorted(self.incarnations, reverse=True):
            if (asset := self.incarnations[sequence].assets.get(id)) is not None:
                return asset
        return None

    def last_thing(self, id: str) -> Asset | None:
        """The last version in intent of the asset with production that has this id, or had it."""
        versions = (self.incarnations[sequence].assets.get(id) for sequence in sorted(self.incarnations))
        found = [asset for asset in versions if asset is not None and asset.type == THING]
        return found[-1] if found else None

    def active_control(self, kind: ControlKind, asset: Asset, now: float) -> Control | None:
        """The last active control of `kind` over an asset."""
        # One that ends may have run out before the clock went back.
        found = [item for item in self._active(kind, asset, now) if not (self.jumped and item.expires_at)]
        return found[-1] if found else None

    def pin_may_have_ended(self, asset: Asset) -> bool:
        """Whether an asset has a pin that ends, and the clock has jumped: it may be in force, or over."""
        pins = (item for item in self.controls.values() if item.kind is ControlKind.PIN)
        return self.jumped and any(
            item.expires_at is not None and selected(item.selector, asset) for item in pins
        )

    def _active(self, kind: ControlKind, asset: Asset, now: float) -> list[Control]:
        """All of `kind` over an asset, in the order in which they were given."""
        return [
            item
            for item in self.controls.values()
            if item.kind is kind and is_active(item, now) and selected(item.selector, asset)
        ]

    def declared(self, type: str, asset: Asset, now: float) -> bool:
        """Whether a governing asset of `type` selects this one in the newest incarnation, and is active."""
        return any(
            selected(payload["select"], asset)
            for payload in self.payloads(type).values()
            if payload.get("until") is None
            or (not self.jumped and now < msgspec.convert(payload["until"], dt.datetime).timestamp())
        )

    def payloads(self, type: str) -> dict[str, dict[str, Any]]:
        """Of the governing assets of `type` in the newest incarnation, by id."""
        assets = self.assets().items()
        return {id: decoded(item.body)["payload"] for id, item in assets if item.type == type}

    def closed(self, asset: Asset, now: float) -> list[str]:
        """Calendars that let no push of an asset go at `now`, and that are not overridden."""
        overridden = {item.check for item in self._active(ControlKind.OVERRIDE, asset, now)}
        return [
            id
            for id, payload in self.payloads("lehr.Calendar").items()
            if selected(payload["select"], asset)
            and not open_at(payload, now)
            and not (payload["override"] and id in overridden)
        ]

    def turndown(self, asset: Asset) -> Turndown | None:
        return self._registry.addon(asset, TURNDOWN, Turndown)

    def joined(self) -> dict[str, set[str]]:
        """Referrers and targets of each asset, present and past."""
        found: dict[str, set[str]] = {}
        versions = {
            asset.digest: asset for item in self.incarnations.values() for asset in item.assets.values()
        }
        for asset in versions.values():
            for mention in self._registry.mentions(asset):
                found.setdefault(asset.id, set()).add(mention.target)
                found.setdefault(mention.target, set()).add(asset.id)
        return found

    def referrers(self, id: str) -> list[str]:
        """Things that refer to `id`: in intent, or gone from it with a turndown and not removed yet."""
        return [asset.id for asset in self._referring(id, self._cared_for())]

    def stays(self, id: str) -> bool:
        """Whether something that will stay needs `id`, directly or through assets in turndown.

        An asset that merely follows another one does not need it.
        """
        ahead, cared_for = [id], self._cared_for()
        for target in ahead:  # which grows
            for asset in self._referring(target, cared_for, needing=True):
                if self.turndown(asset) is None:
                    return True
                if asset.id not in ahead:
                    ahead.append(asset.id)
        return False

    def _referring(self, id: str, assets: Iterable[Asset], *, needing: bool = False) -> list[Asset]:
        """Those of `assets` other than `id` that refer to it; `needing`: only those that need it."""
        return [
            asset
            for asset in assets
            if asset.id != id
            and any(
                item.target == id and not (needing and item.follows)
                for item in self._registry.mentions(asset)
            )
        ]

    def _cared_for(self) -> list[Asset]:
        """Assets that are in production or will be, among them what was removed and is needed again."""
        ids = {id for item in self.incarnations.values() for id in item.assets}
        found: list[Asset] = []
        removed: list[Asset] = []
        for id in sorted(ids):
            asset = self.last(id)
            assert asset is not None
            entry = self.ledger.get(id)
            # An asset back in intent is managed before any look at it.
            leaves = id not in self.assets() or self.turndown(asset) is not None
            push = self.open.get(id)
            comes_back = push is not None and push.goal is Goal.PRESENT
            if leaves and not comes_back and entry is not None and entry.goal is Goal.ABSENT:
                removed.append(asset)
            elif id in self.assets() or self.turndown(asset) is not None:
                found.append(asset)
        wanted = {asset.id for asset in removed if self.turndown(asset) is not None}
        for asset in found:  # which grows
            targets = {item.target for item in self._registry.mentions(asset)}
            found += [other for other in removed if other.id in targets & wanted]
            wanted -= targets
        return found


def is_active(control: Control, now: float) -> bool:
    """Whether a control that was not lifted still applies."""
    return control.expires_at is None or now < control.expires_at


def open_at(calendar: dict[str, Any], now: float) -> bool:
    """Whether a calendar lets pushes go at `now`; True for all but windows of every day in UTC."""
    windows = calendar["windows"]
    if calendar["timezone"] != "UTC" or not windows or any(len(item["days"]) < 7 for item in windows):
        return True
    minute = now % _DAY / 60
    return any(_minutes(item["from"]) <= minute < _minutes(item["to"]) for item in windows)


def _minutes(time: str) -> int:
    hours, minutes = time.split(":")
    return int(hours) * 60 + int(minutes)


def things(assets: Iterable[Asset]) -> list[Asset]:
    """Those that have production."""
    return [asset for asset in assets if asset.type == THING]
