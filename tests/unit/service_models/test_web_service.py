"""What a web service becomes."""

from __future__ import annotations

from typing import Any

import pytest

from lehr.sdk.generator import DeclaredAsset, SourceFile, UnreadableFileError
from lehr.service_models import web_service

TWO = """\
name: shop
version: v7
schema: 4
port: 8000
environment: {THEATRE: the Globe}
clusters:
  eu: {replicas: 3, ports: 8010}
  us: {replicas: 2, ports: 8030}
"""


def assets(text: str) -> dict[str, DeclaredAsset]:
    file = SourceFile("shop.yaml", text.encode())
    made = web_service(
        file,
        command=["serve", "--cluster", "{cluster}", "--version", "{version}", "{port}"],
        envoy=["envoy.py"],
        needs=["rows"],
        schema="db/schema",
    )
    return {item.id: item for item in made}


def addon(item: DeclaredAsset, name: str) -> Any:
    return item.addons.get(f"lehr.{name}")


def test_each_cluster_has_a_job_a_proxy_and_a_balancer_and_one_balancer_is_over_all() -> None:
    made = assets(TWO)
    parts = [f"shop/{cluster}/{part}" for cluster in ("eu", "us") for part in ("job", "envoy", "balancer")]
    assert list(made) == [*parts, "shop/global/envoy", "shop/global/balancer"]
    backends = made["shop/global/balancer"].payload["backends"]["balancers"]
    assert backends == [
        {"asset": "shop/eu/balancer", "weight": 3},
        {"asset": "shop/us/balancer", "weight": 2},
    ]


def test_a_job_is_told_its_version_and_cluster_and_gets_ports_of_its_own() -> None:
    job = assets(TWO)["shop/us/job"].payload
    assert job["command"] == ["serve", "--cluster", "us", "--version", "v7", "{port}"]
    assert (job["replicas"], job["ports"]) == (2, [{"name": "http", "base": 8032}])
    assert (job["version"], job["environment"]) == ("v7", {"THEATRE": "the Globe"})


def test_orders_follow_from_what_sends_load_to_what() -> None:
    made = assets(TWO)
    assert addon(made["shop/eu/balancer"], "DependsOn") == {
        "assets": ["shop/eu/envoy"],
        "capacity": ["shop/eu/job"],
    }
    assert addon(made["shop/global/balancer"], "DependsOn")["capacity"] == [
        "shop/eu/balancer",
        "shop/us/balancer",
    ]
    assert addon(made["shop/eu/job"], "DependsOn") == {
        "assets": ["rows"],
        "versions": [{"asset": "db/schema", "at_least": "4"}],
    }


def test_every_asset_says_which_cluster_it_affects() -> None:
    for id, item in assets(TWO).items():
        assert addon(item, "AffectedClusters") == {"clusters": [id.split("/")[1]]}


def test_a_cluster_that_is_turned_down_leaves_the_global_balancer_with_all_its_assets() -> None:
    made = assets(TWO.replace("ports: 8030", "ports: 8030, turndown: the lease ends"))
    gone = {id for id, item in made.items() if addon(item, "Turndown") == {"reason": "the lease ends"}}
    assert gone == {"shop/us/job", "shop/us/envoy", "shop/us/balancer"}
    over = made["shop/global/balancer"]
    assert over.payload["backends"]["balancers"] == [{"asset": "shop/eu/balancer", "weight": 3}]
    assert addon(over, "DependsOn")["capacity"] == ["shop/eu/balancer"]


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        (TWO.replace("version: v7", "version: 7"), "Expected `str`, got `int`", 2),
        (TWO.replace("replicas: 3", "replica: 3"), "unknown field `replica`", 7),
        (TWO.replace("eu:", "global:"), "global", 1),
        (TWO.partition("clusters:")[0] + "clusters: {}\n", "length >= 1", 6),
        (TWO.replace("}\n", ", turndown: x}\n"), "every cluster is turned down", 1),
    ],
)
def test_what_is_no_web_service_is_refused_with_its_place(text: str, what: str, line: int) -> None:
    text = text.replace("Globe, turndown: x", "Globe")
    with pytest.raises(UnreadableFileError) as raised:
        assets(text)
    [diagnostic] = raised.value.diagnostics
    assert what in diagnostic.what
    assert diagnostic.at is not None
    assert (diagnostic.at.file, diagnostic.at.line) == ("shop.yaml", line)
