"""Rollouts and explanations as values for other programs: for `-o json`, and over HTTP."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from lehr.base.errors import LehrError
from lehr.model.asset import AssetId
from lehr.model.evidence import Counted, Evidence, Looked
from lehr.model.provenance import Commit
from lehr.model.reason import Reason
from lehr.model.release import Release
from lehr.query.asset_rows import known_asset
from lehr.query.explain import Explanation
from lehr.query.explain_at import Past
from lehr.query.explanation import ExplanationDocument, explanation_document
from lehr.query.partition_view import Reading
from lehr.rollouts.status import RolloutStatus, RolloutSummary, UnitStatus
from lehr.rollouts.story import in_words
from lehr.strategist.overview import AwaitedRelease, Rollouts, evidence_by_policy


class RolloutDocument(RolloutStatus, frozen=True, kw_only=True):
    """The rollouts of one policy.

    Attributes:
        commit: the one that the target was made from; null if none is under way, or it is not known.
    """

    commit: Commit | None


class RolloutEvent(Evidence, frozen=True, kw_only=True):
    """`Evidence` with its fact in words."""

    text: str


class AwaitedReleaseDocument(msgspec.Struct, frozen=True):
    """The release that an asset waits for.

    Attributes:
        release: the one that counts; null if it never had one.
        rollout: the rollouts of the policy that governs it; null if no policy does.
        unit: its unit in the rollout under way; null if it does not take part.
    """

    release: Release | None
    rollout: RolloutSummary | None
    unit: UnitStatus | None


class Why(ExplanationDocument, frozen=True, kw_only=True):
    """Why one asset has its status.

    Attributes:
        release: the release that it waits for; null if it waits for none, or for another time than now.
        past: the time that was asked for, and what is known of it; null for now. All else is of that time.
    """

    release: AwaitedReleaseDocument | None
    past: Past | None = None


def release_awaited(
    reading: Reading, explanation: Explanation, rollouts: Rollouts | None
) -> AwaitedRelease | None:
    """The release that an asset waits for, or one that it depends on; None if it waits for none."""
    id = next((row.id for row in explanation.rows if row.reason == Reason.AWAITING_RELEASE), None)
    if id is None or rollouts is None:
        return None
    asset, _came_with = known_asset(reading, id)
    return rollouts.awaited_by(asset)


def why_document(explanation: Explanation, awaited: AwaitedRelease | None, past: Past | None = None) -> Why:
    """The whole answer to "why?" for one asset."""
    release = None
    if awaited is not None:
        summary = None if awaited.status is None else awaited.status.summary
        release = AwaitedReleaseDocument(awaited.release, summary, awaited.unit)
    return Why(**asdict(explanation_document(explanation)), release=release, past=past)


def rollout_document(status: RolloutStatus, commit: Commit | None) -> RolloutDocument:
    """The rollouts of a policy, and the commit of their target."""
    return RolloutDocument(**asdict(status), commit=commit)


def rollout_events(reading: Reading, policy: str | None) -> list[Evidence]:
    """The evidence of rollouts, newest first, without mere looks.

    Raises:
        LehrError: the policy never had a rollout.
    """
    found = evidence_by_policy(reading.records, reading.partition)
    if policy is not None and policy not in found:
        known = ", ".join(sorted(found)) or "none"
        raise LehrError(
            f"there never was a rollout of {policy}", code="ROL137", why=f"policies with rollouts: {known}"
        )
    items = [item for of_policy in found.values() for item in of_policy]
    chosen = items if policy is None else found[AssetId(policy)]
    shown = (item for item in chosen if not isinstance(item.fact, Looked | Counted))
    return sorted(shown, key=lambda item: item.number, reverse=True)


def event_document(item: Evidence) -> RolloutEvent:
    """A piece of evidence, with its fact in words."""
    return RolloutEvent(**asdict(item), text=in_words(item.fact))
