"""The write that carries out a step of a rollout."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lehr.enforce.governance import Governance
from lehr.model.asset import AssetId, Partition
from lehr.model.evidence import Evidence
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.writes import WriteReleases
from lehr.rollouts.plan import Step
from lehr.rollouts.policy import Policy
from lehr.strategist.contents import Content

_REASONS = {
    ReleaseKind.BASELINE: "it had this content when the policy came into force",
    ReleaseKind.FORWARD: "its rollout has reached it",
    ReleaseKind.ROLLBACK: "newer content failed",
}


def write_of(
    step: Step,
    policy: Policy,
    governance: Governance,
    content: Callable[[AssetId, int], Content | None],
    partition: Partition,
    now: float,
    seen: int,
    identifier: Callable[[], str],
) -> WriteReleases:
    """The releases and the evidence of a step: refused if releases or policies have changed since.

    Args:
        content: of an asset in an incarnation; None if that does not have it.
        seen: number of the newest evidence that the step rests on.
        identifier: makes ids of releases, each greater than the one before.
    """
    basis = ReleaseBasis(governance.digest, policy.id, seen)

    def releases() -> Iterator[Release]:
        for grant in step.grants:
            found = content(grant.asset, grant.target)
            if found is not None:
                yield Release(
                    id=identifier(),
                    partition=partition,
                    asset=grant.asset,
                    target=grant.target,
                    kind=grant.kind,
                    basis=basis,
                    at=now,
                    content_key=found.key,
                    reads=found.reads,
                    rollout=step.rollout,
                    reason=_REASONS.get(grant.kind, ""),
                )

    evidence = tuple(
        Evidence(partition=partition, policy=policy.id, rollout=step.rollout, at=now, fact=fact)
        for fact in step.facts
    )
    version = governance.releases.version
    return WriteReleases(
        partition, version, governance.digest, now, tuple(releases()), step.withdrawn, evidence
    )
