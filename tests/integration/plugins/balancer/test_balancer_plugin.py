"""Rules of the plugin `lehr.LoadBalancer`, with real Envoys and real requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from lehr.base.blocking import Threads
from lehr.base.clock import SystemClock
from lehr.base.errors import StalledError, TransientError
from lehr.model.asset import AssetId, AssetKey, Partition, make_asset
from lehr.model.diff import Change, Goal
from lehr.model.operation import DONE, Result
from lehr.plugins.balancer.payload import LOAD_BALANCER, LoadBalancer
from lehr.plugins.balancer.plugin import BalancerPlugin
from lehr.plugins.process.payload import PROCESS, Port, Process
from lehr.testing.conformance.asset_plugin import RULES, Rule, Subject
from lehr.testing.plugins import FixedReader, push_of, target_of
from tests import awaits
from tests.codes import raises
from tests.integration.plugins import troubles
from tests.integration.plugins.balancer.town import (
    REGISTRY,
    Backend,
    Client,
    Envoy,
    Town,
    backends,
    eventually,
    free_port,
)


@pytest.fixture
def envoys(tmp_path: Path) -> Iterator[list[Envoy]]:
    """Up to three Envoys; at the end none is left."""
    made: list[Envoy] = []
    yield made
    for envoy in made:
        envoy.kill()


@pytest.fixture
def envoy(tmp_path: Path, envoys: list[Envoy]) -> Envoy:
    envoys.append(Envoy(tmp_path / "envoy"))
    return envoys[0]


@pytest.fixture
def three() -> Iterator[list[Backend]]:
    with backends(3) as made:
        yield made


def endpoints(*some: Backend) -> dict[str, Any]:
    return {"endpoints": [backend.address for backend in some]}


@contextlib.contextmanager
def down(envoy: Envoy) -> Iterator[None]:
    """Envoy does not run for a time."""
    envoy.kill()
    yield
    envoy.start()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_keeps_the_contract(rule: Rule, tmp_path: Path, envoy: Envoy, three: list[Backend]) -> None:
    def disturb() -> None:
        replace_by_hand(envoy, "cds.json", {"version_info": "by hand", "resources": []})

    subject = Subject(
        make=lambda: BalancerPlugin(tmp_path, Threads("balancer", 4), SystemClock()),
        registry=REGISTRY,
        asset=envoy.balancer(endpoints(three[0], three[1]), drain_seconds=0.05),
        changed=envoy.balancer(endpoints(three[2]), drain_seconds=0.05),
        disturb=disturb,
        observe=envoy.files,
        troubles=(lambda: troubles.file_at(envoy.folder), lambda: down(envoy)),
        interruptions=awaits.some(3),
    )
    asyncio.run(rule(subject))


def replace_by_hand(envoy: Envoy, name: str, content: object) -> None:
    new = envoy.folder / "by-hand"
    new.write_text(json.dumps(content))
    new.rename(envoy.folder / name)


def test_adding_and_removing_endpoints_loses_no_request(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    town.apply(envoy.balancer(endpoints(*three)))
    with Client(envoy.listen) as client:
        client.await_answers(1000)
        town.apply(envoy.balancer(endpoints(three[0])))
        for gone in three[1:]:
            gone.stop()  # at once: what was under way there has been answered
        client.await_answers(1000)
        with backends(2) as more:
            town.apply(envoy.balancer(endpoints(three[0], *more)))
            eventually(lambda: more[0].requests > 100 and more[1].requests > 100)
            town.apply(envoy.balancer(endpoints(three[0])))
        client.await_answers(1000)
    assert not client.failures
    assert client.answers.total() > 2000


def test_an_endpoint_that_is_removed_finishes_its_requests(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    three[1].slow = threading.Event()
    town.apply(envoy.balancer(endpoints(three[1])))
    answers: list[tuple[int, str]] = []
    slow = threading.Thread(target=lambda: answers.append(envoy.get("/slow")))
    slow.start()
    eventually(lambda: three[1].requests == 1)
    push = threading.Thread(target=lambda: town.apply(envoy.balancer(endpoints(three[0]))))
    push.start()
    eventually(lambda: envoy.get() == (200, "backend-0"))
    assert push.is_alive()
    assert not answers
    three[1].slow.set()
    slow.join()
    push.join()
    assert answers == [(200, "backend-1")]
    assert town.diff(envoy.balancer(endpoints(three[0]))).empty


def weighted(*weights: int) -> dict[str, Any]:
    names = zip(("eu/web:1", "us"), weights, strict=False)
    return {"balancers": [{"asset": name, "weight": weight} for name, weight in names]}


@pytest.fixture
def world(tmp_path: Path, envoys: list[Envoy], three: list[Backend]) -> Town:
    """A town in which Envoy 0 can be put over the balancers `eu/web:1` (Envoy 1) and `us` (Envoy 2)."""
    envoys += [Envoy(tmp_path / name) for name in ("global", "eu", "us")]
    town = Town(tmp_path)
    town.others = [
        envoys[1].balancer(endpoints(three[0]), "eu/web:1"),
        envoys[2].balancer(endpoints(three[1], three[2]), "us"),
    ]
    for other in town.others:
        town.apply(other)
    return town


def test_weights_change_under_load_without_a_failed_request(
    world: Town, envoys: list[Envoy], three: list[Backend]
) -> None:
    top = envoys[0]
    world.apply(top.balancer(weighted(1, 1)))
    with Client(top.listen) as client:
        eventually(lambda: three[0].requests > 100 and three[1].requests > 100)
        world.apply(top.balancer(weighted(0, 1)))
        before = three[0].requests
        client.await_answers(500)
        assert three[0].requests == before
        world.apply(top.balancer(weighted(3, 1)))
        client.await_answers(500)
        world.apply(top.balancer(weighted(1)))
        before = three[1].requests
        client.await_answers(500)
        assert three[1].requests == before
        world.apply(top.balancer(weighted(1, 9)))
        client.await_answers(500)
        world.apply(top.balancer(weighted(1)))
        envoys[2].kill()  # at once: what was under way there has been answered
        client.await_answers(500)
    assert not client.failures
    assert client.answers.total() > 2000


def test_no_request_is_routed_to_a_pool_before_its_first_probe_is_answered(
    world: Town, envoys: list[Envoy], three: list[Backend]
) -> None:
    top = envoys[0]
    world.apply(top.balancer(weighted(1), health_interval_seconds=2.0))
    routes = top.files()["rds.json"]
    with Client(top.listen) as client:
        client.await_answers(100)
        envoys[2].signal(signal.SIGSTOP)
        asset = top.balancer(weighted(1, 9), health_interval_seconds=2.0)
        push = threading.Thread(target=world.apply, args=(asset,))
        push.start()
        eventually(lambda: b'"us"' in top.files()["cds.json"])
        time.sleep(0.2)  # a push that does not wait needs 0.03 s
        unchanged = top.files()["rds.json"] == routes
        envoys[2].signal(signal.SIGCONT)
        push.join()
        client.await_answers(500)
    assert unchanged
    assert not client.failures
    assert three[1].requests > 0


def test_a_turndown_loses_no_request_even_if_the_balancer_in_front_does_not_know_of_it(
    world: Town, envoys: list[Envoy], three: list[Backend]
) -> None:
    top = envoys[0]
    world.apply(top.balancer(weighted(1, 1)))
    with Client(top.listen) as client:
        eventually(lambda: three[0].requests > 100 and three[1].requests > 100)
        for goal in (Goal.DRAINED, Goal.ABSENT):
            world.apply(world.others[1], goal)
        before = three[1].requests
        client.await_answers(500)
        assert three[1].requests == before
    assert not client.failures


def test_capacity_of_a_balancer_over_others_is_what_is_behind_those_with_a_weight(
    world: Town, envoys: list[Envoy]
) -> None:
    top = envoys[0]
    assert world.diff(top.balancer(weighted(1, 1))).effects.capacity == 3
    world.apply(top.balancer(weighted(0, 1)))
    diff = world.diff(top.balancer(weighted(5, 1)))
    assert Change("weights/eu/web:1", 5, 0) in diff.changes
    assert diff.effects.capacity == 1
    assert world.diff(top.balancer(weighted(0, 7))).effects.capacity == 0
    assert world.diff(top.balancer(weighted(1, 0))).effects.capacity == -1
    # Intent does not say any more how much there is behind the other: at least what Envoy knows of.
    assert world.diff(top.balancer(weighted(0))).effects.capacity == -1
    assert world.diff(top.balancer(weighted(1))).effects.capacity is None


def test_the_share_of_a_balancer_that_died_goes_to_the_others(
    world: Town, envoys: list[Envoy], three: list[Backend]
) -> None:
    top, eu, _ = envoys
    world.apply(top.balancer(weighted(1, 1)))
    with Client(top.listen) as client:
        eventually(lambda: three[0].requests > 100 and three[1].requests > 100)
        eu.kill()
        client.await_answers(1000)
    # An answer that was cut off in the middle cannot be asked for again.
    assert all(failure.startswith("IncompleteRead") for failure in client.failures)
    assert len(client.failures) <= client.workers


def test_endpoints_are_the_replicas_that_intent_gives_a_job(tmp_path: Path, envoy: Envoy) -> None:
    town = Town(tmp_path)
    base = free_port()
    job = Process(command=["true"], replicas=3, ports=[Port("admin", base + 100), Port("http", base)])
    town.others = [make_asset(AssetId("eu/job"), PROCESS, job, {})]
    asset = envoy.balancer({"jobs": [{"asset": "eu/job", "port": "http", "capacity": 2}]})
    diff = town.diff(asset)
    assert diff.effects.capacity == 2
    assert f"endpoints/backends/127.0.0.1:{base + 1}" in [item.path for item in diff.changes]
    town.apply(asset)
    more = envoy.balancer({"jobs": [{"asset": "eu/job", "port": "http"}]})
    diff = town.diff(more)
    assert diff.effects.capacity == 1
    assert diff.changes[0].path == f"endpoints/backends/127.0.0.1:{base + 2}"


def test_an_envoy_that_does_not_answer_is_waited_for(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    asset = envoy.balancer(endpoints(*three))
    town.apply(asset)
    envoy.kill()
    with raises("BAL103", TransientError, match=f"Envoy at {envoy.admin} does not answer"):
        town.diff(asset)
    assert town.push(asset).result is Result.FAILED
    envoy.start()
    eventually(lambda: town.diff(asset).empty)
    assert envoy.get()[0] == 200


def test_an_envoy_that_hangs_is_waited_for(tmp_path: Path, envoy: Envoy, three: list[Backend]) -> None:
    asset = envoy.balancer(endpoints(*three))
    Town(tmp_path).apply(asset)
    envoy.signal(signal.SIGSTOP)
    with raises("BAL104", TransientError, match="timed out"):
        Town(tmp_path).diff(asset)
    envoy.signal(signal.SIGCONT)
    assert Town(tmp_path).diff(asset).empty


def test_something_else_at_the_admin_address_is_no_envoy(tmp_path: Path, three: list[Backend]) -> None:
    fields = {"folder": "envoy", "listen": "127.0.0.1:1", "admin": three[0].address}
    payload = msgspec.convert({**fields, "backends": endpoints(three[1])}, LoadBalancer)
    asset = make_asset(AssetId("web"), LOAD_BALANCER, payload, {})
    with raises("BAL104", TransientError, match=f"Envoy at {three[0].address} does not answer"):
        Town(tmp_path).diff(asset)
    assert not list(tmp_path.iterdir())


def test_an_envoy_that_starts_with_broken_files_is_healed(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    asset = envoy.balancer(endpoints(*three))
    town.apply(asset)
    envoy.kill()
    (envoy.folder / "cds.json").write_text("}{")
    (envoy.folder / "lds.json").write_text("")
    envoy.start()
    assert not town.diff(asset).empty
    town.apply(asset)
    assert envoy.get()[0] == 200


@pytest.mark.parametrize("name", ["lds.json", "cds.json", "rds.json", "eds/backends.json"])
def test_a_file_edited_by_hand_is_healed(
    name: str, tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    asset = envoy.balancer(endpoints(*three))
    town.apply(asset)
    right = envoy.files()
    replace_by_hand(envoy, name, {"version_info": json.loads(right[name])["version_info"], "resources": []})
    assert f"files/{name}" in town.paths(asset)
    town.apply(asset)
    (envoy.folder / name).write_bytes(right[name] + b" ")  # in place: Envoy does not read it
    assert town.paths(asset) == [f"files/{name}"]
    town.apply(asset)
    (envoy.folder / name).unlink()
    assert town.paths(asset) == [f"files/{name}"]
    town.apply(asset)
    assert envoy.files() == right
    assert envoy.get()[0] == 200


def test_what_envoy_runs_counts_even_if_the_file_is_right_again(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    asset = envoy.balancer(endpoints(*three))
    town.apply(asset)
    name = "eds/backends.json"
    right = envoy.files()[name]
    wrong = json.loads(right)
    del wrong["resources"][0]["endpoints"][0]["lb_endpoints"][1:]
    replace_by_hand(envoy, name, wrong)
    eventually(lambda: len(town.paths(asset)) == 3)
    (envoy.folder / name).write_bytes(right)
    found = town.diff(asset)
    assert [item.path.rpartition("/")[0] for item in found.changes] == ["endpoints/backends"] * 2
    assert found.effects.capacity == 2
    town.apply(asset)


def test_a_port_in_use_is_said_in_envoys_own_words(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    asset = envoy.balancer(endpoints(three[0]), listen=three[1].address)
    outcome = town.push(asset)
    assert outcome.result is Result.FAILED
    assert f"Envoy cannot listen on {three[1].address}" in outcome.message
    assert f"cannot bind '{three[1].address}': Address already in use" in outcome.message
    assert town.paths(asset) == ["listener"]
    three[1].stop()
    town.apply(asset)


def test_an_envoy_that_watches_another_folder_is_left_alone(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    before = envoy.files()
    asset = envoy.balancer(endpoints(three[0]), folder="elsewhere")
    with raises("BAL118", StalledError):
        Town(tmp_path).diff(asset)
    assert envoy.files() == before


def test_a_turndown_fails_the_health_check_first_and_then_closes_the_listener(
    tmp_path: Path, envoy: Envoy, three: list[Backend]
) -> None:
    town = Town(tmp_path)
    asset = envoy.balancer(endpoints(*three))
    town.apply(asset)
    assert town.diff(asset, Goal.DRAINED).effects.capacity == -3
    town.apply(asset, Goal.DRAINED)
    assert envoy.get("/healthz")[0] == 503
    assert envoy.get()[0] == 200
    assert town.diff(asset, Goal.ABSENT).effects.capacity == 0
    town.apply(asset, Goal.ABSENT)
    with pytest.raises(ConnectionRefusedError):
        envoy.get()
    assert envoy.files().keys() == {"bootstrap.json", "cds.json", "lds.json"}
    envoy.kill()
    assert town.diff(asset, Goal.ABSENT).empty


def test_an_envoy_that_is_gone_can_be_turned_down(tmp_path: Path, envoy: Envoy, three: list[Backend]) -> None:
    town = Town(tmp_path)
    asset = envoy.balancer(endpoints(*three))
    town.apply(asset)
    envoy.kill()
    assert not town.diff(asset, Goal.ABSENT).empty
    town.apply(asset, Goal.ABSENT)
    assert envoy.files().keys() == {"bootstrap.json"}


def test_changes_behind_the_back_are_noticed(tmp_path: Path, envoy: Envoy, three: list[Backend]) -> None:
    asset = envoy.balancer(endpoints(*three))
    Town(tmp_path).apply(asset)

    async def scene() -> None:
        threads = Threads("balancer", 4)
        plugin = BalancerPlugin(tmp_path, threads, SystemClock())
        hints = cast("AsyncGenerator[AssetKey]", plugin.watch())

        async def noticed() -> None:
            found = await asyncio.wait_for(anext(hints), 20)
            assert found == AssetKey(Partition("test"), AssetId("web"))

        async def look() -> None:
            diff = await plugin.diff(target_of(asset), FixedReader([asset], REGISTRY))
            assert diff.empty

        await look()
        (envoy.folder / "rds.json").write_bytes(b"")
        await noticed()
        target = target_of(asset)
        assert await plugin.push(target, FixedReader([asset], REGISTRY), push_of(target)) == DONE
        await look()
        await threads.run(envoy.kill)
        await noticed()
        await threads.run(envoy.start)
        await noticed()
        await hints.aclose()
        await plugin.close()

    asyncio.run(scene())
