"""Damage of a read of a source that cannot have been meant. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lehr.testing.sim.plans.plan import Fault, FaultPlan

_WORKSPACE = "lehr.yaml"


def damaged(contents: Mapping[str, bytes], plan: FaultPlan) -> dict[str, bytes]:
    """`contents` as the fault of `plan` leaves them."""
    found = dict(contents)
    match plan.fault:
        case Fault.TRUNCATED:
            found[plan.path] = found[plan.path][: len(found[plan.path]) // 2]
        case Fault.BLANK:
            found[plan.path] = b""
        case Fault.REPEATED:
            found[plan.path] *= 2
        case Fault.HALVED:
            kept = {*sorted(found)[: len(found) // 2], _WORKSPACE}
            found = {path: found[path] for path in kept}
        case Fault.EMPTIED:
            found = {_WORKSPACE: found[_WORKSPACE]}
    return found
