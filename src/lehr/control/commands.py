"""Translates commands into controls, with pure functions of the known state."""

from __future__ import annotations

from collections.abc import Sequence

from lehr.base.clock import iso
from lehr.base.errors import LehrError
from lehr.control.messages import Approve, Controlling, Freeze, Lift, Override, Pause, Pin, Restart
from lehr.model.asset import AssetId, Partition
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Decision
from lehr.model.lifting import lifted_by
from lehr.model.reason import Reason
from lehr.model.selector import Selector, parse_selector
from lehr.model.writes import Pruned

_KINDS: dict[type[Controlling], ControlKind] = {
    Pause: ControlKind.PAUSE,
    Freeze: ControlKind.FREEZE,
    Pin: ControlKind.PIN,
    Approve: ControlKind.APPROVAL,
    Override: ControlKind.OVERRIDE,
    Restart: ControlKind.RESTART,
}


def control_of(
    request: Controlling, *, id: str, partition: Partition, actor: str, now: float, newest: int
) -> Control:
    """The control that `request` asks for.

    Raises:
        LehrError: the request is invalid; the message gives the reason.
    """
    if not request.reason.strip():
        raise LehrError(
            "a reason is needed", code="CTL109", why="later readers need to know why", fix="--reason TEXT"
        )
    if request.seconds is not None and request.seconds <= 0:
        raise LehrError("the duration must be positive", code="CTL110", fix="--for 2h")
    return Control(
        id=id,
        kind=_KINDS[type(request)],
        partition=partition,
        selector=parse_selector(request.selector),
        reason=request.reason,
        actor=actor,
        at=now,
        expires_at=None if request.seconds is None else now + request.seconds,
        incarnation=_incarnation(request, newest),
        check=AssetId(request.check) if isinstance(request, Override) else None,
    )


def _incarnation(request: Controlling, newest: int) -> int | None:
    if not isinstance(request, Pin):
        return None
    chosen = newest - 1 if request.incarnation is None else request.incarnation
    if not 1 <= chosen <= newest:
        raise LehrError(
            f"there is no incarnation {chosen}",
            code="CTL111",
            why=f"the newest is {newest}",
            fix="see `lehr get incarnations`",
        )
    return chosen


def approved(control: Control, request: Approve, waiting: Decision | None) -> Control:
    """`control` bound to the exact diff that waits for approval.

    Raises:
        LehrError: nothing waits, or the diff differs from the one that the person has seen.
    """
    [id] = control.selector.ids or ("",)
    if waiting is None or waiting.condition.reason not in (Reason.APPROVAL_NEEDED, Reason.APPROVAL_MISSING):
        raise LehrError(f"{id} does not wait for an approval", code="CTL112", fix=f"see `lehr why {id}`")
    assert waiting.diff is not None
    digest = waiting.diff.digest()
    if request.diff_digest is not None and not digest.startswith(request.diff_digest):
        raise LehrError(
            f"the diff of {id} has changed",
            code="CTL113",
            why=f"it is {digest[:12]} now",
            fix=f"check it again with `lehr describe {id}`",
        )
    return Control(
        id=control.id,
        kind=control.kind,
        partition=control.partition,
        selector=control.selector,
        reason=control.reason,
        actor=control.actor,
        at=control.at,
        expires_at=control.expires_at,
        diff_digest=digest,
    )


def summary(control: Control, assets: str) -> str:
    """The control, its assets and its end, on one line. `assets` is how many it selects: `4 assets`."""
    what = f"{control.kind} of {control.check}" if control.check else str(control.kind)
    at = "" if control.incarnation is None else f" to incarnation {control.incarnation}"
    until = "" if control.expires_at is None else f" until {iso(control.expires_at)}"
    if control.kind is ControlKind.RESTART:
        before = "" if control.expires_at is None else f", if that is before {iso(control.expires_at)}"
        [id] = control.selector.ids
        return f"{id} will be restarted as soon as its checks allow it{before}; see `lehr why {id}`"
    return f"{what}{at} set on {assets} ({control.selector}){until}"


def require_restartable(selector: Selector, restarts: bool) -> None:
    """Check that a restart would ever be carried out: one that is not would stay for ever.

    Args:
        selector: of the restart.
        restarts: whether the plugin of the asset that it selects can restart what runs.

    Raises:
        LehrError: it is not for one asset, or the plugin cannot.
    """
    if not selector.is_one_id:
        raise LehrError("a restart is for one asset", code="CTL137", fix="name it by its id")
    if not restarts:
        raise LehrError(
            f"{selector} cannot be restarted",
            code="CTL138",
            why="nothing runs for assets of its type, or their plugin cannot restart it",
            fix="restart an asset of type lehr.Process",
        )


def lifted(request: Lift, controls: Sequence[Control]) -> list[Control]:
    """The active controls that `request` lifts.

    Raises:
        LehrError: none is active, or the kind is unknown.
    """
    try:
        kind = ControlKind(request.kind)
    except ValueError as error:
        raise LehrError(f"there is no control {request.kind}", code="CTL116") from error
    selector = parse_selector(request.selector)
    found = lifted_by(kind, selector, controls)
    if not found:
        others = ", ".join(sorted({str(item.selector) for item in controls if item.kind is kind}))
        raise LehrError(
            f"no {kind} is active for {selector}",
            code="CTL117",
            why=f"active ones are for: {others}" if others else f"no {kind} is active",
        )
    return found


def pruned_summary(pruned: Pruned) -> str:
    """The result of pruning, on one line."""
    if pruned == Pruned(rest=pruned.rest):
        return "nothing was old enough to prune"
    return (
        f"pruned: {pruned.incarnations:,} incarnations with {pruned.versions:,} versions of assets, "
        f"{pruned.decisions:,} decisions, {pruned.operations:,} operations, "
        f"{pruned.entries:,} entries of the feed"
    )
