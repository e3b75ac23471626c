"""A store to fill and to read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lehr.base.digest import Digest, digest
from lehr.model.asset import Asset, AssetId, AssetKey, Partition, make_asset
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Condition, Decision, Status, Verdict
from lehr.model.diff import Change, Diff, Goal
from lehr.model.incarnation import Candidate, Incarnation, SourceRevision
from lehr.model.operation import LedgerEntry, Operation, Outcome, PushStep, Result
from lehr.model.reason import Reason
from lehr.model.release import Release, ReleaseBasis, ReleaseKind
from lehr.model.selector import parse_selector
from lehr.model.writes import (
    Admit,
    Adopt,
    Basis,
    Finish,
    Publish,
    RecordDecision,
    SetControl,
    TakeLease,
    WriteReleases,
)
from lehr.query.partition_view import Reading
from lehr.store.sqlite import SqliteStore

PARTITION = Partition("shop")
GOVERNING_TYPE = "test.Limit"
DIFFERS = Diff((Change("content", "new", "old"),))


class Shelf:
    """A store of one partition, filled step by step. Time goes on by a second with each step."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path)
        self.now = 1_000.0
        [self._epoch] = self.store.commit([TakeLease(PARTITION, "one", 1.0)])

    def close(self) -> None:
        self.store.close()

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    def reading(self) -> Reading:
        return Reading(self.store, PARTITION, self.now, lambda type: type == GOVERNING_TYPE)

    def asset(self, id: str, value: str = "", type: str = "test.Thing", **addons: Any) -> Asset:
        return make_asset(AssetId(id), type, {"value": value}, {f"lehr.{k}": v for k, v in addons.items()})

    def publish(self, *assets: Asset) -> Incarnation:
        """Make `assets` the whole of intent."""
        before = {head.id: head.digest for head in self.store.intent.heads(PARTITION)}
        newest = self.store.intent.newest(PARTITION)
        candidate = Candidate(
            PARTITION,
            newest.sequence if newest else 0,
            (SourceRevision("git:/intent#main", "c0ffee"),),
            Digest("generators"),
            tuple(asset for asset in assets if before.get(asset.id) != asset.digest),
            tuple(id for id in before if id not in {asset.id for asset in assets}),
        )
        [incarnation] = self.store.commit([Publish(candidate, {}, (GOVERNING_TYPE,), self.tick())])
        assert isinstance(incarnation, Incarnation)
        return incarnation

    def decide(
        self,
        id: str,
        status: Status,
        reason: str = "Because",
        message: str = "said so",
        verdicts: tuple[Verdict, ...] = (),
        operation: str | None = None,
        next_at: float | None = None,
        diff: Diff | None = None,
    ) -> None:
        """Record a decision about an asset, which is also how it stands from now on."""
        self.store.commit(
            [RecordDecision(self._decision(id, status, reason, message, verdicts, operation, next_at, diff))]
        )

    def _decision(
        self,
        id: str,
        status: Status,
        reason: str,
        message: str,
        verdicts: tuple[Verdict, ...],
        operation: str | None,
        next_at: float | None,
        diff: Diff | None,
    ) -> Decision:
        return Decision(
            partition=PARTITION,
            asset=AssetId(id),
            at=self.tick(),
            content=1,
            governing=1,
            goal=Goal.PRESENT,
            condition=Condition(status, reason, message, "something", next_at),
            event="start",
            diff=diff,
            verdicts=verdicts,
            operation=operation,
        )

    def adopt(self, id: str, content: int) -> None:
        """Production was found to match incarnation `content`."""
        entry = LedgerEntry(
            PARTITION, AssetId(id), digest((id, content)), content, Goal.PRESENT, None, self.tick()
        )
        self.store.commit([Adopt(entry)])

    def release(self, id: str, target: int) -> None:
        """Let an asset have the content of incarnation `target`, and no newer one."""
        newest = self.store.intent.newest(PARTITION)
        assert newest is not None
        version, _released = self.store.records.released(PARTITION)
        release = Release(
            id=f"release{version}",
            partition=PARTITION,
            asset=AssetId(id),
            target=target,
            kind=ReleaseKind.FORWARD,
            basis=ReleaseBasis(newest.governance),
            at=self.tick(),
        )
        write = WriteReleases(PARTITION, version, newest.governance, self.now, (release,))
        assert self.store.commit([write]) == [None]

    def push(
        self,
        id: str,
        number: int,
        content: int,
        result: Result | None = Result.DONE,
        message: str = "",
        steps: tuple[PushStep, ...] = (),
    ) -> Operation:
        """Push an asset; with `result` None the push is still under way."""
        newest = self.store.intent.newest(PARTITION)
        assert newest is not None
        key = AssetKey(PARTITION, AssetId(id))
        asset = self.store.intent.asset(key, newest.sequence)
        version, _controls = self.store.records.controls(PARTITION, self.now)
        operation = Operation(
            f"op{number:04}", PARTITION, AssetId(id), "test.Thing", Goal.PRESENT, content, newest.sequence,
            digest((id, content)), DIFFERS.digest(), self._epoch, self.tick(),
        )  # fmt: skip
        basis = Basis(asset.digest if asset else None, newest.governance, version)
        decision = self._decision(
            id, Status.PUSHING, Reason.PUSHING, "under way", (), operation.id, None, DIFFERS
        )
        [refused] = self.store.commit([Admit(operation, basis, decision=decision)])
        assert refused is None
        if result is not None:
            entry = LedgerEntry(
                PARTITION,
                AssetId(id),
                operation.content_digest,
                content,
                Goal.PRESENT,
                operation.id,
                self.tick(),
            )
            outcome = Outcome(result, message)
            self.store.commit([Finish(operation.partition, operation.id, outcome, self.now, entry, steps)])
        return operation

    def say(self, kind: ControlKind, selector: str, expires_at: float | None = None, **fields: Any) -> None:
        """Set a control."""
        at = self.tick()
        control = Control(
            id=f"{kind}{at:.0f}",
            kind=kind,
            partition=PARTITION,
            selector=parse_selector(selector),
            reason="because",
            actor="ana",
            at=at,
            expires_at=expires_at,
            **fields,
        )
        self.store.commit([SetControl(control)])


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    made = Shelf(tmp_path / "state.sqlite")
    yield made
    made.close()
