"""The payload of `lehr.LoadBalancer`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated

import msgspec

from lehr.model.types import AssetType, Reference

LOAD_BALANCER = "lehr.LoadBalancer"

_FOLDER = re.compile(r"/?[^/\x00-\x1f\x7f]+(/[^/\x00-\x1f\x7f]+)*")
_HTTP_PATH = r"^/[!-~]*$"

Address = Annotated[str, msgspec.Meta(max_length=100)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]


class JobBackend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The replicas of a job, as intent has them.

    Attributes:
        asset: the job. It is not always pushed first: job or balancer is, depending on which of them grows.
        port: name of the job's port.
        capacity: maximum number of replicas that get requests; all by default.
    """

    asset: Annotated[str, Reference(("lehr.Process",))]
    port: str
    capacity: Annotated[int, msgspec.Meta(ge=0)] | None = None


class BalancerBackend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another balancer, which gets `weight` parts of all requests; with 0 it gets none.

    Attributes:
        asset: the other balancer.
        weight: its share, in proportion to the other balancers' weights.
    """

    asset: Annotated[str, Reference((LOAD_BALANCER,))]
    weight: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1


class Backends(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where requests go: exactly one of the three is given.

    Attributes:
        jobs: replicas of `lehr.Process` assets on this machine.
        endpoints: addresses `host:port`.
        balancers: other balancers, each with a weight.
    """

    jobs: list[JobBackend] = []
    endpoints: list[Address] = []
    balancers: list[BalancerBackend] = []

    def __post_init__(self) -> None:
        if sum(map(bool, (self.jobs, self.endpoints, self.balancers))) != 1:
            raise ValueError("`backends` must have exactly one of `jobs`, `endpoints` and `balancers`")
        names = [item.asset for item in self.balancers]
        for kind, given in (("endpoints", self.endpoints), ("balancers", names)):
            if len(set(given)) < len(given):
                raise ValueError(f"`backends.{kind}` has a duplicate entry")
        for address in self.endpoints:
            _check_address("backends.endpoints", address)


class LoadBalancer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An Envoy's whole configuration: one listener, and where its requests go.

    Attributes:
        folder: where Envoy watches its files; absolute, or relative to the base directory of the
            deployment, with neither `.` nor `..`.
        admin: `host:port` of Envoy's admin interface, on loopback.
        listen: `host:port` that takes requests.
        listen_any_host: allow a `listen` beyond the loopback interface.
        backends: where requests go.
        health_path: a backend gets requests while GET answers 200.
        health_interval_seconds: between two probes of a backend. Two failures in a row take it out.
        timeout_seconds: for one request, including all its tries; also for the requests that a backend still
            serves when it is taken out.
        retries: tries after the first, each on another backend if there is one. A request that is
            not idempotent is only tried again when no backend has seen it.
        drain_seconds: how long a turndown waits, at most, for clients to go elsewhere.
    """

    folder: Annotated[str, msgspec.Meta(min_length=1, max_length=3000)]
    admin: Address
    listen: Address
    backends: Backends
    listen_any_host: bool = False
    health_path: Annotated[str, msgspec.Meta(pattern=_HTTP_PATH, max_length=1000)] = "/healthz"
    health_interval_seconds: Annotated[float, msgspec.Meta(ge=0.05, le=60)] = 0.25
    timeout_seconds: Seconds = 15.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 2
    drain_seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 5.0

    def __post_init__(self) -> None:
        parts = self.folder.split("/")
        if not _FOLDER.fullmatch(self.folder) or "." in parts or ".." in parts:
            raise ValueError("`folder` must be a path without empty parts, `.`, `..` or control characters")
        if not _check_address("admin", self.admin):
            raise ValueError("`admin` must be on a loopback address: anyone who can reach it controls Envoy")
        if not _check_address("listen", self.listen) and not self.listen_any_host:
            raise ValueError("`listen` must be on a loopback address, or set `listen_any_host: true`")


def split(address: str) -> tuple[str, int]:
    """Host, without brackets, and port of `host:port`.

    Raises:
        ValueError: the host is not an IP address, or the port is not valid.
    """
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        found: ipaddress.IPv4Address | ipaddress.IPv6Address = ipaddress.IPv6Address(host[1:-1])
    else:
        found = ipaddress.IPv4Address(host)
    if not re.fullmatch(r"[1-9]\d{0,4}", port) or int(port) > 65_535:
        raise ValueError(f"{port!r} is not a valid port")
    return str(found), int(port)


def _check_address(field: str, address: str) -> bool:
    """True when `address` is on the loopback interface."""
    try:
        host, _ = split(address)
    except ValueError as error:
        raise ValueError(f"`{field}` must have the form 127.0.0.1:8080 or [::1]:8080: {error}") from error
    return ipaddress.ip_address(host).is_loopback


def _claims(balancer: LoadBalancer) -> Iterator[str]:
    yield f"port:{split(balancer.listen)[1]}"
    yield f"folder:{balancer.folder}"


TYPES = (AssetType(LOAD_BALANCER, LoadBalancer, claims=_claims),)
