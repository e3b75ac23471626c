"""Diffs and their effects, from what Envoy is said to run."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lehr.base.errors import StalledError
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.diff import Change, Diff, Goal
from lehr.model.types import Registry
from lehr.plugins.balancer.compare import differences
from lehr.plugins.balancer.envoy import EnvoyConfig, render, subscription, version
from lehr.plugins.balancer.intent import plan_for, units
from lehr.plugins.balancer.payload import LOAD_BALANCER, TYPES, LoadBalancer
from lehr.plugins.balancer.running_state import NOTHING, Host, Running
from lehr.plugins.process.payload import PROCESS, Port, Process
from lehr.plugins.process.payload import TYPES as PROCESS_TYPES
from lehr.testing.plugins import FixedReader, target_of
from tests.codes import raises

REGISTRY = Registry((*TYPES, *PROCESS_TYPES))


def balancer(id: str, backends: dict[str, Any], **fields: Any) -> Asset:
    payload = {"folder": id, "admin": "127.0.0.1:99", "listen": "127.0.0.1:80", "backends": backends}
    return make_asset(AssetId(id), LOAD_BALANCER, msgspec.convert({**payload, **fields}, LoadBalancer), {})


def job(replicas: int) -> Asset:
    payload = Process(command=["true"], replicas=replicas, ports=[Port("http", 8000)])
    return make_asset(AssetId("job"), PROCESS, payload, {})


def plan_of(*assets: Asset, goal: Goal = Goal.PRESENT) -> tuple[EnvoyConfig, dict[str, int]]:
    reader = FixedReader(assets, REGISTRY)
    plan = plan_for(target_of(assets[0], goal), reader, "/srv")
    return plan, units(plan, reader, assets[0].id)


def as_planned(plan: EnvoyConfig) -> tuple[dict[str, bytes], Running]:
    """What there is once the plan has been brought about."""
    files = render(plan)
    weights = {pool.name: pool.weight for pool in plan.pools.values()} if plan.weighted else None
    running = Running(
        watched=f"{plan.folder}/lds.json",
        listen=plan.balancer.listen if plan.pools else None,
        drained=plan.drained,
        refused="",
        weights=weights if weights and any(weights.values()) else None,
        pools={
            name: tuple(
                Host(address, draining=False, failover=failover, requests=0, total=0, pending=False)
                for failover, some in ((False, pool.endpoints), (True, pool.failover))
                for address in some
            )
            for name, pool in plan.pools.items()
        },
        statistics={f"{subscription(name)}.version_text": version(file) for name, file in files.items()},
    )
    return files, running


def changed(before: tuple[EnvoyConfig, dict[str, int]], after: tuple[EnvoyConfig, dict[str, int]]) -> Diff:
    return differences(after[0], *as_planned(before[0]), after[1])


JOBS = {"jobs": [{"asset": "job", "port": "http"}]}
EU = balancer("eu", {"endpoints": ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]}, listen="127.0.0.1:81")
US = balancer("us", {"endpoints": ["127.0.0.1:4", "127.0.0.1:5"]}, listen="127.0.0.1:82")


def over(**weights: int) -> tuple[EnvoyConfig, dict[str, int]]:
    backends = {"balancers": [{"asset": name, "weight": weight} for name, weight in weights.items()]}
    return plan_of(balancer("global", backends), EU, US)


def test_what_was_brought_about_differs_in_nothing() -> None:
    for plan in (plan_of(balancer("web", JOBS), job(3)), over(eu=1, us=0), over(eu=0)):
        assert changed(plan, plan).empty


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (0, 2), (2, 0)])
def test_capacity_of_a_balancer_over_jobs_is_the_number_of_its_endpoints(before: int, after: int) -> None:
    web = balancer("web", JOBS)
    diff = changed(plan_of(web, job(before)), plan_of(web, job(after)))
    assert diff.effects.capacity == after - before
    assert not diff.effects.destructive
    assert not diff.effects.disruptive
    several = [change for change in diff.changes if change.path.startswith("endpoints/")]
    assert len(several) == abs(after - before)


def test_a_change_names_the_endpoint() -> None:
    web = balancer("web", JOBS)
    diff = changed(plan_of(web, job(2)), plan_of(web, job(1)))
    assert diff.changes[0] == Change("endpoints/backends/127.0.0.1:8001", None, "serving")
    assert diff.changes[1].path == "files/eds/backends.json"


@pytest.mark.parametrize(
    ("before", "after", "capacity"),
    [
        ({"eu": 1}, {"eu": 1, "us": 1}, 2),
        ({"eu": 1, "us": 1}, {"eu": 0, "us": 1}, -3),
        ({"eu": 1, "us": 1}, {"eu": 9, "us": 1}, 0),
        ({"eu": 1, "us": 1}, {"eu": 0, "us": 0}, -5),
        ({"eu": 1, "us": 1}, {"us": 1}, -1),  # intent does not say what is behind it: at least itself
        ({"eu": 1}, {"us": 1}, None),
    ],
)
def test_capacity_over_balancers_is_what_is_behind_those_with_a_weight(
    before: dict[str, int], after: dict[str, int], capacity: int | None
) -> None:
    assert changed(over(**before), over(**after)).effects.capacity == capacity


def test_a_weight_is_a_change_of_its_own() -> None:
    diff = changed(over(eu=1, us=1), over(eu=3, us=1))
    assert diff.changes[0] == Change("weights/eu", 3, 1)
    assert diff.changes[1].path == "files/rds.json"


def test_an_envoy_without_configuration_lacks_everything() -> None:
    plan, behind = over(eu=1, us=1)
    empty = msgspec.structs.replace(NOTHING, watched="/srv/global/lds.json", statistics={"some": 1})
    diff = differences(plan, {}, empty, behind)
    paths = {change.path for change in diff.changes}
    assert {"listener", "weights/eu", "pools/us", "endpoints/us/127.0.0.1:82", "files/lds.json"} <= paths
    assert diff.effects.capacity == 5


def test_settings_that_envoy_has_not_taken_up_differ_in_their_version() -> None:
    plan, behind = plan_of(balancer("web", JOBS, timeout_seconds=3), job(1))
    files, running = as_planned(plan)
    old, _ = plan_of(balancer("web", JOBS), job(1))
    running = msgspec.structs.replace(running, statistics=as_planned(old)[1].statistics)
    diff = differences(plan, files, running, behind)
    assert [change.path for change in diff.changes] == ["running/rds.json"]


def test_a_listener_that_moves_is_disruptive() -> None:
    before, after = (plan_of(balancer("web", JOBS, listen=f"127.0.0.1:{port}"), job(1)) for port in (80, 90))
    diff = changed(before, after)
    assert diff.changes[0] == Change("listener", "127.0.0.1:90", "127.0.0.1:80")
    assert diff.effects.disruptive


def test_a_turndown_loses_all_capacity_when_it_drains_and_none_after() -> None:
    web = balancer("web", JOBS)
    present = plan_of(web, job(3))
    drained, absent = (plan_of(web, job(3), goal=goal) for goal in (Goal.DRAINED, Goal.ABSENT))
    assert changed(present, drained).effects.capacity == -3
    assert changed(present, drained).changes[0] == Change("health", "failing", "forwarded")
    assert changed(drained, absent).effects.capacity == 0
    assert changed(drained, present).effects.capacity == 3


def test_nothing_is_as_good_as_absent() -> None:
    plan, behind = plan_of(balancer("web", JOBS), job(3), goal=Goal.ABSENT)
    assert differences(plan, {}, NOTHING, behind).empty


def test_a_diff_is_short() -> None:
    web = balancer("web", {"endpoints": [f"127.0.0.1:{port}" for port in range(1000, 2000)]})
    plan, behind = plan_of(web)
    diff = differences(plan, {}, NOTHING, behind)
    assert diff.effects.capacity == 1000
    assert len(msgspec.json.encode(diff)) < 16_384


@pytest.mark.parametrize(
    ("backends", "code", "named"),
    [
        ({"jobs": [{"asset": "no", "port": "http"}]}, "BAL115", "job no"),
        ({"jobs": [{"asset": "job", "port": "web"}]}, "BAL117", "web.*http"),
        ({"jobs": [{"asset": "eu", "port": "http"}]}, "BAL116", "eu"),
        ({"balancers": [{"asset": "job"}]}, "", "lehr.Process"),
        ({"balancers": [{"asset": "no"}]}, "", "asset no"),
        ({"balancers": [{"asset": "web"}]}, "BAL114", "web to web"),
    ],
)
def test_references_that_lead_nowhere_stall(backends: dict[str, Any], code: str, named: str) -> None:
    with raises(code, StalledError, match=named):
        plan_of(balancer("web", backends), job(1), EU)


def test_capacity_limits_the_replicas_of_a_job() -> None:
    backend = {"asset": "job", "port": "http", "capacity": 2}
    plan, _ = plan_of(balancer("web", {"jobs": [backend]}), job(5))
    assert plan.pools["backends"].endpoints == ("127.0.0.1:8000", "127.0.0.1:8001")


def test_a_balancer_that_listens_everywhere_is_reached_on_loopback() -> None:
    other = balancer("eu", {"endpoints": ["127.0.0.1:1"]}, listen="0.0.0.0:81", listen_any_host=True)
    plan, _ = plan_of(balancer("web", {"balancers": [{"asset": "eu"}]}), other)
    assert plan.pools["eu"].endpoints == ("127.0.0.1:81",)


def test_diffs_of_very_many_endpoints_stay_short_and_are_told_apart() -> None:
    def found(last: int) -> Diff:
        endpoints = [f"127.0.0.1:{port}" for port in (*range(8000, 8199), last)]
        plan, behind = plan_of(balancer("web", {"endpoints": endpoints}))
        return differences(plan, {}, NOTHING, behind)

    one, other = found(9000), found(9001)
    assert len(one.changes) == len(other.changes) == 61
    assert one.changes[:60] == other.changes[:60]
    assert one.digest() != other.digest()
