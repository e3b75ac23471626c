"""Releases after which assets follow intent again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from lehr.base.errors import LehrError
from lehr.enforce.governance import Governance
from lehr.model.asset import Asset, AssetId
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.rollouts.commands import require_reason


def to_intent(
    selector: str,
    assets: Sequence[Asset],
    governance: Governance,
    *,
    departed: Collection[AssetId] = (),
    actor: str,
    reason: str,
    now: float,
    identifier: Callable[[], str],
) -> tuple[Release, ...]:
    """The releases after which those of `assets` follow intent that releases hold.

    Args:
        selector: as it was written; `assets`: those that it selects, as intent last had them.
        departed: those of them that intent no longer has. No rollout includes them, so only a person can
            release what they were last asked for, such as their turndown.
        identifier: makes ids of releases, each greater than the one before.

    Raises:
        LehrError: a policy governs one of them, or releases hold none of them; or there is no reason.
    """
    require_reason(reason)
    for asset in assets:
        policy = None if asset.id in departed else governance.policies.of(asset)
        if policy is not None and not governance.releases.frees(asset.id):
            raise LehrError(
                f"a rollout policy governs {asset.id}",
                code="CTL146",
                why=f"{policy.id} selects it",
                fix=f"see `lehr rollout show {policy.id}`; or change what the policy selects",
            )
    governed = {asset.id: governance.policies.of(asset) is not None for asset in assets}
    held = [id for id, is_governed in governed.items() if governance.releases.of(id, is_governed) is not None]
    if not held:
        why = "they follow intent already"
        raise LehrError(f"no release holds an asset of {selector}", code="CTL147", why=why)
    return tuple(
        Release(
            id=identifier(),
            partition=governance.incarnation.partition,
            asset=id,
            target=None,
            kind=ReleaseKind.PERSON,
            basis=ReleaseBasis(governance.digest),
            at=now,
            actor=actor,
            reason=reason,
        )
        for id in held
    )
