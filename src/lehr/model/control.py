"""Controls that operators set on a running Lehr: pins, pauses, freezes, approvals, overrides, restarts.

They are kept in the store, each with who set it, when, why and until when.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

from lehr.base.digest import Digest
from lehr.base.moments import Moment
from lehr.model.asset import AssetId, Partition
from lehr.model.selector import Selector


class ControlKind(enum.StrEnum):
    """Effect of a control on the assets it selects.

    PAUSE: no turn at all. FREEZE: everything but the push. PIN: content stays at one
    incarnation. APPROVAL: one exact diff may be carried out. OVERRIDE: a check that allows
    it lets pushes through. RESTART: what runs is restarted once, by a push; then the control is lifted.
    """

    PAUSE = "pause"
    FREEZE = "freeze"
    PIN = "pin"
    APPROVAL = "approval"
    OVERRIDE = "override"
    RESTART = "restart"


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """One control, active until it is lifted or expires.

    Attributes:
        id: sorts by time.
        actor: who set it, from the control channel's peer credentials.
        at, expires_at: wall-clock seconds; None never expires.
        incarnation: for PIN, the sequence to stay at.
        diff_digest: for APPROVAL, the exact diff.
        check: for OVERRIDE, the id of the asset that configures the check.
    """

    id: str
    kind: ControlKind
    partition: Partition
    selector: Selector
    reason: str
    actor: str
    at: Moment
    expires_at: Moment | None = None
    incarnation: int | None = None
    diff_digest: Digest | None = None
    check: AssetId | None = None

    def is_active(self, now: float) -> bool:
        """True until it expires (`now` in wall-clock seconds)."""
        return self.expires_at is None or now < self.expires_at


_GIVEN = {
    "lift": "revoke",
    "lift pause": "resume",
    "lift freeze": "unfreeze",
    "lift pin": "unpin",
    "refresh": "sync",
    "prune": "store prune",
}
"""Requests that have another name than the command that sends them; those of `lift` by kind."""


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One command that an operator gave over the control channel, and its result."""

    at: Moment
    actor: str
    command: str
    arguments: dict[str, Any]
    result: str

    @property
    def given(self) -> str:
        """The command of `lehr` that the operator gave."""
        found = _GIVEN.get(f"{self.command} {self.arguments.get('kind')}") or _GIVEN.get(self.command)
        return found or self.command
