"""What the judge of random histories lets pass, and what it reports."""

from __future__ import annotations

import pytest

from lehr.base.digest import digest
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Goal
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.writes import Finish, TakeLease
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.liveness import LivenessChecker
from lehr.testing.sim.production import TRAITS, Production, SimulatedPlugin, plain
from lehr.testing.sim.trace import Trace
from lehr.testing.sim.witness import Witness
from lehr.testing.virtual import EPOCH, VirtualClock, run
from lehr.testing.world import THING, registry

_PARTITION = Partition("test")


def _push(id: str, epoch: int) -> Operation:
    content = digest("content")
    return Operation(
        id, _PARTITION, AssetId("t1"), THING, Goal.PRESENT, 1, 1, content, content, epoch, started_at=EPOCH
    )


@pytest.mark.parametrize(
    ("epoch", "asked_while_running", "broken"),
    [
        pytest.param(1, True, False, id="seed 3909: it ended after the answer that it was running"),
        pytest.param(1, False, True, id="it had ended when the new process asked"),
        pytest.param(2, True, True, id="nobody took over"),
    ],
)
def test_a_push_may_follow_at_once_only_one_left_behind(
    epoch: int, asked_while_running: bool, broken: bool
) -> None:
    async def main() -> list[str]:
        clock, types, trace = VirtualClock(), registry(), Trace()
        witness = Witness(types, trace)
        production = Production([plain(THING)], Dice(0), trace, Fencing.NATIVE)
        judge, plugin = (
            LivenessChecker(witness, production, types, clock),
            SimulatedPlugin(production, clock, TRAITS),
        )
        witness.committed([TakeLease(_PARTITION, "here", EPOCH, 30.0)], [2])
        first = witness.open["t1"] = production.running["1"] = _push("1", epoch)
        if asked_while_running:
            await plugin.status(first)
        production.end(first)
        if not asked_while_running:
            await plugin.status(first)
        judge.committed(Finish("1", Outcome(Result.FAILED, "no answer"), EPOCH), None)
        judge._pauses(_push("2", 2))
        return witness.violations

    assert bool(run(main, seed=0)) is broken
