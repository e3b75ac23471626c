"""What Envoy is told: golden files, and what must not depend on anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from lehr.plugins.balancer.envoy import EnvoyConfig, Pool, endpoints_file, render, subscription, version
from lehr.plugins.balancer.payload import Backends, LoadBalancer

GOLDEN = Path(__file__).with_name("golden")
BALANCER = LoadBalancer(
    folder="balancers/global",
    admin="127.0.0.1:9900",
    listen="127.0.0.1:8000",
    backends=Backends(endpoints=["127.0.0.1:8001"]),
)
EU = Pool("eu/balancer", 3, ("127.0.0.1:8001",), failover=("127.0.0.1:8002",))
US = Pool("us/balancer", 1, ("127.0.0.1:8002",), draining=("127.0.0.1:8003",))


def plan(*pools: Pool, **fields: Any) -> EnvoyConfig:
    return EnvoyConfig("/srv/balancers/global", BALANCER, {pool.name: pool for pool in pools}, **fields)


def routes(files: dict[str, bytes]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(files["rds.json"])["resources"][0]["virtual_hosts"][0]["routes"]
    return found


def test_the_files_are_these() -> None:
    files = render(plan(EU, US, weighted=True))
    assert files == {str(file.relative_to(GOLDEN)): file.read_bytes() for file in GOLDEN.rglob("*.json")}


def test_order_and_repetition_do_not_count() -> None:
    turned = Pool("eu/balancer", 3, ("127.0.0.1:8001", "127.0.0.1:7999"))
    straight = Pool("eu/balancer", 3, ("127.0.0.1:7999", "127.0.0.1:8001"))
    assert render(plan(turned, US, weighted=True)) == render(plan(US, straight, weighted=True))


def test_a_file_has_another_version_exactly_if_its_content_differs() -> None:
    before = render(plan(EU, US, weighted=True))
    after = render(plan(msgspec.structs.replace(EU, weight=4), US, weighted=True))
    differ = {name for name in before if before[name] != after[name]}
    assert differ == {"rds.json"}
    assert {name for name in before if version(before[name]) != version(after[name])} == differ


def test_new_endpoints_touch_no_other_file() -> None:
    before = render(plan(Pool("backends", 1, ("127.0.0.1:1",))))
    after = render(plan(Pool("backends", 1, ("127.0.0.1:1", "127.0.0.1:2"))))
    assert {name for name in before if before[name] != after[name]} == {"eds/backends.json"}


def test_without_pools_nothing_listens() -> None:
    files = render(plan())
    assert files.keys() == {"lds.json", "cds.json"}
    assert all(json.loads(content)["resources"] == [] for content in files.values())


def test_drained_fails_the_health_check_alone() -> None:
    serving, drained = (routes(render(plan(EU, US, weighted=True, drained=word))) for word in (False, True))
    assert drained[0] == {"direct_response": {"status": 503}, "match": {"path": "/healthz"}}
    assert drained[1:] == serving


def test_with_no_weight_at_all_every_request_is_refused() -> None:
    none = [msgspec.structs.replace(pool, weight=0) for pool in (EU, US)]
    assert routes(render(plan(*none, weighted=True))) == [
        {"direct_response": {"status": 503}, "match": {"prefix": "/"}}
    ]


def test_what_a_backend_may_have_seen_is_only_tried_again_if_idempotent() -> None:
    first, rest = routes(render(plan(EU, US, weighted=True)))
    assert "POST" not in first["match"]["headers"][0]["string_match"]["safe_regex"]["regex"].split("|")
    assert first["route"]["retry_policy"]["retriable_status_codes"] == [503]
    assert rest["route"]["retry_policy"]["retry_on"] == "connect-failure,refused-stream"


def test_every_pool_has_a_file_and_statistics_of_its_own() -> None:
    names = ["eu", "eu/web", "eu:/web", "eu_web", "eu:web", "eu%3Aweb", "a.b@c-d"]
    files = [endpoints_file(name) for name in names]
    assert all(file.count("/") == 1 for file in files)
    assert len(set(files)) == len({subscription(file) for file in files}) == len(names)
    assert not any(":" in subscription(file) for file in files)  # which Envoy would replace


def test_addresses_of_both_families() -> None:
    files = render(plan(Pool("backends", 1, ("[::1]:9", "127.0.0.1:9"))))
    found = json.loads(files["eds/backends.json"])["resources"][0]["endpoints"][0]["lb_endpoints"]
    places = [item["endpoint"]["address"]["socket_address"] for item in found]
    assert {place["address"] for place in places} == {"127.0.0.1", "::1"}
