"""Turns intent, read through a reader, into a plan for a balancer. Pure."""

from __future__ import annotations

import ipaddress
import os

import msgspec

from lehr.base.errors import StalledError, raised_as
from lehr.model.asset import AssetId
from lehr.model.diff import Goal, Target
from lehr.plugins.balancer.envoy import EnvoyConfig, Pool
from lehr.plugins.balancer.payload import LOAD_BALANCER, JobBackend, LoadBalancer, split
from lehr.sdk.plugin import Reader

POOL = "backends"
"""Name of the pool of a balancer that has no other balancers behind it."""


class _Port(msgspec.Struct):
    name: str
    base: int


class _Job(msgspec.Struct):
    replicas: int
    ports: list[_Port]


class _Body(msgspec.Struct):
    payload: _Job


_body = msgspec.json.Decoder(_Body)  # the relevant part of a job; plugins do not import each other


def plan_for(target: Target, read: Reader, base: str) -> EnvoyConfig:
    """The plan for the target's goal.

    Raises:
        StalledError: the goal is unknown, or an asset that the payload refers to does not exist.
    """
    balancer = read.payload(target.id, LoadBalancer)
    folder = os.path.join(base, balancer.folder)
    if target.goal is Goal.ABSENT:
        return EnvoyConfig(folder, balancer, {})
    if target.goal not in (Goal.PRESENT, Goal.DRAINED):
        raise StalledError(
            f"a {LOAD_BALANCER} cannot be {target.goal}",
            code="BAL113",
            fix="use a turndown, which removes it",
        )
    pools = {pool.name: pool for pool in _pools(balancer, read)}
    return EnvoyConfig(
        folder, balancer, pools, bool(balancer.backends.balancers), target.goal is Goal.DRAINED
    )


def units(plan: EnvoyConfig, read: Reader, id: AssetId) -> dict[str, int]:
    """Number of endpoints, in intent, behind each balancer that is a pool of the plan of `id`.

    Raises:
        StalledError: balancers refer to each other in a cycle, or to nothing.
    """
    return _units(plan.balancer, read, (id,)) if plan.weighted else {}


def _units(balancer: LoadBalancer, read: Reader, above: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for item in balancer.backends.balancers:
        if item.asset in above:
            cycle = " to ".join((*above[above.index(item.asset) :], item.asset))
            raise StalledError(f"balancers refer to each other in a cycle: {cycle}", code="BAL114")
        other = read.payload(AssetId(item.asset), LoadBalancer)
        behind = _units(other, read, (*above, item.asset))
        shares = {share.asset for share in other.backends.balancers if share.weight}
        nearby = 0 if behind else len(_endpoints(other, read))
        found[item.asset] = nearby + sum(behind[name] for name in shares)
    return found


def _pools(balancer: LoadBalancer, read: Reader) -> list[Pool]:
    over = balancer.backends.balancers
    if not over:
        return [Pool(POOL, endpoints=_endpoints(balancer, read))]
    places = {
        item.asset: _reached_at(read.payload(AssetId(item.asset), LoadBalancer).listen) for item in over
    }
    serving = [item.asset for item in over if item.weight]
    return [
        Pool(
            item.asset,
            item.weight,
            (places[item.asset],),
            # If all its own are gone, a pool's share goes to the others, and is not lost.
            failover=tuple(places[name] for name in serving if item.weight and name != item.asset),
        )
        for item in over
    ]


def _endpoints(balancer: LoadBalancer, read: Reader) -> tuple[str, ...]:
    found = list(balancer.backends.endpoints)
    for job in balancer.backends.jobs:
        found += _replicas(job, read)
    return tuple(dict.fromkeys(found))


def _replicas(backend: JobBackend, read: Reader) -> list[str]:
    asset = read.asset(AssetId(backend.asset))
    if asset is None:
        raise StalledError(
            f"job {backend.asset} does not exist", code="BAL115", fix="correct the reference in intent"
        )
    what = f"{backend.asset} is a {asset.type}, which has no replicas"
    with raised_as(StalledError, what, code="BAL116", on=msgspec.ValidationError):
        job = _body.decode(asset.body).payload
    bases = [port.base for port in job.ports if port.name == backend.port]
    if not bases:
        names = ", ".join(port.name for port in job.ports) or "none"
        raise StalledError(
            f"{backend.asset} has no port {backend.port}",
            code="BAL117",
            fix=f"name one of its ports: {names}",
        )
    count = job.replicas if backend.capacity is None else min(job.replicas, backend.capacity)
    return [f"127.0.0.1:{bases[0] + index}" for index in range(count)]


def _reached_at(listen: str) -> str:
    """Where requests to `listen` go from this machine."""
    host, port = split(listen)
    if not ipaddress.ip_address(host).is_unspecified:
        return listen
    return f"[::1]:{port}" if ":" in host else f"127.0.0.1:{port}"
