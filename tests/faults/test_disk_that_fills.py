"""Given a full disk under a state folder, when there is room again, then nothing is lost, and all goes on."""

from __future__ import annotations

import contextlib
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.bad_input.workspace import Workspace, assert_clear
from tests.faults.disk import SmallDisk, disk_at
from tests.faults.ending import end_all_in
from tests.faults.rounds import ROUNDS, Tally, chance, only_when_asked_for, timeout
from tests.faults.shop import Shop
from tests.faults.witness import ShopWitness


def test_where_there_is_no_room_to_begin_it_says_so_and_begins_when_there_is(tmp_path: Path) -> None:
    shop = Workspace(tmp_path)
    motd = shop.declare_file("motd", "welcome\n")
    shop.commit()
    with disk_at(shop.state) as disk:
        if not isinstance(disk, SmallDisk):
            pytest.skip("this user may not mount a file system")
        disk.fill(None)
        for _ in range(4):  # each time it comes a little further
            shop.once().failed("error[")
            disk.make_some_room()
        disk.make_room(None)
        assert shop.once().code == 0
    assert motd.read_text() == "welcome\n"


@only_when_asked_for
@timeout(2)
def test_filled_at_any_moment_it_goes_on_when_there_is_room(shop: Shop) -> None:
    moments = chance("moments of a full disk")
    witness, tally = ShopWitness(shop), Tally("full disk")
    killed = Tally("kill -9 of lehr run on a full disk")
    with contextlib.ExitStack() as ended:
        disk = ended.enter_context(disk_at(shop.state))
        ended.callback(end_all_in, shop.folder)
        running = ended.enter_context(shop.run())
        running.says("enforcing partition shop")  # without room to begin, it would have ended
        for _ in range(ROUNDS):
            with shop.edited(moments):
                time.sleep(moments.uniform(0.0, 1.5))
                disk.fill(running)
                time.sleep(moments.uniform(0.0, 1.5))
                witness.look()
                disk.make_room(running)
            tally.add(witness.converged())
            witness.judge()
            if not isinstance(disk, SmallDisk):
                continue  # a limit ends with the process that has it
            with shop.edited(moments):
                time.sleep(moments.uniform(0.0, 0.5))
                disk.fill(running)
                time.sleep(moments.uniform(0.0, 0.5))
                running.end(signal.SIGKILL)
            witness.interrupted()
            running = ended.enter_context(shop.run())  # it may come to its end, or find room that is left
            time.sleep(moments.uniform(0.0, 1.5))
            running.end(signal.SIGKILL)
            assert_clear(running.said())
            witness.interrupted()
            disk.make_room(running)
            running = ended.enter_context(shop.run())
            killed.add(witness.converged())
            witness.judge()
        assert_clear(running.said())
    tally.tell()
    killed.tell(witness.told)
