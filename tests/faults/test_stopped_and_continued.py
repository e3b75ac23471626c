"""Given a `lehr run` that stands still, when it goes on, then it takes up what has happened meanwhile."""

from __future__ import annotations

import os
import signal
import time

from tests.e2e.bad_input.workspace import assert_clear, until
from tests.faults.rounds import ROUNDS, Tally, chance, only_when_asked_for, timeout
from tests.faults.shop import Shop
from tests.faults.witness import ShopWitness


def refused(shop: Shop) -> None:
    """A second `lehr run` does not take over from one that stands still."""
    shop.lehr("run", str(shop.repository)).failed("another `lehr run` uses state folder")


@only_when_asked_for
@timeout(1)
def test_stopped_at_any_moment_it_goes_on_where_it_was(shop: Shop) -> None:
    moments = chance("moments of standing still")
    witness, tally = ShopWitness(shop), Tally("SIGSTOP and SIGCONT of lehr run")
    with shop.run() as running:
        running.says("enforcing partition shop")  # from now on, no second one may start
        for _ in range(ROUNDS):
            with shop.edited(moments):
                time.sleep(moments.uniform(0.0, 1.5))
                os.kill(running.pid, signal.SIGSTOP)
                witness.interrupted()
                refused(shop)
                os.kill(running.pid, signal.SIGCONT)
                time.sleep(moments.uniform(0.0, 0.3))
            tally.add(witness.converged())
            witness.judge()
        assert_clear(running.said())
    tally.tell(witness.told)


@timeout(2)
def test_a_push_that_goes_on_while_its_program_stands_still_is_neither_missed_nor_done_twice(
    shop: Shop,
) -> None:
    witness = ShopWitness(shop)
    with shop.run() as running:
        witness.converged()
        shop.slow_edit("command-0")
        until("a push is under way", lambda: shop.works_on("command-0"))
        os.kill(running.pid, signal.SIGSTOP)
        until("it has done its work", lambda: shop.produced() == shop.intended())
        assert witness.pushing("command-0")
        os.kill(running.pid, signal.SIGCONT)
        witness.converged()
        witness.judge()
        shop.slow_edit("command-0")
        until("a push is under way", lambda: shop.works_on("command-0"))
        os.kill(running.pid, signal.SIGSTOP)
        refused(shop)
        running.end(signal.SIGKILL)
    with shop.run():
        witness.converged()
        witness.judge()
    serials = shop.journal("command-0").read_text().split()
    assert len(serials) == len(set(serials)), "it was done again"
