"""Which order of pushes the judge of random histories lets pass, and which it reports."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lehr.base.digest import digest
from lehr.model.addons import DEPENDS_ON, DependsOn
from lehr.model.asset import AssetId
from lehr.model.control import Control, ControlKind
from lehr.model.decision import Condition, Decision, Status
from lehr.model.diff import NO_DIFF, Goal, Target
from lehr.model.incarnation import Incarnation
from lehr.model.operation import DONE, LedgerEntry, Operation
from lehr.model.reason import Reason
from lehr.model.selector import Selector
from lehr.model.writes import Admit, Adopt, Basis, Finish, Write
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.liveness import LivenessChecker
from lehr.testing.sim.production import Production
from lehr.testing.sim.simulated_type import plain
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.witness import Witness
from lehr.testing.sim.witnessed_state import Published
from lehr.testing.virtual import EPOCH, VirtualClock, run
from lehr.testing.world import PARTITION, THING, registry, thing

_CONTENT = digest("content")


class History:
    """`web` depends on `api`, which depends on `balancer`, which reads `job`. All are as in incarnation 1."""

    def __init__(self) -> None:
        clock, types, trace = VirtualClock(), registry(), Trace()
        self._witness = Witness(types, trace)
        self._production = Production([plain(THING)], Dice(0), trace, Fencing.NATIVE)
        self._judge = LivenessChecker(self._witness, self._production, types, clock)
        self.publish(job="1")
        for id in ("job", "balancer", "api", "web"):
            self.push(id, 1)

    @property
    def newest(self) -> int:
        """Sequence of the newest incarnation."""
        return max(self._witness.incarnations, default=0)

    def publish(self, *, job: str) -> None:
        """The next incarnation: `web` changes in each, and `job` has this value."""
        sequence = self.newest + 1
        assets = [
            thing("web", str(sequence), {DEPENDS_ON: DependsOn(["api"])}),
            thing("api", "1", {DEPENDS_ON: DependsOn(["balancer"])}),
            thing("balancer", "1", reads=["job"]),
            thing("job", job),
        ]
        header = Incarnation(PARTITION, sequence, _CONTENT, _CONTENT, (), _CONTENT, EPOCH, len(assets))
        self._witness.incarnations[sequence] = Published(header, {asset.id: asset for asset in assets})

    def pin(self, id: str, at: int) -> None:
        """A person pins an asset to incarnation `at`."""
        self._witness.controls[id] = Control(
            id=id,
            kind=ControlKind.PIN,
            partition=PARTITION,
            selector=Selector(ids=(id,)),
            reason="because",
            actor="ana",
            at=EPOCH,
            incarnation=at,
        )

    def unpin(self, id: str) -> None:
        """The person lifts it."""
        del self._witness.controls[id]

    def push(self, id: str, content: int) -> None:
        """An asset is pushed from incarnation `content`. Its direct dependencies are in place."""
        governing, asset = self.newest, AssetId(id)
        for ahead in {"web": ["api"], "api": ["balancer"]}.get(id, []):
            self._production.looked(Target(PARTITION, AssetId(ahead), THING, governing), NO_DIFF)
        operation = Operation(
            f"{id}-{governing}",
            PARTITION,
            asset,
            THING,
            Goal.PRESENT,
            content,
            governing,
            _CONTENT,
            _CONTENT,
            epoch=1,
            started_at=EPOCH,
        )
        decision = Decision(
            partition=PARTITION,
            asset=asset,
            at=EPOCH,
            content=content,
            governing=governing,
            goal=Goal.PRESENT,
            condition=Condition(Status.PUSHING, Reason.PUSHING, "it is pushed", "wait"),
            event="publication",
            operation=operation.id,
        )
        self._write(Admit(operation, Basis(None, _CONTENT, 0), decision=decision))
        self._write(Finish(PARTITION, operation.id, DONE, EPOCH, self._entry(asset, content, operation.id)))

    def find(self, id: str, content: int) -> None:
        """A look finds an asset as in incarnation `content`, without a push."""
        self._production.looked(Target(PARTITION, AssetId(id), THING, content), NO_DIFF)
        self._write(Adopt(self._entry(AssetId(id), content, None)))

    def reports(self) -> list[str]:
        """The reports on indirect dependencies."""
        return [line for line in self._witness.violations if "indirectly" in line]

    def _entry(self, id: AssetId, content: int, operation: str | None) -> LedgerEntry:
        return LedgerEntry(PARTITION, id, _CONTENT, content, Goal.PRESENT, operation, EPOCH)

    def _write(self, write: Write) -> None:
        self._judge.committed(write, None)
        self._witness.committed([write], [None])


def _nothing_changes(history: History) -> None:
    history.publish(job="1")


def _read_changes(history: History) -> None:
    history.publish(job="2")
    history.push("job", 2)


def _follows(history: History) -> None:
    _read_changes(history)
    history.push("balancer", 2)


def _follows_without_a_push(history: History) -> None:
    _read_changes(history)
    history.find("balancer", 2)


def _follows_while_pinned(history: History) -> None:
    history.pin("balancer", at=1)
    _read_changes(history)
    history.push("balancer", 1)
    history.unpin("balancer")


def _read_is_pinned(history: History) -> None:
    history.pin("job", at=1)
    history.publish(job="2")


def _read_was_pinned(history: History) -> None:
    _read_is_pinned(history)
    history.push("balancer", 2)
    history.unpin("job")
    history.push("job", 2)


def _read_goes_back(history: History) -> None:
    _follows(history)
    history.pin("job", at=1)
    history.push("job", 1)


@pytest.mark.parametrize(
    ("happens", "differs"),
    [
        pytest.param(_nothing_changes, False, id="as it was pushed"),
        pytest.param(_read_changes, True, id="what it reads has changed since"),
        pytest.param(_follows, False, id="it was pushed again after that"),
        pytest.param(_follows_without_a_push, False, id="it was found to match after that"),
        pytest.param(_follows_while_pinned, False, id="seed 4489: it was pushed again from its old content"),
        pytest.param(_read_is_pinned, False, id="what it reads is held at the old content"),
        pytest.param(_read_was_pinned, True, id="what it reads was held when it was pushed, and is not now"),
        pytest.param(_read_goes_back, True, id="what it reads was new when it was pushed, and is held now"),
    ],
)
def test_an_indirect_dependency_is_in_place_with_all_that_it_reads(
    happens: Callable[[History], None], differs: bool
) -> None:
    async def main() -> list[str]:
        history = History()
        happens(history)
        assert not history.reports()
        history.push("web", history.newest)
        return history.reports()

    report = "I3: web is pushed although balancer, which it needs indirectly, differs"
    assert run(main, seed=0) == [report] * differs
