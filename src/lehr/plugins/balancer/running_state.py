"""The state of an Envoy, read from the answers of its admin interface. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class Host(msgspec.Struct, frozen=True):
    """An endpoint of a pool.

    Attributes:
        requests: under way at this moment.
        total: requests so far.
        pending: True until it was probed for the first time, before which it gets no request.
    """

    address: str
    draining: bool
    failover: bool
    requests: int
    total: int
    pending: bool


class Running(msgspec.Struct, frozen=True):
    """The state of an Envoy.

    Attributes:
        watched: path of the listeners' file that it watches; empty when it watches none.
        listen: where it takes requests, several places with commas; None when it does not.
        drained: True if its health check fails while it answers requests.
        refused: its message about the last listener that it rejected; empty for none.
        weights: by pool; None when requests are not divided by weight.
        pools: the hosts of each pool.
        statistics: versions, counters of updates and of requests, by Envoy's names.
    """

    watched: str
    listen: str | None
    drained: bool
    refused: str
    weights: dict[str, int] | None
    pools: dict[str, tuple[Host, ...]]
    statistics: dict[str, Any]


NOTHING = Running("", None, False, "", None, {}, {})
"""The state of an Envoy that does not run."""


def parse(dump: dict[str, Any], clusters: dict[str, Any], statistics: dict[str, Any]) -> Running:
    """Parse the answers to `/config_dump`, `/clusters` and `/stats`, all in JSON.

    Raises:
        KeyError, IndexError, TypeError, ValueError, AttributeError: they are not Envoy's.
    """
    configs = {item["@type"].rpartition(".")[2]: item for item in dump["configs"]}
    listeners = configs.get("ListenersConfigDump", {}).get("dynamic_listeners", [])
    routes = _routes(configs.get("RoutesConfigDump", {}))
    return Running(
        watched=_watched(configs["BootstrapConfigDump"]["bootstrap"]),
        listen=_listen(listeners),
        drained=bool(routes) and "path" in routes[0].get("match", {}),
        refused=next((item["error_state"]["details"] for item in listeners if "error_state" in item), ""),
        weights=_weights(routes),
        pools={
            item["name"]: tuple(_hosts(item))
            for item in clusters.get("cluster_statuses", [])
            if item.get("added_via_api")
        },
        statistics=values(statistics),
    )


def values(answer: dict[str, Any]) -> dict[str, Any]:
    """Value by name, from an answer to `/stats`. Raises as `parse` does."""
    return {item["name"]: item.get("value") for item in answer["stats"] if "name" in item}


def _watched(bootstrap: dict[str, Any]) -> str:
    source = bootstrap.get("dynamic_resources", {}).get("lds_config", {})
    path: str = source.get("path_config_source", {}).get("path", source.get("path", ""))
    return path


def _listen(listeners: list[dict[str, Any]]) -> str | None:
    active = (item["active_state"]["listener"] for item in listeners if "active_state" in item)
    return ", ".join(sorted(_address(item.get("address", {})) for item in active)) or None


def _routes(dump: dict[str, Any]) -> list[dict[str, Any]]:
    configs = [item.get("route_config", {}) for item in dump.get("dynamic_route_configs", [])]
    hosts = [host for config in configs for host in config.get("virtual_hosts", [])]
    return [route for host in hosts for route in host.get("routes", [])]


def _weights(routes: list[dict[str, Any]]) -> dict[str, int] | None:
    for route in routes:
        clusters = route.get("route", {}).get("weighted_clusters")
        if clusters:
            return {item["name"]: item.get("weight", 0) for item in clusters["clusters"]}
    return None


def _hosts(cluster: dict[str, Any]) -> Iterator[Host]:
    for item in cluster.get("host_statuses", []):
        health = item.get("health_status", {})
        counts = {stat["name"]: int(stat.get("value", 0)) for stat in item["stats"]}
        yield Host(
            address=_address(item["address"]),
            draining=health.get("eds_health_status") == "DRAINING",
            failover=bool(item.get("priority")),
            requests=counts.get("rq_active", 0),
            total=counts.get("rq_total", 0),
            pending=bool(health.get("pending_active_hc")),
        )


def _address(found: dict[str, Any]) -> str:
    """An address as we write it; others, such as a socket's path, unchanged."""
    socket = found.get("socket_address", {})
    if "port_value" not in socket:
        return str(found)
    host = socket["address"]
    return f"[{host}]:{socket['port_value']}" if ":" in host else f"{host}:{socket['port_value']}"
