"""Rollout policies: which assets get new content only when it is released to them, and how that proceeds."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from lehr.model.asset import Asset, AssetId
from lehr.model.governance import ROLLOUT_POLICY
from lehr.model.selector import Selector
from lehr.model.types import AssetType
from lehr.rollouts.metrics import CanaryAnalysis, PolicyMetric
from lehr.rollouts.waves import TargetSelection

MetricName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Seconds = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]


class Validation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How updated units are found to be good or not.

    Attributes:
        look_every: seconds between two looks at them.
        bad_looks: looks in a row at which a unit is bad before its content fails.
        deadline: seconds after its release by which a unit has to be good.
        at_deadline: whether content that is not good by then fails, or waits for a person.
        metrics: by name. All must be good for a unit to be good. A value that is missing is neither good nor
            bad: the unit waits.
        canary: compares the units of each wave with those that are still to be updated. Units are only
            validated once it passes, and the content fails as soon as it fails. Once no unit is left to
            compare with, metrics alone decide.
    """

    look_every: Seconds = 10.0
    bad_looks: Annotated[int, msgspec.Meta(ge=1)] = 3
    deadline: Seconds = 3600.0
    at_deadline: Literal["fail", "hold"] = "hold"
    metrics: dict[MetricName, PolicyMetric] = {}
    canary: CanaryAnalysis | None = None


class SelectedBy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A target selection of one's own.

    Attributes:
        service: its name: that of an installed package, or one that the deployment gives to an address.
        settings: its own. `at_most` and `new` of the target selection apply as well.
    """

    service: Annotated[str, msgspec.Meta(min_length=1)]
    settings: dict[str, Any] = {}

    def __post_init__(self) -> None:
        if both := sorted(self.settings.keys() & {"at_most", "new"}):
            raise ValueError(f"write {' and '.join(both)} in target_selection: it is a limit, not a setting")


class Emergency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One incarnation goes out faster, and takes the place of the rollout under way.

    It counts once: for later incarnations, or the same one with another reason, it has to be declared again.
    All checks apply as usual.

    Attributes:
        target: sequence of the incarnation.
        reason: for people.
        until: the time after which the policy applies as usual, such as `2026-01-31T12:00:00Z`.
        target_selection: which units are updated when. By default all at once.
    """

    target: Annotated[int, msgspec.Meta(ge=1)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    until: datetime
    target_selection: TargetSelection = TargetSelection()

    def __post_init__(self) -> None:
        if self.until.tzinfo is None:
            raise ValueError("until has no time zone: append Z for UTC")

    @property
    def ends_at(self) -> float:
        """`until` in wall-clock seconds."""
        return self.until.timestamp()


class RolloutPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """New content of the selected assets is released to some of them first, and to others once it is good.

    Attributes:
        select: which assets.
        unit: the label whose value the assets of a unit share: they are updated, validated and rolled back
            together. Empty: each asset is a unit. Assets without the label are a unit each.
        target_selection: which units are updated when.
        selected_by: decides that instead, within `at_most` and `new` of the target selection.
        validation: how updated units are found to be good.
        on_failure: whether content that fails is rolled back, or stays where it is until a person decides.
        retries: how often content that has failed may be tried again, when something else has changed.
        trust_for: seconds for which content that has passed on all assets of a unit needs no soak there, as
            when a change is reverted. 0: it always soaks.
        emergency: sends one incarnation out faster.
    """

    select: Selector
    unit: str = ""
    target_selection: TargetSelection = TargetSelection()
    selected_by: SelectedBy | None = None
    validation: Validation = Validation()
    on_failure: Literal["rollback", "hold"] = "rollback"
    retries: Annotated[int, msgspec.Meta(ge=0)] = 1
    trust_for: Annotated[float, msgspec.Meta(ge=0, lt=1e9)] = 0.0
    emergency: Emergency | None = None

    def __post_init__(self) -> None:
        own = msgspec.structs.replace(self.target_selection, at_most=None, new="in_wave")
        if self.selected_by is not None and own != TargetSelection():
            raise ValueError("with selected_by, target_selection has no fields but at_most and new")


ROLLOUT_POLICY_TYPE = AssetType(ROLLOUT_POLICY, RolloutPolicy, governs=True)


class Policy(NamedTuple):
    """A policy, and the id of the asset that has it."""

    id: AssetId
    payload: RolloutPolicy


class Policies:
    """The rollout policies in force."""

    def __init__(self, policies: Iterable[Policy] = (), ungoverned: frozenset[str] = frozenset()) -> None:
        """Arguments as in `policies_of`."""
        self.items = tuple(policies)
        self._ungoverned = ungoverned

    def of(self, asset: Asset) -> Policy | None:
        """The policy that governs an asset; None for none."""
        for policy in self.items:
            if policy.payload.select.matches(asset) and asset.type not in self._ungoverned:
                return policy
        return None

    def __bool__(self) -> bool:
        return bool(self.items)


NO_POLICIES = Policies()


def policies_of(assets: Iterable[Asset], ungoverned: Iterable[str] = ()) -> Policies:
    """The policies that `assets`, all of type `lehr.RolloutPolicy`, hold.

    Args:
        ungoverned: types whose assets no policy governs: those that govern, or have no production.
    """
    payloads = ((asset.id, asset.document()["payload"]) for asset in assets)
    found = [Policy(id, msgspec.convert(payload, RolloutPolicy)) for id, payload in payloads]
    return Policies(found, frozenset(ungoverned)) if found else NO_POLICIES
