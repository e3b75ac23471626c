"""Writes a balancer as the files that Envoy watches. Pure.

    lds.json       the listener          rds.json             routes, with a weight for each pool
    cds.json       the pools             eds/<pool>.json      endpoints of one pool

Things that change most are furthest from the listener: new weights or endpoints replace no listener and
no pool, so no connection is touched. A file's version is the digest of its content.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from lehr.base.digest import canonical, digest, short
from lehr.plugins.balancer.payload import LoadBalancer, split

LISTENERS, CLUSTERS, ROUTES, ENDPOINTS = "lds.json", "cds.json", "rds.json", "eds"

STATS = "ingress"
"""Prefix of the listener's statistics."""

ROUTE = "routes"
"""Name of the only route configuration."""

_TYPE = "type.googleapis.com/envoy."
_IDEMPOTENT = "GET|HEAD|OPTIONS|TRACE|PUT|DELETE"
_UNSEEN = "connect-failure,refused-stream"
_UNLIMITED = 1_000_000


class Pool(msgspec.Struct, frozen=True):
    """Backends that share a weight: an Envoy cluster.

    Attributes:
        weight: parts of all requests.
        endpoints: addresses that get requests.
        draining: addresses that finish their requests and get no others.
        failover: addresses that get requests while none of `endpoints` is healthy.
    """

    name: str
    weight: int = 1
    endpoints: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    failover: tuple[str, ...] = ()


class EnvoyConfig(msgspec.Struct, frozen=True):
    """The complete configuration of an Envoy.

    Attributes:
        folder: absolute path of the folder that it watches.
        balancer: settings; `pools` replaces its backends.
        pools: by name. Without any, nothing listens.
        weighted: True if requests are divided by weight.
        drained: True if the health check should fail while requests are still answered.
    """

    folder: str
    balancer: LoadBalancer
    pools: dict[str, Pool]
    weighted: bool = False
    drained: bool = False


def render(plan: EnvoyConfig) -> dict[str, bytes]:
    """The files, by path below the folder."""
    if not plan.pools:
        return {LISTENERS: _file([]), CLUSTERS: _file([])}
    pools = sorted(plan.pools.values(), key=lambda pool: pool.name)
    files = {endpoints_file(pool.name): _file([_assignment(pool)]) for pool in pools}
    files[CLUSTERS] = _file([_cluster(plan, pool.name) for pool in pools])
    files[ROUTES] = _file([_routes(plan, pools)])
    files[LISTENERS] = _file([_listener(plan)])
    return files


def endpoints_file(pool: str) -> str:
    """Path of the file with the endpoints of `pool`, whatever characters its name has."""
    return f"{ENDPOINTS}/{_plain(pool)}.json"


def version(file: bytes) -> str:
    """The version in a rendered file."""
    found: str = msgspec.json.decode(file)["version_info"]
    return found


def subscription(file: str) -> str:
    """Prefix of Envoy's statistics about the file at this path below the folder."""
    folder, _, name = file.rpartition("/")
    if folder == ENDPOINTS:
        return f"cluster.{name.removesuffix('.json')}"
    return {
        LISTENERS: "listener_manager.lds",
        CLUSTERS: "cluster_manager.cds",
        ROUTES: f"http.{STATS}.rds.{ROUTE}",
    }[name]


def _plain(pool: str) -> str:
    """A pool's name in files and statistics, where slashes and colons have a meaning."""
    return quote(pool, safe="")


def _file(resources: list[dict[str, Any]]) -> bytes:
    response = {"version_info": short(digest(resources)), "resources": resources}
    return msgspec.json.format(canonical(response), indent=2) + b"\n"


