"""Given a clock that is moved by days, when intent changes, then nothing stalls and nothing goes early."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path

from tests.e2e.bad_input.test_clock_that_jumps import DAY, Clock
from tests.e2e.bad_input.workspace import Workspace, assert_clear, until
from tests.faults.rounds import ROUNDS, Tally, chance, only_when_asked_for, timeout
from tests.faults.shop import Shop
from tests.faults.witness import ShopWitness


@only_when_asked_for
@timeout(1)
def test_moved_at_any_moment_nothing_stalls(shop: Shop) -> None:
    moments = chance("moments of another time")
    clock, tally = Clock(shop), Tally("clock moved by two days")
    witness = ShopWitness(shop, dated=False)
    shop.declare("limit", "lehr.RateLimit", {"select": {"all": True}, "pushes": 20, "per": "3s"})
    with shop.run() as running:
        for number in range(ROUNDS):
            with shop.edited(moments):
                time.sleep(moments.uniform(0.0, 1.5))
                clock.jump(moments.choice((0, 2 * DAY)) if number % 2 else -2 * DAY)
                time.sleep(moments.uniform(0.0, 1.5))
            tally.add(witness.converged())
            witness.judge()
        assert_clear(running.said())
    tally.tell(witness.told)


def turn_down(workspace: Workspace, id: str, fence_seconds: float) -> Path:
    """Turn a file down; where it is while it is fenced."""
    path = workspace.production / f"{id}.txt"
    payload = {"path": str(path), "content": f"{id}\n"}
    workspace.declare(id, "lehr.File", payload, Turndown={"reason": "old", "fence_seconds": fence_seconds})
    return path.with_name(f"{path.name}.lehr-fenced")


def test_fences_last_as_long_as_they_should_and_freezes_until_their_date(tmp_path: Path) -> None:
    shop = Workspace(tmp_path)
    clock = Clock(shop)
    frozen, free, old = (shop.declare_file(id, "1\n") for id in ("frozen", "free", "old"))
    shop.declare_file("brief-1", "brief-1\n")
    shop.declare_file("brief-2", "brief-2\n")
    shop.commit()
    with shop.run() as running:
        running.says("production is as intended")
        tomorrow = dt.datetime.fromtimestamp(time.time() + DAY, dt.UTC).isoformat()
        freeze = {"select": {"ids": ["frozen"]}, "reason": "holidays", "until": tomorrow}
        shop.declare("holidays", "lehr.Freeze", freeze)
        fenced = turn_down(shop, "old", DAY)
        shop.declare_file("frozen", "2\n")
        shop.declare_file("free", "2\n")
        shop.commit()
        until("what is old is fenced", fenced.exists, running.said)
        until("the free one is changed", lambda: free.read_text() == "2\n", running.said)
        shop.stands("frozen", "holidays")

        clock.jump(2 * DAY)
        brief = turn_down(shop, "brief-1", 1.0)
        shop.declare_file("frozen", "3\n")
        shop.commit()
        assert shop.lehr("retry", "old").code == 0
        until("the holidays are over", lambda: frozen.read_text() == "3\n", running.said)
        until("what is fenced for a second is removed", lambda: removed(brief), running.said)
        assert fenced.exists(), "what is fenced for a day was removed after a second"

        clock.jump(-2 * DAY)
        brief = turn_down(shop, "brief-2", 1.0)
        shop.declare_file("frozen", "4\n")
        shop.declare_file("free", "4\n")
        shop.commit()
        until("the free one is changed", lambda: free.read_text() == "4\n", running.said)
        until("what is fenced for a second is removed", lambda: removed(brief), running.said)
        shop.stands("frozen", "holidays")
        assert frozen.read_text() == "3\n"
        assert fenced.exists()

        clock.jump(0)
        shop.declare_file("old", "1\n")
        shop.commit()
        until("what was taken back is there again", old.exists, running.said)
        assert_clear(running.said())


def removed(fenced: Path) -> bool:
    """Whether neither the file nor what it was fenced as is there."""
    return not fenced.exists() and not fenced.with_name(fenced.name.removesuffix(".lehr-fenced")).exists()
