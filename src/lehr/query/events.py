"""Events of a partition: the changes of its feed, with their records as they are now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from lehr.base.moments import Moment
from lehr.model.asset import AssetId
from lehr.model.control import Control
from lehr.model.decision import Decision
from lehr.model.feed import ChangeKind, FeedEntry
from lehr.model.operation import Operation
from lehr.query.partition_view import Reading
from lehr.sdk.watch import FeedGoneError

_LATER = 20
"""Records of an asset that may be newer than those of the entries, and are read with them."""

_OPERATIONS = (ChangeKind.OPERATION_STARTED, ChangeKind.OPERATION_UNKNOWN, ChangeKind.OPERATION_ENDED)


class Event(msgspec.Struct, frozen=True):
    """One change.

    Attributes:
        position: of its entry in the feed.
        asset: empty if it is about more than one.
        record: the number or id of its record.
        message: one line; empty if the record is no longer kept.
    """

    position: int
    at: Moment
    kind: ChangeKind
    asset: AssetId
    record: str
    message: str = ""


def events(reading: Reading, entries: Iterable[FeedEntry], asset: AssetId | None = None) -> list[Event]:
    """The events of feed entries, oldest first; of one asset, or of all.

    Turns that only changed when an asset is due are left out.
    """
    wanted = [
        Event(entry.position, entry.at, change.kind, change.asset, change.record)
        for entry in entries
        for change in entry.changes
        if change.kind is not ChangeKind.RESCHEDULED and asset in (None, change.asset)
    ]
    messages = _Messages(reading, wanted)
    return [msgspec.structs.replace(event, message=messages.of(event)) for event in wanted]


def position_before(reading: Reading, moment: float) -> int:
    """A position of the feed after which all entries since `moment` (wall-clock seconds) come.

    If older entries are no longer known, that of the first one that is.
    """
    low, high = 0, reading.records.position(reading.partition)
    while low < high:
        middle = (low + high) // 2
        try:
            found = reading.records.feed(reading.partition, middle, 1)
        except FeedGoneError:
            low = middle + 1
            continue
        if found and found[0].at < moment:
            low = middle + 1
        else:
            high = middle
    return low


class _Messages:
    """One line about the record of each event. Records of an asset are read once for all of its events."""

    def __init__(self, reading: Reading, wanted: list[Event]) -> None:
        self._reading = reading
        self._decisions: dict[str, Decision] = {}
        self._operations: dict[str, Operation] = {}
        self._controls: dict[str, Control] = {}
        partition, records = reading.partition, reading.records
        for id, count in Counter(item.asset for item in wanted if item.kind is ChangeKind.DECISION).items():
            found = records.decisions(partition, id, count + _LATER)
            self._decisions |= {str(number): decision for number, decision in found}
        for id, count in Counter(item.asset for item in wanted if item.kind in _OPERATIONS).items():
            pushes = records.operations(partition, id, count + _LATER)
            self._operations |= {operation.id: operation for operation in pushes}
        if any(item.kind is ChangeKind.CONTROL_SET for item in wanted):
            _version, controls = records.controls(partition, reading.now)
            self._controls = {control.id: control for control in controls}

    def of(self, event: Event) -> str:
        match event.kind:
            case ChangeKind.INCARNATION:
                header = self._reading.intent.incarnation(self._reading.partition, int(event.record))
                return (
                    ""
                    if header is None
                    else (
                        f"{header.name} published: {header.added} added, {header.changed} changed, "
                        f"{header.removed} removed"
                    )
                )
            case ChangeKind.DECISION:
                decision = self._decisions.get(event.record)
                if decision is None:
                    return ""
                condition = decision.condition
                return f"{condition.status} ({condition.reason}): {condition.message}".removesuffix(": ")
            case ChangeKind.OPERATION_STARTED | ChangeKind.OPERATION_UNKNOWN | ChangeKind.OPERATION_ENDED:
                return _operation(event, self._operations.get(event.record))
            case ChangeKind.CONTROL_SET:
                control = self._controls.get(event.record)
                return f"control {event.record}, which has ended" if control is None else _control(control)
            case ChangeKind.CONTROL_LIFTED:
                return f"control {event.record} lifted"
        return event.record


def _operation(event: Event, operation: Operation | None) -> str:
    if operation is None:
        return event.record
    if event.kind is ChangeKind.OPERATION_STARTED:
        return (
            f"push {operation.id} of {operation.partition}@{operation.content} started ({operation.purpose})"
        )
    result = operation.result if event.kind is ChangeKind.OPERATION_ENDED else "outcome unknown"
    return f"push {operation.id}: {result}" + (f": {operation.message}" if operation.message else "")


def _control(control: Control) -> str:
    at = "" if control.incarnation is None else f" at incarnation {control.incarnation}"
    check = "" if control.check is None else f" of {control.check}"
    return f"{control.kind}{check}{at} set on {control.selector} by {control.actor}: {control.reason}"