def _listener(plan: EnvoyConfig) -> dict[str, Any]:
    router = {"@type": f"{_TYPE}extensions.filters.http.router.v3.Router"}
    connections = {
        "@type": f"{_TYPE}extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": STATS,
        "rds": {"route_config_name": ROUTE, "config_source": _source(plan, ROUTES)},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": router}],
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": connections}]
    return {
        "@type": f"{_TYPE}config.listener.v3.Listener",
        "name": STATS,
        "address": _address(plan.balancer.listen),
        "enable_reuse_port": False,  # or two Envoys could silently share a port
        "filter_chains": [{"filters": filters}],
    }


def _routes(plan: EnvoyConfig, pools: list[Pool]) -> dict[str, Any]:
    routes: list[dict[str, Any]] = []
    if plan.drained:
        routes.append({"match": {"path": plan.balancer.health_path}, "direct_response": {"status": 503}})
    if any(pool.weight for pool in pools):
        action, retry = _action(plan, pools), _retry(plan)
        method = {"name": ":method", "string_match": {"safe_regex": {"regex": _IDEMPOTENT}}}
        routes += [
            {
                "match": {"prefix": "/", "headers": [method]},
                "route": {**action, "retry_policy": {**retry, **_seen(pools)}},
            },
            {"match": {"prefix": "/"}, "route": {**action, "retry_policy": retry}},
        ]
    else:
        routes.append({"match": {"prefix": "/"}, "direct_response": {"status": 503}})
    host = {"name": "all", "domains": ["*"], "routes": routes}
    return {
        "@type": f"{_TYPE}config.route.v3.RouteConfiguration",
        "name": ROUTE,
        "virtual_hosts": [host],
    }


def _action(plan: EnvoyConfig, pools: list[Pool]) -> dict[str, Any]:
    where: dict[str, Any] = {"cluster": next(pool.name for pool in pools if pool.weight)}
    if plan.weighted:
        weights = [{"name": pool.name, "weight": pool.weight} for pool in pools]
        where = {"weighted_clusters": {"clusters": weights}}
    return {**where, "timeout": _duration(plan.balancer.timeout_seconds)}


def _retry(plan: EnvoyConfig) -> dict[str, Any]:
    other = {"@type": f"{_TYPE}extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"}
    return {
        "retry_on": _UNSEEN,
        "num_retries": plan.balancer.retries,
        "retry_host_predicate": [
            {"name": "envoy.retry_host_predicates.previous_hosts", "typed_config": other}
        ],
        "host_selection_retry_max_attempts": 5,
    }


def _seen(pools: list[Pool]) -> dict[str, Any]:
    """The settings that are added to `_retry` if a request may be seen twice."""
    more: dict[str, Any] = {
        "retry_on": f"{_UNSEEN},reset,retriable-status-codes",
        "retriable_status_codes": [503],
    }
    if any(pool.failover for pool in pools):
        kind = f"{_TYPE}extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig"
        more["retry_priority"] = {
            "name": "envoy.retry_priorities.previous_priorities",
            "typed_config": {"@type": kind, "update_frequency": 1},
        }
    return more


def _cluster(plan: EnvoyConfig, pool: str) -> dict[str, Any]:
    interval = _duration(plan.balancer.health_interval_seconds)
    limits = dict.fromkeys(
        ("max_connections", "max_pending_requests", "max_requests", "max_retries"), _UNLIMITED
    )
    return {
        "@type": f"{_TYPE}config.cluster.v3.Cluster",
        "name": pool,
        "alt_stat_name": _plain(pool),
        "type": "EDS",
        "eds_cluster_config": {"eds_config": _source(plan, endpoints_file(pool))},
        "connect_timeout": "1s",
        "lb_policy": "LEAST_REQUEST",
        # Envoy would keep an endpoint that is still healthy, against intent.
        "ignore_health_on_host_removal": True,
        # No backend is better than a sick one: it can be tried again elsewhere.
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
        "circuit_breakers": {"thresholds": [limits]},
        "health_checks": [
            {
                "timeout": "1s",
                "interval": interval,
                "no_traffic_interval": interval,
                "unhealthy_threshold": 2,
                "healthy_threshold": 1,
                # Without a host Envoy sends the pool's name, which may hold a slash, unlike a host.
                "http_health_check": {"path": plan.balancer.health_path, "host": "localhost"},
            }
        ],
    }


def _assignment(pool: Pool) -> dict[str, Any]:
    first = [_endpoint(address) for address in sorted(pool.endpoints)]
    first += [_endpoint(address, health_status="DRAINING") for address in sorted(pool.draining)]
    endpoints: list[dict[str, Any]] = [{"priority": 0, "lb_endpoints": first}]
    if pool.failover:
        others = [_endpoint(address) for address in sorted(pool.failover)]
        endpoints.append({"priority": 1, "lb_endpoints": others})
    return {
        "@type": f"{_TYPE}config.endpoint.v3.ClusterLoadAssignment",
        "cluster_name": pool.name,
        "endpoints": endpoints,
    }


def _endpoint(address: str, **more: str) -> dict[str, Any]:
    return {"endpoint": {"address": _address(address)}, **more}


def _address(address: str) -> dict[str, Any]:
    host, port = split(address)
    return {"socket_address": {"address": host, "port_value": port}}


def _source(plan: EnvoyConfig, file: str) -> dict[str, Any]:
    return {"resource_api_version": "V3", "path_config_source": {"path": f"{plan.folder}/{file}"}}


def _duration(seconds: float) -> str:
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"
