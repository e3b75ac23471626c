"""Given a full disk under a state folder, when there is room again, then nothing is lost, and all goes on."""

from __future__ import annotations

import contextlib
import signal
import time

import pytest

from tests.faults.disk import SmallDisk, disk_at
from tests.faults.ending import end_all_in
from tests.faults.rounds import Tally, chance, rounds, timeout
from tests.faults.shop import Shop
from tests.faults.witness import ShopWitness

ROUNDS = 1


@timeout(ROUNDS)
def test_filled_and_freed_at_any_moment_it_goes_on_by_itself(shop: Shop) -> None:
    moments = chance("moments of a full disk")
    witness, tally = ShopWitness(shop), Tally("full disk")
    with contextlib.ExitStack() as ended:
        disk = ended.enter_context(disk_at(shop.state))
        ended.callback(end_all_in, shop.folder)
        running = ended.enter_context(shop.run())
        for _ in range(rounds(ROUNDS)):
            with shop.edited(moments):
                time.sleep(moments.uniform(0.0, 1.5))
                disk.fill(running)
                time.sleep(moments.uniform(0.0, 1.5))
                witness.look()
                disk.make_room(running)
            tally.add(witness.converged())
            witness.judge()
        assert "Traceback" not in running.said()
    tally.tell(witness.told)


@timeout(ROUNDS)
def test_killed_on_a_full_disk_it_starts_again_when_there_is_room(shop: Shop) -> None:
    moments = chance("moments on a full disk")
    witness, tally = ShopWitness(shop), Tally("kill -9 of lehr run on a full disk")
    with contextlib.ExitStack() as ended:
        disk = ended.enter_context(disk_at(shop.state))
        ended.callback(end_all_in, shop.folder)
        if not isinstance(disk, SmallDisk):
            pytest.skip("this user may not mount a file system")
        for _ in range(rounds(ROUNDS)):
            with shop.run() as running, shop.edited(moments):
                time.sleep(moments.uniform(0.0, 1.5))
                disk.fill(running)
                time.sleep(moments.uniform(0.0, 1.0))
                running.end(signal.SIGKILL)
            witness.interrupted()
            shop.lehr("run", str(shop.repository)).failed("full")
            disk.make_room(running)
            with shop.run() as running:
                tally.add(witness.converged())
                witness.judge()
                assert "Traceback" not in running.said()
    tally.tell(witness.told)
