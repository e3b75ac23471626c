"""What has left intent and not production keeps what it claims; what has left both gives it up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from lehr.base.blocking import Inline
from lehr.base.errors import TransientError
from lehr.model.asset import AssetId, Partition
from lehr.model.control import ControlKind
from lehr.model.reason import Reason
from lehr.store.claims import HostClaims
from lehr.store.sqlite.claims import ClaimFile
from lehr.testing.virtual import VirtualClock
from lehr.testing.world import PARTITION, THING, thing
from tests.simulation.playing import control, play, turned_down
from tests.world import Plane, World


class Fickle(HostClaims):
    """A register that cannot release anything at times."""

    broken = False

    async def release(self, partition: Partition, assets: Collection[AssetId]) -> None:
        if self.broken:
            raise TransientError("the register is locked")
        await super().release(partition, assets)


@pytest.fixture
def register(tmp_path: Path) -> Iterator[ClaimFile]:
    made = ClaimFile(tmp_path / "claims.sqlite", lambda _: True)
    yield made
    made.close()


@pytest.fixture
def claims(register: ClaimFile, tmp_path: Path) -> Fickle:
    return Fickle(register, "store", tmp_path, tmp_path, Inline(), Inline())


def claiming(plane: Plane) -> None:
    """Each thing claims the port that its value names."""
    known = plane.registry.types[THING]
    plane.registry.types[THING] = replace(known, claims=lambda payload: [f"port:{payload.value}"])


def held(register: ClaimFile) -> dict[str, str]:
    return {item.name: item.holder.asset for item in register.all()}


def test_nothing_is_pushed_over_what_is_still_being_turned_down(
    tmp_path: Path, register: ClaimFile, claims: Fickle
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        claiming(plane)
        await plane.publish(thing("old", "1"))
        await plane.settle()
        await plane.publish(thing("old", "1", turned_down(fence=100)))
        await clock.sleep(30)
        await plane.publish(thing("new", "1"))
        await clock.sleep(50)
        assert world.values == {"old": "fenced 1"}
        assert held(register) == {"port:1": "old"}
        found = plane.condition("new")
        assert (found.reason, found.message) == (Reason.CLAIMED_HERE, "port 1 still belongs to `old`")
        world.order.clear()
        await clock.sleep(30)
        assert world.order == ["old", "new"], "it is woken when the claim is free"
        assert world.values == {"new": "1"}
        assert held(register) == {"port:1": "new"}

    play(tmp_path, scenario, claims=claims)


def test_a_claim_that_changes_hands_is_held_by_who_has_it_in_intent(
    tmp_path: Path, register: ClaimFile, claims: Fickle
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        claiming(plane)
        await plane.publish(thing("a", "1"), thing("b", "2"))
        await plane.settle()
        await plane.publish(thing("a", "2"), thing("b", "1"))
        await plane.settle()
        assert world.values == {"a": "2", "b": "1"}
        assert held(register) == {"port:1": "b", "port:2": "a"}
        await plane.publish(thing("c", "1"), thing("a", "2"))
        await plane.settle()
        assert held(register) == {"port:1": "c", "port:2": "a"}, "b was let go"

    play(tmp_path, scenario, claims=claims)


def test_who_is_pinned_to_a_claim_that_is_anothers_now_waits(
    tmp_path: Path, register: ClaimFile, claims: Fickle
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        claiming(plane)
        await plane.publish(thing("a", "1"), thing("b", "2"))
        await plane.settle()
        await plane.publish(thing("a", "3"), thing("b", "2"))
        await plane.publish(thing("a", "3"), thing("b", "1"))
        await plane.settle()
        await plane.control(control(ControlKind.PIN, "a", clock, incarnation=1))
        await clock.sleep(30)
        assert world.values == {"a": "3", "b": "1"}
        assert plane.condition("a").reason == Reason.CLAIMED_HERE
        assert held(register)["port:1"] == "b"

    play(tmp_path, scenario, claims=claims)


def _stays_away(claims: Fickle) -> None:
    claims.broken = True


@pytest.mark.parametrize("trouble", [lambda claims: None, _stays_away], ids=["at once", "later"])
def test_what_has_left_gives_its_claims_up(
    tmp_path: Path, register: ClaimFile, claims: Fickle, trouble: Callable[[Fickle], None]
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        claiming(plane)
        await plane.publish(thing("a", "1"), thing("b", "2"))
        await plane.settle()
        await plane.publish(thing("a", "1", turned_down()), thing("b", "2"))
        trouble(claims)
        await plane.settle()
        assert world.values == {"b": "2"}
        await clock.sleep(30)
        claims.broken = False
        await clock.sleep(10)
        assert held(register) == {"port:2": "b"}

    play(tmp_path, scenario, claims=claims)


def test_what_a_former_process_did_not_give_up_is_given_up_at_start(
    tmp_path: Path, register: ClaimFile, claims: Fickle
) -> None:
    async def before(plane: Plane, world: World, clock: VirtualClock) -> None:
        claiming(plane)
        await plane.publish(thing("a", "1"), thing("b", "2"), thing("c", "3"))
        await plane.settle()
        down = turned_down(fence=1000)
        await plane.publish(thing("a", "1", turned_down()), thing("b", "2"), thing("c", "3", down))
        claims.broken = True
        await clock.sleep(20)
        await plane.publish(thing("b", "2"))
        await clock.sleep(10)

    play(tmp_path, before, claims=claims)
    claims.broken = False

    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        await clock.sleep(1)
        assert held(register) == {"port:2": "b", "port:3": "c"}, "c is still being turned down"

    play(tmp_path, scenario, claims=claims, seed=2)


def test_what_comes_back_while_claims_are_given_up_keeps_its_own(
    tmp_path: Path, register: ClaimFile, claims: Fickle
) -> None:
    async def scenario(plane: Plane, world: World, clock: VirtualClock) -> None:
        claiming(plane)
        await plane.publish(thing("a", "1"))
        await plane.settle()
        claims.broken = True
        await plane.publish(thing("a", "1", turned_down()))
        await plane.settle()
        await plane.publish()
        await clock.sleep(10)
        world.values["a"] = "1"
        await plane.publish(thing("a", "1"))
        await claims.take(PARTITION, {AssetId("a"): ["port:1"]}, only=True)
        claims.broken = False
        await clock.sleep(30)
        assert held(register) == {"port:1": "a"}

    play(tmp_path, scenario, claims=claims)
