"""Governance of a partition now: the newest incarnation's checks, and operators' controls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lehr.base.digest import Digest
from lehr.model.asset import Asset, AssetId, Partition
from lehr.model.control import Control
from lehr.model.control_index import ControlIndex
from lehr.model.decision import Reservation
from lehr.model.governance import DELETION_BUDGET, OBSERVE_ONLY, ROLLOUT_POLICY, DeletionBudget, ObserveOnly
from lehr.model.incarnation import Incarnation
from lehr.model.pinning import NO_HOLDS, Holds
from lehr.model.release import NO_RELEASES, Releases
from lehr.model.selector import Selector
from lehr.model.types import Registry
from lehr.rollouts.policy import NO_POLICIES, Policies, policies_of
from lehr.sdk.store import Store

_DEFAULT_BUDGET = DeletionBudget()


class Governance(msgspec.Struct, frozen=True):
    """One moment's governing incarnation and controls. Replaced as a whole when either changes."""

    incarnation: Incarnation
    assets: dict[str, tuple[Asset, ...]]
    controls_version: int
    controls: ControlIndex
    observed: tuple[ObserveOnly, ...]
    removals: tuple[Reservation, ...]
    releases: Releases = NO_RELEASES
    policies: Policies = NO_POLICIES

    @property
    def sequence(self) -> int:
        return self.incarnation.sequence

    @property
    def digest(self) -> Digest:
        return self.incarnation.governance

    def of_type(self, type: str) -> Sequence[Asset]:
        """Governing assets of one type, by id."""
        return self.assets.get(type, ())

    def controls_over(self, id: AssetId, now: float) -> Sequence[Control]:
        """The unexpired controls that may select an asset, in the order in which they were set."""
        return self.controls.over(id, now)

    def holds(self, asset: Asset, now: float) -> Holds:
        """The controls and the release that may keep an asset, as intent last had it, from newer content."""
        controls = self.controls.over(asset.id, now)
        governed = bool(self.policies.items) and self.policies.of(asset) is not None
        released = self.releases.of(asset.id, governed)
        return Holds(controls, released) if controls or released is not None else NO_HOLDS

    def holds_otherwise(self, before: Governance, ids: Iterable[AssetId], now: float) -> bool:
        """Whether other controls may select one of these assets, or another release counts, than before."""
        return any(
            self.releases.of(id) != before.releases.of(id)
            or self.controls.over(id, now) != before.controls.over(id, now)
            for id in ids
        )

    def selectors_changed_from(self, before: Governance) -> list[Selector]:
        """The selectors of the controls that only one of the two has."""
        old, new = ({control.id: control for control in item.controls} for item in (before, self))
        return [(new.get(id) or old[id]).selector for id in sorted(old.keys() ^ new.keys())]

    def observe(self, asset: Asset) -> str | None:
        """Why `asset` is only observed; None when it is not."""
        for item in self.observed:
            if item.select.matches(asset):
                return item.reason
        return None


class AsOf(msgspec.Struct, frozen=True):
    """Governance at the moment at which a turn looks at other assets.

    Attributes:
        now: wall-clock seconds.
    """

    governance: Governance
    now: float

    @property
    def sequence(self) -> int:
        return self.governance.sequence

    def holds(self, asset: Asset) -> Holds:
        """The controls and the release that may keep an asset, as intent last had it, from newer content."""
        return self.governance.holds(asset, self.now)


def load(
    store: Store,
    registry: Registry,
    incarnation: Incarnation,
    now: float,
    known: Releases = NO_RELEASES,
) -> Governance:
    """Governance of the partition of `incarnation`, its newest, at `now` (wall-clock seconds).

    Args:
        known: releases as they were read last: only what has changed since is read again.
    """
    partition = incarnation.partition
    types = sorted(name for name, item in registry.types.items() if item.governs)
    assets: dict[str, list[Asset]] = {}
    for asset in store.intent.assets(partition, incarnation.sequence, types):
        assets.setdefault(asset.type, []).append(asset)
    version, controls = store.records.controls(partition, now)
    return Governance(
        incarnation,
        {type: tuple(found) for type, found in assets.items()},
        version,
        ControlIndex(controls),
        tuple(registry.payload(asset, ObserveOnly) for asset in assets.get(OBSERVE_ONLY, ())),
        _removals(partition, [registry.payload(a, DeletionBudget) for a in assets.get(DELETION_BUDGET, ())]),
        load_releases(store, partition, known),
        policies_of(assets.get(ROLLOUT_POLICY, ()), filter(registry.inert, registry.types)),
    )


def load_releases(store: Store, partition: Partition, known: Releases) -> Releases:
    """The releases of a partition now, of which those in `known` were read before."""
    version, changed = store.records.released(partition, known.version)
    if version < known.version:  # the state is another one, as after a restored backup
        version, changed = store.records.released(partition)
        known = NO_RELEASES
    return known if version == known.version else known.updated(version, changed)


def _removals(partition: Partition, budgets: list[DeletionBudget]) -> tuple[Reservation, ...]:
    """A removal needs a share of every budget, and the shares are the same: the last one counts longest."""
    by_time = sorted(budgets or [_DEFAULT_BUDGET], key=lambda item: (item.per_seconds, item.removals))
    # A removal that fails and is retried must not use up the shares that others wait for.
    return tuple(
        Reservation(f"removals/{partition}", item.removals, item.per_seconds, once=True) for item in by_time
    )
