"""The feed of a partition: what each commit changed, in the order of the commits."""

from __future__ import annotations

import enum

import msgspec

from lehr.base.moments import Moment
from lehr.model.asset import AssetId


class ChangeKind(enum.StrEnum):
    """The kind of a change, and the record that shows it.

    INCARNATION: one was published; `record` is its sequence.
    DECISION: a decision was recorded, whose condition is then that of its asset; `record` is its number.
    RESCHEDULED: an asset has the same condition, and is due at another time.
    OPERATION_STARTED, OPERATION_UNKNOWN, OPERATION_ENDED: a push was admitted, its outcome is not known, or
    it has ended; `record` is its id.
    CONTROL_SET, CONTROL_LIFTED: `record` is its id. One that expires is not written, and so not reported.
    RELEASED, RELEASE_WITHDRAWN: `record` is the id of the release.
    ROLLOUT: evidence of a rollout was written; `asset` is its policy, and `record` its id.
    """

    INCARNATION = "incarnation"
    DECISION = "decision"
    RESCHEDULED = "rescheduled"
    OPERATION_STARTED = "operation-started"
    OPERATION_UNKNOWN = "operation-unknown"
    OPERATION_ENDED = "operation-ended"
    CONTROL_SET = "control-set"
    CONTROL_LIFTED = "control-lifted"
    RELEASED = "released"
    RELEASE_WITHDRAWN = "release-withdrawn"
    ROLLOUT = "rollout"


class RecordChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One change: a reference, so that a reader reads the record as it is now.

    Attributes:
        asset: that the record is about; empty if it is about more than one.
        record: its number or id; empty where the asset names it.
    """

    kind: ChangeKind
    asset: AssetId = AssetId("")
    record: str = ""


class FeedEntry(msgspec.Struct, frozen=True):
    """Everything that one commit changed, in the order of its writes.

    Attributes:
        position: the number of the entry, one more than that of the entry before.
        at: wall-clock seconds of the latest of its writes. Clocks may go back; positions do not.
    """

    position: int
    at: Moment
    changes: tuple[RecordChange, ...] = ()
