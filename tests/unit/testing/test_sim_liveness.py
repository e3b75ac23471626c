"""What the judge of random histories lets pass, and what it reports."""

from __future__ import annotations

from functools import partial

import pytest

from lehr.base.digest import digest
from lehr.model.asset import AssetId, Partition
from lehr.model.diff import Goal
from lehr.model.operation import Operation, Outcome, Result
from lehr.model.writes import Finish, TakeLease
from lehr.sdk.plugin import Fencing
from lehr.testing.sim.dice import Dice
from lehr.testing.sim.liveness import LivenessChecker
from lehr.testing.sim.production import TRAITS, Production, SimulatedPlugin
from lehr.testing.sim.simulated_type import plain
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
    ("epoch", "asked_running", "asked_ended", "broken"),
    [
        pytest.param(1, [2], [], False, id="seed 3909: it ended after the answer that it was running"),
        pytest.param(1, [2], [1], False, id="its own process, which is late, saw that it had ended"),
        pytest.param(1, [], [2], True, id="it had ended when the new process asked"),
        pytest.param(1, [1], [2], True, id="it had ended when the new process asked, and not before"),
        pytest.param(1, [2], [2], True, id="the new process waited for its end"),
        pytest.param(2, [2], [], True, id="nobody took over"),
    ],
)
def test_a_push_may_follow_at_once_only_one_left_behind(
    epoch: int, asked_running: list[int], asked_ended: list[int], broken: bool
) -> None:
    """Of a push under `epoch`, processes with these epochs ask while it runs, and after its end."""

    async def main() -> list[str]:
        clock, types, trace = VirtualClock(), registry(), Trace()
        witness = Witness(types, trace)
        production = Production([plain(THING)], Dice(0), trace, Fencing.NATIVE)
        judge = LivenessChecker(witness, production, types, clock)

        async def ask(processes: list[int]) -> None:
            for process in processes:
                plugin = SimulatedPlugin(production, clock, TRAITS)
                plugin.epoch = partial(int, process)
                await plugin.status(first)

        witness.committed([TakeLease(_PARTITION, "here", EPOCH, 30.0)], [2])
        first = witness.open["t1"] = production.running["1"] = _push("1", epoch)
        await ask(asked_running)
        production.end(first)
        await ask(asked_ended)
        judge.committed(Finish(_PARTITION, "1", Outcome(Result.FAILED, "no answer"), EPOCH), None)
        judge.retries.admitted(_push("2", 2))
        return witness.violations

    assert bool(run(main, seed=0)) is broken
