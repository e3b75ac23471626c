"""Addons that Lehr itself understands, for assets of any type."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.model.asset import Asset
from lehr.model.types import AnyReference, Dependency, addon_names

DEPENDS_ON = "lehr.DependsOn"
TURNDOWN = "lehr.Turndown"
OWNER = "lehr.Owner"
LABELS = "lehr.Labels"
AFFECTED_CLUSTERS = "lehr.AffectedClusters"

RULE_VARIABLES = ("mine", "theirs")
"""Variables of a `Rule`."""

Seconds = Annotated[float, msgspec.Meta(ge=0)]


class VersionNeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version of another asset that this one needs.

    Attributes:
        asset: the other asset; its plugin reports which version production has.
        at_least: the lowest sufficient version; numbers in dotted versions compare as numbers.
    """

    asset: AnyReference
    at_least: str


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition on another asset, in CEL.

    Attributes:
        asset: the other asset.
        allow: the push may start if this is true. It may use `mine` and `theirs`, the diffs of the two,
            each with `empty`, `capacity` (null if unknown), `version_from`, `version_to` (text or null),
            `destructive`, `disruptive`, and `changes`, the paths that differ.
        message: why the asset waits, for `lehr why`.
    """

    asset: AnyReference
    allow: Annotated[str, msgspec.Meta(min_length=1)]
    message: str = ""


class DependsOn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The order in which this asset and others are pushed.

    Attributes:
        assets: static order: these must not need a push when this one is pushed.
        capacity: assets that this one sends load to. Where both change their capacity, the order follows
            the change: those named here grow first, and this asset shrinks first.
        versions: this asset never runs ahead of these versions, and the assets named here never fall
            behind the version that runs. This also holds after a rollback.
        rules: conditions that none of these orders can express.
    """

    assets: list[Dependency] = []
    capacity: list[AnyReference] = []
    versions: list[VersionNeed] = []
    rules: list[Rule] = []


class Turndown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Remove this asset from production. There is no other way to request that.

    Attributes:
        reason: why, for later readers.
        stand_seconds: how long this addon must have been published before anything is touched.
        fence_seconds: how long the asset stays fenced (out of service, but back immediately when
            this addon is removed) before it is removed for good.
    """

    reason: Annotated[str, msgspec.Meta(min_length=1)]
    stand_seconds: Seconds = 0.0
    fence_seconds: Seconds = 0.0


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who is responsible for this asset.

    Attributes:
        team: name of a team or person.
        contact: address, channel or rota.
    """

    team: str
    contact: str = ""


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names to select and group assets by.

    Attributes:
        labels: value by key.
    """

    labels: dict[str, str]


class AffectedClusters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The clusters that trouble with this asset would affect.

    Attributes:
        clusters: names of clusters; the single name `global` stands for all.
    """

    clusters: list[str]


ADDONS: dict[str, type[msgspec.Struct]] = {
    DEPENDS_ON: DependsOn,
    TURNDOWN: Turndown,
    OWNER: Owner,
    LABELS: Labels,
    AFFECTED_CLUSTERS: AffectedClusters,
}


def is_turned_down(asset: Asset | None) -> bool:
    """Whether there is an asset, and it is marked for removal from production."""
    return asset is not None and TURNDOWN in addon_names(asset)
