"""Outputs: one asset needs what production has made of another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from msgspec import UNSET

from lehr.base.blocking import Inline
from lehr.base.chance import Chance
from lehr.base.clock import Clock
from lehr.checks import CHECKS, TYPES
from lehr.cli.describe import _document, _history
from lehr.dry_run.candidate import CandidateIntent
from lehr.dry_run.planned import Planned
from lehr.dry_run.planner import Planner
from lehr.model.addons import DEPENDS_ON, TURNDOWN, DependsOn, Turndown
from lehr.model.asset import Asset, AssetId, AssetKey, make_asset
from lehr.model.decision import Status
from lehr.model.diff import Change, Diff, Goal, Target
from lehr.model.operation import DONE, Outcome
from lehr.model.outputs import OutputNames
from lehr.model.types import AssetType
from lehr.query.compare import changes_between
from lehr.query.describe import describe
from lehr.query.explain import explain
from lehr.query.partition_view import Reading
from lehr.sdk.plugin import AssetPlugin, Push, Reader, Traits
from lehr.sdk.runtime import Runtime
from lehr.testing.virtual import VirtualClock, run
from lehr.testing.world import PARTITION, Thing
from tests.world import Plane, World

NET, SUBNET = "test.Net", "test.Subnet"
NETS = tuple(AssetType(name, Thing) for name in (NET, SUBNET))
HOUR = 3600.0


class Cloud:
    """Production that makes ids: what it holds, by asset id.

    Attributes:
        ids: of everything that there is.
        loads: an output of everything, which changes.
        made_with: what each was made with.
        made: everything that was made or changed, in order.
        looking: how long a look takes after everything was read, by asset id.
        late: ids of what has its outputs later than its diff is empty.
        silent: ids of what has a diff without outputs.
        looks: ids of what was looked at, in order.
        seconds: how long a push takes.
    """

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}
        self.loads: dict[str, int] = {}
        self.made_with: dict[str, tuple[Any, ...]] = {}
        self.made: list[str] = []
        self.looking: dict[str, float] = {}
        self.late: set[str] = set()
        self.silent: set[str] = set()
        self.looks: list[str] = []
        self.seconds = 1.0

    def make(self, id: str, made_with: tuple[Any, ...]) -> None:
        if id not in self.ids:
            self.ids[id] = f"{id}-{len(self.made)}"
        self.made_with[id] = made_with
        self.made.append(id)


class CloudPlugin(AssetPlugin):
    """Nets, and subnets that need the ids of what they read."""

    types = (NET, SUBNET)
    traits = Traits(goals=frozenset({Goal.ABSENT}), resync=HOUR)
    outputs: ClassVar[Mapping[str, OutputNames]] = dict.fromkeys(
        types, OutputNames(stable=frozenset({"id"}), changing=frozenset({"load"}))
    )

    def __init__(self, cloud: Cloud, clock: Clock) -> None:
        self.cloud = cloud
        self.clock = clock

    async def diff(self, target: Target, read: Reader) -> Diff:
        cloud, id = self.cloud, target.id
        cloud.looks.append(id)
        there = id in cloud.ids
        known = there and id not in cloud.late
        outputs: Any = {"id": cloud.ids[id], "load": cloud.loads.get(id, 0)} if known else {}
        if id in cloud.silent:
            outputs = UNSET
        intended = None if target.goal is Goal.ABSENT else self._intended(target, read)
        observed = cloud.made_with.get(id) if there else None
        await self.clock.sleep(cloud.looking.get(id, 0.0))
        changes = () if intended == observed else (Change("made with", intended, observed),)
        return Diff(changes, outputs=outputs)

    def _intended(self, target: Target, read: Reader) -> tuple[Any, ...]:
        payload = read.payload(target.id, Thing)
        for other in payload.reads:
            read.output(AssetId(other), "load")
        return payload.value, *(read.output(AssetId(other), "id") for other in payload.reads)

    async def push(self, target: Target, read: Reader, push: Push) -> Outcome:
        await self.clock.sleep(self.cloud.seconds)
        if target.goal is Goal.ABSENT:
            del self.cloud.ids[target.id], self.cloud.made_with[target.id]
        else:
            self.cloud.make(target.id, self._intended(target, read))
        return DONE


def net(id: str, value: str = "1", addons: Mapping[str, Any] | None = None) -> Asset:
    return make_asset(AssetId(id), NET, Thing(value), addons or {})


def subnet(id: str, *reads: str, value: str = "1", addons: Mapping[str, Any] | None = None) -> Asset:
    return make_asset(AssetId(id), SUBNET, Thing(value, reads=list(reads)), addons or {})


Scenario = Callable[["CloudPlane"], Awaitable[None]]


class CloudPlane:
    """A control plane over a cloud, which may be started again."""

    def __init__(self, folder: Path, cloud: Cloud, clock: VirtualClock) -> None:
        self.cloud = cloud
        self.clock = clock
        self._folder = folder

    async def start(self) -> None:
        self.plugin = CloudPlugin(self.cloud, self.clock)
        checks = [check() for check in CHECKS]
        types = (*NETS, *TYPES)
        world = World()
        self.plane = Plane(self._folder, world, self.clock, checks=checks, types=types, plugins=[self.plugin])
        await self.plane.start()

    async def restart(self) -> None:
        await self.plane.kill()
        await self.start()

    async def publish(self, *assets: Asset) -> None:
        await self.plane.publish(*assets)

    async def planned(self, *assets: Asset) -> dict[str, Planned]:
        """The plan for these as the whole of intent."""
        store, known, now = self.plane.store, self.plane.registry, self.clock.now()
        newest = store.intent.newest(PARTITION)
        before = () if newest is None else store.intent.assets(PARTITION, newest.sequence)
        intended = {asset.id: asset for asset in assets}
        changes = tuple(changes_between(before, intended))
        candidate = CandidateIntent(store.intent, PARTITION, newest, intended, changes, known, now)
        runtime = Runtime(PARTITION, store, known, self.clock, Chance(1), Inline())
        checks = [check() for check in CHECKS]
        planner = Planner(runtime, candidate, [CloudPlugin(self.cloud, self.clock)], checks)
        return {str(item.id): item for item in await planner.plan()}

    def hint(self, id: str) -> None:
        self.plane.enforcer.wake(AssetId(id), "hint")

    def reason(self, id: str) -> str:
        return self.plane.condition(id).reason

    def reading(self) -> Reading:
        return Reading(self.plane.store, PARTITION, self.clock.now(), self.plane.registry.inert)

    def outputs(self, id: str) -> Any:
        found = self.plane.store.records.outputs_of(AssetKey(PARTITION, AssetId(id)))
        return None if found is None else found.values


def play(folder: Path, scenario: Scenario) -> Cloud:
    cloud = Cloud()

    async def main() -> None:
        tested = CloudPlane(folder, cloud, VirtualClock())
        await tested.start()
        try:
            await scenario(tested)
        finally:
            await tested.plane.kill()

    run(main, seed=1)
    return cloud


def test_an_asset_is_made_as_soon_as_it_can_be_and_not_before(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        tested.cloud.seconds = 10.0
        await tested.publish(net("net"), subnet("sub", "net"), subnet("lower", "sub"))
        await tested.clock.sleep(5)
        condition = tested.plane.condition("sub")
        assert (condition.status, condition.reason) == (Status.WAITING, "OutputUnknown")
        assert condition.message == "output `load` of net is not known yet"
        reading = tested.reading()
        assert [link.row.id for link in explain(reading, "lower").chain] == ["sub", "net"]
        await tested.clock.sleep(30)
        assert tested.cloud.made == ["net", "sub", "lower"]
        assert tested.cloud.made_with["lower"] == ("1", "sub-1")
        assert tested.outputs("net") == {"id": "net-0", "load": 0}

    play(tmp_path, scenario)


def test_a_stable_output_wakes_and_any_other_one_does_not(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        cloud = tested.cloud
        await tested.publish(net("net"), subnet("sub", "net"))
        await tested.clock.sleep(10)
        cloud.looks.clear()
        cloud.loads["net"] = 5
        tested.hint("net")
        await tested.clock.sleep(10)
        assert cloud.looks == ["net"]
        assert tested.outputs("net") == {"id": "net-0", "load": 5}
        cloud.ids["net"] = "another"
        tested.hint("net")
        await tested.clock.sleep(10)
        assert cloud.made == ["net", "sub", "sub"]
        assert cloud.made_with["sub"] == ("1", "another")

    play(tmp_path, scenario)


def test_a_change_of_intent_alone_wakes_no_reader_of_outputs(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        await tested.publish(net("net"), subnet("sub", "net"))
        await tested.clock.sleep(10)
        tested.cloud.looks.clear()
        await tested.publish(net("net", "2"), subnet("sub", "net"))
        await tested.clock.sleep(10)
        assert tested.cloud.made == ["net", "sub", "net"]
        assert "sub" not in tested.cloud.looks

    play(tmp_path, scenario)


def test_an_output_that_comes_after_its_asset_has_settled_is_not_missed(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        tested.cloud.late.add("net")
        await tested.publish(net("net"), subnet("sub", "net"))
        await tested.clock.sleep(10)
        assert (tested.reason("net"), tested.reason("sub")) == ("AsIntended", "OutputUnknown")
        tested.cloud.late.clear()
        tested.hint("net")
        await tested.clock.sleep(5)
        assert tested.reason("sub") == "AsIntended"

    play(tmp_path, scenario)


def test_a_new_process_knows_outputs_before_anything_was_looked_at(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        await tested.publish(net("net"), subnet("sub", "net"))
        await tested.clock.sleep(10)
        tested.cloud.silent.add("net")
        await tested.restart()
        await tested.publish(net("net"), subnet("sub", "net", value="2"))
        await tested.clock.sleep(10)
        assert tested.cloud.made_with["sub"] == ("2", "net-0")

    play(tmp_path, scenario)


def test_an_output_that_changes_during_a_push_leads_to_another_push_and_to_no_failure(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        await tested.publish(net("net"), subnet("sub", "net"))
        await tested.clock.sleep(10)
        tested.cloud.seconds = 10.0
        await tested.publish(net("net"), subnet("sub", "net", value="2"))
        await tested.clock.sleep(1)
        tested.cloud.ids["net"] = "another"
        tested.hint("net")
        await tested.clock.sleep(30)
        assert tested.cloud.made == ["net", "sub", "sub", "sub"]
        assert tested.cloud.made_with["sub"] == ("2", "another")
        decisions = tested.plane.store.records.decisions(PARTITION, AssetId("sub"))
        reasons = {decision.condition.reason for _number, decision in decisions}
        assert reasons == {"OutputUnknown", "Pushing", "AsIntended"}

    play(tmp_path, scenario)


def test_what_is_taken_down_has_no_outputs_and_what_is_made_again_has_others(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        await tested.publish(net("net"), net("other"))
        await tested.clock.sleep(10)
        await tested.publish(net("net", addons={TURNDOWN: Turndown("old", 0.0, 0.0)}), net("other"))
        await tested.clock.sleep(10)
        assert (tested.reason("net"), tested.outputs("net")) == ("Removed", None)
        await tested.publish(net("net"), net("other"), subnet("sub", "net"))
        await tested.clock.sleep(10)
        assert tested.cloud.made_with["sub"] == ("1", "net-2")
        assert tested.outputs("net") == {"id": "net-2", "load": 0}

    play(tmp_path, scenario)


def test_an_id_that_passes_to_another_type_passes_no_outputs_on(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        await tested.publish(net("x"), net("other"))
        await tested.clock.sleep(10)
        tested.cloud.silent.add("x")
        # Let go of, and declared again as another type at once.
        await tested.publish(subnet("x"), net("other"), subnet("sub", "x"))
        await tested.clock.sleep(20)
        assert tested.reason("sub") == "OutputUnknown"
        await tested.restart()
        await tested.clock.sleep(20)
        assert tested.reason("sub") == "OutputUnknown"
        tested.cloud.silent.clear()
        tested.hint("x")
        await tested.clock.sleep(20)
        assert tested.reason("sub") == "AsIntended"

    play(tmp_path, scenario)


def test_assets_that_need_each_others_outputs_are_named(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        await tested.publish(subnet("a", "b"), subnet("b", "a"))
        await tested.clock.sleep(1)
        tested.hint("a")
        tested.hint("b")
        await tested.clock.sleep(1)
        conditions = [tested.plane.condition(id) for id in "ab"]
        assert "MutualBlock" in {condition.reason for condition in conditions}
        assert not tested.cloud.made

    play(tmp_path, scenario)


def test_a_push_does_not_begin_with_outputs_that_have_changed_since_its_diff(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        cloud, order = tested.cloud, {DEPENDS_ON: DependsOn(assets=["net"])}
        await tested.publish(net("net"), subnet("sub", "net", addons=order))
        await tested.clock.sleep(10)
        cloud.ids["net"] = "another"
        cloud.looking["net"] = 3.0
        tested.hint("net")
        await tested.clock.sleep(1)
        # Its checks look at `net` until after the turn of `net` has found the other id.
        await tested.publish(net("net"), subnet("sub", "net", value="2", addons=order))
        await tested.clock.sleep(20)
        assert cloud.made_with["sub"] == ("2", "another")
        assert cloud.made.count("sub") == 2

    play(tmp_path, scenario)


def test_an_output_that_changes_during_the_first_look_of_its_reader_is_not_missed(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        cloud = tested.cloud
        cloud.make("net", ("1",))
        cloud.make("sub", ("1", "net-0"))
        await tested.publish(net("net"))
        await tested.clock.sleep(10)
        cloud.looking["sub"] = 3.0
        await tested.publish(net("net"), subnet("sub", "net"))
        await tested.clock.sleep(1)
        cloud.ids["net"] = "another"
        tested.hint("net")
        await tested.clock.sleep(20)
        assert cloud.made_with["sub"] == ("1", "another")

    play(tmp_path, scenario)


def test_a_description_shows_outputs_and_since_when(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        await tested.publish(net("net"), net("other"))
        await tested.clock.sleep(10)
        tested.cloud.loads["net"] = 7
        tested.hint("net")
        await tested.clock.sleep(120)
        found = describe(tested.reading(), tested.plane.registry, "net")
        shown = list(_history(found, tested.clock.now()))
        id = tested.cloud.ids["net"]
        assert shown[1:4] == ["  outputs    since 2m ago", f"    id: {id}", "    load: 7"]
        assert _document(found)["outputs"] == {"id": id, "load": 7}

    play(tmp_path, scenario)


def test_a_plan_says_which_push_an_output_will_be_known_after(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        found = await tested.planned(net("net"), subnet("sub", "net"), subnet("lower", "sub"))
        assert found["net"].result == "will be pushed"
        assert (found["sub"].result, found["sub"].reason) == ("waits", "OutputUnknown")
        assert found["sub"].message == (
            "output `load` of net is not known yet; it will be after the push of net"
        )
        assert found["sub"].wait_for == ("net",)
        assert found["lower"].message == "output `load` of sub is not known yet"

    play(tmp_path, scenario)


def test_a_plan_finds_the_outputs_of_what_is_there_already(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        tested.cloud.make("net", ("1",))
        tested.cloud.make("a-sub", ("1", "net-0"))
        after = {DEPENDS_ON: DependsOn(assets=["a-sub"])}
        intent = net("net"), subnet("a-sub", "net"), subnet("a-lower", "a-sub"), net("x", addons=after)
        found = await tested.planned(*intent)
        assert {id: str(item.result) for id, item in found.items()} == {
            "net": "as intended",
            "a-sub": "as intended",
            "a-lower": "will be pushed",
            "x": "will be pushed",
        }
        await tested.publish(*intent)
        await tested.clock.sleep(10)
        assert sorted(tested.cloud.made[2:]) == ["a-lower", "x"]

    play(tmp_path, scenario)


def test_a_plan_names_assets_that_need_each_others_outputs(tmp_path: Path) -> None:
    async def scenario(tested: CloudPlane) -> None:
        found = await tested.planned(subnet("a", "b"), subnet("b", "a"))
        assert "MutualBlock" in {item.reason for item in found.values()}

    play(tmp_path, scenario)
