"""The etcd example's controller over simulated members: whatever fails, it does no harm, and gets there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from etcd_operator import operator, plan
from etcd_operator.plan import Do, Seen, Step, View
from lehr.base.chance import Chance
from lehr.client import Request
from lehr.testing.controllers import Stage, play
from tests.simulation.etcd_world import World

SEEDS = 200
SIZES = (1, 3, 5)
TROUBLED_SECONDS = 300.0
CALM_SECONDS = 200.0


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Lines of the log take longer than what they tell of."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


def disturb(world: World, chance: Chance) -> None:
    """One thing goes wrong."""
    homes = sorted(world.disks)
    if not homes:
        return
    home = homes[int(chance.uniform(0, len(homes) - 0.001))]
    fate = chance.uniform(0.0, 1.0)
    if fate < 0.4:
        world.end(home)
    elif fate < 0.55:
        world.hang(home, chance.uniform(1.0, 120.0))
    elif fate < 0.7:
        if world.strict and world.can_lose(home):
            world.lose(home, whole=chance.uniform(0.0, 1.0) < 0.5)
    elif fate < 0.85:
        world.kill_controller()


def simulate(seed: int) -> World:
    """A history: trouble, and then peace."""
    worlds: list[World] = []

    async def story(stage: Stage) -> None:
        world = World(stage, seed, strict=seed % 2 == 0)
        worlds.append(world)
        chance, size = Chance(-seed - 1), 1
        stage.publish("plays", {"size": size, "port": 2379}, "etcd.Cluster")
        while stage.clock.monotonic() < TROUBLED_SECONDS and not world.complaints:
            await stage.pass_time(chance.uniform(1.0, 40.0))
            disturb(world, chance)
            if chance.uniform(0.0, 1.0) < 0.2:
                size = SIZES[int(chance.uniform(0, len(SIZES) - 0.001))]
                stage.publish("plays", {"size": size, "port": 2379}, "etcd.Cluster")
        world.troubled = False
        await stage.pass_time(CALM_SECONDS)
        if not world.complaints and not world.is_as_intended(size):
            world.complaints.append(f"in the end: {size} are intended, {world.members}, {world.status}")

    async def reconcile(request: Request) -> float | None:
        return await worlds[0].reconcile(request)

    play(reconcile, story, seed=seed)
    return worlds[0]


def test_whatever_fails_the_quorum_is_never_lost_by_its_doing_and_it_gets_there() -> None:
    kills = changes = 0
    for seed in range(SEEDS):
        world = simulate(seed)
        assert world.complaints == [], f"seed {seed}"
        kills += world.kills
        changes += world.changes
    assert kills > SEEDS  # or it was no trouble
    assert changes > SEEDS


def change_size_twice(kill_at: int) -> World:
    """A history in which nothing goes wrong, but that the controller is killed once: 1, 3 and 1 again."""
    worlds: list[World] = []

    async def story(stage: Stage) -> None:
        world = World(stage, 1, strict=True, kill_at=kill_at)
        worlds.append(world)
        for size in (1, 3, 1):
            stage.publish("plays", {"size": size, "port": 2379}, "etcd.Cluster")
            await stage.pass_time(150)
            if not world.is_as_intended(size):
                world.complaints.append(f"{size} are intended, {world.members}, {world.status}")

    async def reconcile(request: Request) -> float | None:
        return await worlds[0].reconcile(request)

    play(reconcile, story, seed=1)
    return worlds[0]


def test_wherever_it_is_killed_the_next_one_goes_on() -> None:
    points = change_size_twice(-1).points
    assert points > 50
    for point in range(points):
        world = change_size_twice(point)
        assert (world.complaints, world.kills) == ([], 1), f"point {point}"


Rule = Callable[[int, Seen, View], Step | None]


def without(*rules: Rule) -> tuple[Rule, ...]:
    return tuple(rule for rule in plan.RULES if rule not in rules)


def start_lost(size: int, seen: Seen, view: View) -> Step | None:
    """Starts whoever is not running, whether he has his data or not."""
    for member in view.voters:
        home = seen.homes.get(member.home)
        if home is not None and not home.running:
            return Step(Do.START, "not running", home.name)
    return None


def remove_lost_at_once(size: int, seen: Seen, view: View) -> Step | None:
    """Removes who is not running, whoever else is up."""
    for member in view.voters:
        home = seen.homes.get(member.home)
        if home is None or not home.running:
            return Step(Do.REMOVE, "not running", id=member.id)
    return None


def kill_whoever_does_not_answer(size: int, seen: Seen, view: View) -> Step | None:
    for member in view.voters:
        if member.id not in view.answering and member.home in seen.homes and seen.homes[member.home].running:
            return Step(Do.KILL, "no answer", member.home)
    return None


BUGS: dict[str, dict[str, Any]] = {
    "a second change before the first is settled": {"RULES": without(plan._one_at_a_time)},
    "healthy members are removed while others are down": {"RULES": without(plan._wait_for_all)},
    "who has lost his data is started as if nothing were": {"RULES": (start_lost, *plan.RULES)},
    "who is down is removed at once": {"RULES": (remove_lost_at_once, *plan.RULES)},
    "who does not answer once is killed": {"RULES": (kill_whoever_does_not_answer, *plan.RULES)},
    "what a former member left stays": {"RULES": without(plan._tidy)},
    "who is lost is never replaced": {"RULES": without(plan._replace_lost)},
    "who hangs is waited for": {"RULES": without(plan._restart_silent, plan._start_again)},
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_controller_with_this_bug_is_found_out(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in BUGS[bug].items():
        monkeypatch.setattr(plan, name, value)
    assert any(simulate(seed).complaints for seed in range(60))


def test_one_that_forgets_what_it_asked_for_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator, "SETTLING_SECONDS", 0.0)
    assert any(simulate(seed).complaints for seed in range(60))
