"""Whether a control plane works, and what does not. Pure: `ControlPlane.vitals` collects the facts.

*Alive* means that its loops make progress: if they do not, a restart helps. *Ready* also means that it can
do its work: it has the lease, the store takes its writes, and the newest incarnation is enforced. A restart
helps with none of these. A source that cannot be read is reported, but does not count: the last incarnation
is still enforced.
"""

from __future__ import annotations

import msgspec

STALLED_SECONDS = 120.0
"""Seconds without progress after which a loop counts as stalled. By default, a comparison may take 30."""

UNWRITTEN_SECONDS = 30.0
"""Seconds without a commit after which the store counts as hanging. The lease is renewed every five."""

UNREAD_SECONDS = 300.0
"""Seconds for which the source may be unreadable without a remark."""


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a running control plane; texts are empty if there is nothing to report.

    Attributes:
        defect: what ended a loop.
        overdue: seconds by which the turn that is due first is late.
        queued: turns that wait to begin.
        since_turn: seconds since the last turn ended, or since the start.
        store_trouble: why the store does not take writes.
        since_commit: seconds since the last commit, or since the start.
        standby: why this process does nothing: it has not started yet, or another one has the lease.
        intent_trouble: why the newest incarnation is not enforced.
        since_source: seconds since the source was read, or since the start.
    """

    defect: str = ""
    overdue: float = 0.0
    queued: int = 0
    since_turn: float = 0.0
    store_trouble: str = ""
    since_commit: float = 0.0
    standby: str = ""
    intent_trouble: str = ""
    since_source: float = 0.0


class HealthCheck(msgspec.Struct, frozen=True):
    """One aspect of health.

    Attributes:
        why: the reason of a failure; empty if it is ok.
        required: False for a remark, which does not count.
    """

    name: str
    ok: bool
    why: str = ""
    required: bool = True


class Health(msgspec.Struct, frozen=True):
    """The answer of `/healthz` and `/readyz`.

    Attributes:
        status: `ok` or `failing`.
    """

    status: str
    checks: tuple[HealthCheck, ...]

    @property
    def ok(self) -> bool:
        return self.status == "ok"


def alive(vitals: Vitals) -> Health:
    """Whether the loops make progress."""
    return _health(_check("loops", _stalled(vitals)))


def ready(vitals: Vitals) -> Health:
    """Whether production is being kept as the newest incarnation intends."""
    unread = vitals.since_source > UNREAD_SECONDS and not vitals.standby
    source = f"the source was not read for {vitals.since_source:.0f}s" if unread else ""
    return _health(
        _check("loops", _stalled(vitals)),
        _check("lease", vitals.standby),
        _check("store", _unwritten(vitals)),
        _check("intent", vitals.intent_trouble),
        HealthCheck("source", not source, source, required=False),
    )


def _stalled(vitals: Vitals) -> str:
    if vitals.defect:
        return f"a loop has ended: {vitals.defect}"
    if vitals.overdue > STALLED_SECONDS:
        return f"a turn is due since {vitals.overdue:.0f}s and was not queued"
    if vitals.queued and vitals.since_turn > STALLED_SECONDS:
        return f"{vitals.queued} turns are queued, and none has ended for {vitals.since_turn:.0f}s"
    return ""


def _unwritten(vitals: Vitals) -> str:
    if vitals.store_trouble:
        return vitals.store_trouble
    if vitals.since_commit > UNWRITTEN_SECONDS:
        return f"the store does not answer: nothing was written for {vitals.since_commit:.0f}s"
    return ""


def _check(name: str, why: str) -> HealthCheck:
    return HealthCheck(name, not why, why)


def _health(*checks: HealthCheck) -> Health:
    failing = any(check.required and not check.ok for check in checks)
    return Health("failing" if failing else "ok", checks)
