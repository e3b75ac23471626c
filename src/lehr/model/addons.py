"""Addons that Lehr itself understands, for assets of whatever type."""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.model.types import AnyReference, Dependency

DEPENDS_ON = "lehr.DependsOn"
TURNDOWN = "lehr.Turndown"
OWNER = "lehr.Owner"
LABELS = "lehr.Labels"
AFFECTED_CLUSTERS = "lehr.AffectedClusters"

RULE_VARIABLES = ("mine", "theirs")
"""What a `Rule` may speak of."""

Seconds = Annotated[float, msgspec.Meta(ge=0)]


class VersionNeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version of another asset that this one needs.

    Attributes:
        asset: whose version; its plugin says which one production has.
        at_least: the lowest that will do; numbers in dotted versions compare as numbers.
    """

    asset: AnyReference
    at_least: str


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition on another asset, in CEL.

    Attributes:
        asset: the other one.
        allow: true lets the push go. It may use `mine` and `theirs`, the diffs of the two, each with
            `empty`, `capacity` (null if unknown), `version_from`, `version_to` (text or null),
            `destructive`, `disruptive`, and `changes`, the paths that differ.
        message: why the asset waits, for people.
    """

    asset: AnyReference
    allow: Annotated[str, msgspec.Meta(min_length=1)]
    message: str = ""


class DependsOn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """In which order this asset and others are pushed.

    Attributes:
        assets: static order: these need no push before this one gets one.
        capacity: what this asset sends load to. Where both change their capacity, the order follows
            the change: growing, those named here go first; shrinking, this asset does.
        versions: this asset never runs ahead of these versions, and what is named here never falls
            behind what runs; so also after a rollback.
        rules: conditions for what none of these orders says.
    """

    assets: list[Dependency] = []
    capacity: list[AnyReference] = []
    versions: list[VersionNeed] = []
    rules: list[Rule] = []


class Turndown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Take this asset out of production: the only request for it there is.

    Attributes:
        reason: why, for whoever asks later.
        stand_seconds: how long this addon must have stood before anything is touched.
        fence_seconds: how long the asset stays fenced (out of service, but brought back at once
            by taking this addon away) before it is removed for good.
    """

    reason: Annotated[str, msgspec.Meta(min_length=1)]
    stand_seconds: Seconds = 0.0
    fence_seconds: Seconds = 0.0


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who answers for this asset.

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
    """Where trouble with this asset would be felt.

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
