"""The log of `lehr run`: the first event of each cause at once, the rest counted once a minute."""

from __future__ import annotations

from typing import Any

from lehr.base.digest import Digest
from lehr.control.activity_log import MINUTE, ActivityLog, Level, LogLine
from lehr.model.asset import AssetId, AssetKey, Partition
from lehr.model.control import AuditEntry
from lehr.model.decision import Condition, Decision, Status, Verdict
from lehr.model.diff import Change, Diff, Goal
from lehr.model.operation import DONE, Operation, Outcome, Purpose, Result
from lehr.model.reason import Reason
from lehr.model.writes import Admit, Audit, Basis, Finish, RecordDecision, Refused, Reschedule, Write

SHOP = Partition("shop")
DIFF = Diff((Change("content", "hunter2", "swordfish"), Change("mode", "0600", "0644")))


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def now(self) -> float:
        return self.seconds

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


class Driven:
    """A log, and everything that it wrote."""

    def __init__(self) -> None:
        self.clock = Hand()
        self.log = ActivityLog(self.clock, lambda id: f"test.{id.partition('/')[0]}")
        self.lines: list[LogLine] = []

    def commit(self, *writes: Write, answer: Any = None) -> list[str]:
        found = self.log.committed(writes, [answer] * len(writes))
        self.lines += found
        return [line.message for line in found]

    def later(self, seconds: float = MINUTE) -> list[str]:
        self.clock.seconds += seconds
        found = self.log.due()
        self.lines += found
        return [line.message for line in found]


def decision(
    id: str,
    status: Status,
    reason: str = Reason.PUSH_FAILED,
    message: str = "no space",
    diff: Diff | None = None,
    check: str = "",
) -> RecordDecision:
    return RecordDecision(
        Decision(
            partition=SHOP,
            asset=AssetId(id),
            at=1.0,
            content=1,
            governing=1,
            goal=Goal.PRESENT,
            condition=Condition(status, reason, message),
            event="start",
            diff=diff,
            verdicts=(Verdict(check, allow=False, reason=reason),) if check else (),
        )
    )


def admission(id: str, purpose: Purpose = Purpose.FORWARD, number: int = 0) -> Admit:
    operation = Operation(
        f"{id}-{number}",
        SHOP,
        AssetId(id),
        "test.file",
        Goal.PRESENT,
        3,
        3,
        Digest("content"),
        Digest("diff"),
        1,
        1_000_000.0,
        purpose=purpose,
    )
    found = decision(id, Status.PUSHING, Reason.PUSHING, diff=DIFF).decision
    return Admit(operation, Basis(None, Digest("governance"), 1), decision=found)


def test_the_first_push_of_a_cause_has_a_line_and_the_others_are_counted() -> None:
    driven = Driven()
    assert driven.commit(admission("file/a")) == [
        "file/a (test.file, forward): pushing shop@3; differs: content, mode"
    ]
    assert driven.commit(admission("file/b"), admission("file/c")) == []
    [counted] = driven.later()
    assert counted.startswith("push 2 times since 1970-01-12T13:46:40Z (test.file, forward); last: file/c")
    assert driven.lines[-1].fields["count"] == 2


def test_drift_names_what_differs_and_no_value() -> None:
    driven = Driven()
    [line] = driven.commit(admission("file/a", Purpose.REPAIR))
    assert "drift" in line
    assert "content, mode" in line
    assert driven.lines[0].level is Level.WARNING
    assert driven.lines[0].event == "drift"
    assert "hunter2" not in repr(driven.lines)
    assert "swordfish" not in repr(driven.lines)


def test_a_cause_that_pauses_for_a_minute_is_reported_at_once_when_it_comes_back() -> None:
    driven = Driven()
    assert len(driven.commit(decision("file/a", Status.RETRYING))) == 1
    assert driven.later() == []
    assert len(driven.commit(decision("file/b", Status.RETRYING))) == 1


def test_type_reason_and_check_make_a_cause() -> None:
    driven = Driven()
    for write in (
        decision("file/a", Status.WAITING, "Closed", check="calendar/office"),
        decision("file/a", Status.WAITING, "Closed", check="calendar/night"),
        decision("file/a", Status.WAITING, "Frozen", check="calendar/night"),
        decision("process/a", Status.WAITING, "Frozen", check="calendar/night"),
    ):
        assert len(driven.commit(write)) == 1
        assert driven.commit(write) == []


def test_of_one_more_event_in_a_minute_the_event_itself_is_shown() -> None:
    driven = Driven()
    driven.commit(decision("file/a", Status.RETRYING))
    driven.commit(decision("file/b", Status.RETRYING))
    [line] = driven.later()
    assert line == "file/b (test.file, PushFailed): failed: no space"


def test_failures_that_only_move_the_due_time_are_counted() -> None:
    driven = Driven()
    driven.commit(decision("file/a", Status.RETRYING))
    again = Reschedule(AssetKey(SHOP, AssetId("file/a")), Condition(Status.RETRYING, "PushFailed"), 2.0)
    driven.commit(again)
    driven.commit(again)
    assert [line.split(" since")[0] for line in driven.later()] == ["failed 2 times"]


def test_an_asset_that_failed_and_is_settled_again_has_recovered() -> None:
    driven = Driven()
    driven.commit(decision("file/a", Status.STALLED, Reason.PUSH_STALLED))
    assert driven.lines[-1].level is Level.ERROR
    settled = decision("file/a", Status.CONVERGED, Reason.AS_INTENDED, "")
    assert driven.commit(settled) == ["file/a (test.file, PushStalled): Converged again after PushStalled"]
    assert driven.commit(settled) == []


def test_a_push_that_ends_well_has_a_line_with_its_duration() -> None:
    driven = Driven()
    driven.commit(admission("file/a"))
    driven.clock.seconds += 2
    assert driven.commit(Finish(SHOP, "file/a-0", DONE, driven.clock.seconds)) == [
        "file/a (test.file, forward): pushed in 2.0s"
    ]
    driven.commit(admission("file/a", number=1))
    failed = Finish(SHOP, "file/a-1", Outcome(Result.FAILED, "no space"), driven.clock.seconds)
    assert driven.commit(failed) == []  # its decision has the reason


def test_every_command_has_a_line_and_refused_ones_are_warnings() -> None:
    driven = Driven()
    for result in ("freeze set", "freeze set", "refused: no asset is selected"):
        entry = AuditEntry(at=5.0, actor="ann", command="freeze", arguments={}, result=result)
        assert driven.commit(Audit(SHOP, entry)) == [f"ann: lehr freeze: {result}"]
    assert [line.level for line in driven.lines] == [Level.INFO, Level.INFO, Level.WARNING]


def test_what_the_store_refused_has_no_line() -> None:
    driven = Driven()
    assert driven.commit(admission("file/a"), answer=Refused(Reason.LIMIT_REACHED, "full")) == []


def test_very_many_causes_are_counted_together() -> None:
    driven = Driven()
    for number in range(2_000):
        driven.commit(decision("file/a", Status.WAITING, f"Reason{number}"))
    first = len(driven.lines)
    assert first < 600
    driven.later()
    assert len(driven.lines) == first + 1
