"""Given somebody who edits all the time, when `lehr run` is killed at any moment, then nothing is lost."""

from __future__ import annotations

import contextlib

from tests.e2e.bad_input.workspace import assert_clear
from tests.faults.ending import processes_in
from tests.faults.rounds import ROUNDS, Tally, chance, timeout
from tests.faults.shop import Shop, kill_after
from tests.faults.witness import ShopWitness


@timeout(1)
def test_killed_at_any_moment_it_goes_on_where_it_was(shop: Shop) -> None:
    moments, pauses = chance("moments"), chance("pauses")
    witness, tally = ShopWitness(shop), Tally("kill -9 of lehr run")
    with contextlib.ExitStack() as ended:
        running = ended.enter_context(shop.run())
        for _ in range(ROUNDS):
            with shop.edited(pauses):
                kill_after(running, moments.uniform(0.0, 3.0))
                witness.interrupted()
                if moments.random() < 0.5:
                    running = ended.enter_context(shop.run())
                    kill_after(running, moments.uniform(0.0, 2.0))
            witness.interrupted()
            running = ended.enter_context(shop.run())
            tally.add(witness.converged())
            witness.judge()
    assert_clear(running.said())
    left = [" ".join(arguments) for _, arguments in processes_in(shop.folder)]
    assert all("supervisor.supervisord" in item or "sleep" in item for item in left), left
    tally.tell(witness.told)
