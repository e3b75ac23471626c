"""Compares a plan with what Envoy runs, and computes the effects of carrying it out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lehr.base.digest import digest_bytes, short
from lehr.model.diff import NO_DIFF, Change, Diff, Effects, bounded
from lehr.plugins.balancer.envoy import EnvoyConfig, Pool, render, subscription, version
from lehr.plugins.balancer.running_state import Running

_MOST_CHANGES = 60  # in one diff, which is kept and shown; some of them list addresses


def differences(
    plan: EnvoyConfig, files: Mapping[str, bytes], running: Running, units: Mapping[str, int]
) -> Diff:
    """The diff that the plugin reports.

    Args:
        plan: the intended configuration.
        files: what is in the folder, by path.
        running: what Envoy runs now.
        units: how many endpoints are behind each balancer that intent has as a pool.
    """
    intended = render(plan)
    if not plan.pools:  # a missing file is fine: Envoy's initial configuration is empty
        intended = {name: content for name, content in intended.items() if name in files}
    changes = [*_running_changes(plan, running)]
    if not changes:
        changes += _version_changes(intended, running)
    changes += _file_changes(intended, files)
    if not changes:
        return NO_DIFF
    moved = running.listen is not None and bool(plan.pools) and running.listen != plan.balancer.listen
    effects = Effects(capacity=_capacity(plan, running, units), disruptive=moved)
    return Diff(bounded(changes, "more", _MOST_CHANGES), effects)


def serving(running: Running, pool: str) -> set[str]:
    """Addresses of a pool that get requests, or would if they were healthy."""
    hosts = running.pools.get(pool, ())
    return {host.address for host in hosts if not host.failover and not host.draining}


def _running_changes(plan: EnvoyConfig, running: Running) -> Iterator[Change]:
    listen = plan.balancer.listen if plan.pools else None
    if running.listen != listen:
        yield Change("listener", listen, running.listen)
    elif listen is not None and plan.drained != running.drained:
        words = {True: "failing", False: "forwarded"}
        yield Change("health", words[plan.drained], words[running.drained])
    if plan.weighted or running.weights is not None:
        intended = {pool.name: pool.weight for pool in plan.pools.values()} if plan.weighted else {}
        if not any(intended.values()):
            intended = {}  # then nothing is routed
        observed = running.weights or {}
        for name in sorted(intended.keys() | observed.keys()):
            if intended.get(name) != observed.get(name):
                yield Change(f"weights/{name}", intended.get(name), observed.get(name))
    for name in sorted(plan.pools.keys() | running.pools.keys()):
        yield from _pool_changes(name, plan.pools.get(name), running)


def _pool_changes(name: str, pool: Pool | None, running: Running) -> Iterator[Change]:
    if pool is None:
        yield Change(f"pools/{name}", None, len(running.pools[name]))
        return
    if name not in running.pools:
        yield Change(f"pools/{name}", len(pool.endpoints), None)
    words = {
        host.address: "draining" if host.draining else "serving"
        for host in running.pools.get(name, ())
        if not host.failover
    }
    for address in sorted(words.keys() | set(pool.endpoints)):
        intended = "serving" if address in pool.endpoints else None
        if intended != words.get(address):
            yield Change(f"endpoints/{name}/{address}", intended, words.get(address))
    failover = sorted(host.address for host in running.pools.get(name, ()) if host.failover)
    if name in running.pools and sorted(pool.failover) != failover:
        yield Change(f"failover/{name}", sorted(pool.failover), failover)


def _version_changes(intended: Mapping[str, bytes], running: Running) -> Iterator[Change]:
    for name, content in sorted(intended.items()):
        observed = running.statistics.get(f"{subscription(name)}.version_text")
        if running.statistics and observed != version(content):
            yield Change(f"running/{name}", version(content), observed)


def _file_changes(intended: Mapping[str, bytes], files: Mapping[str, bytes]) -> Iterator[Change]:
    for name in sorted(intended.keys() | files.keys()):
        if intended.get(name) != files.get(name):
            yield Change(f"files/{name}", _described(intended.get(name)), _described(files.get(name)))


def _described(content: bytes | None) -> str | None:
    return None if content is None else short(digest_bytes(content))


def _capacity(plan: EnvoyConfig, running: Running, units: Mapping[str, int]) -> int | None:
    """Endpoints gained or lost, those behind other balancers included.

    A pool that intent does not know counts as what Envoy has in it, which is at least right about the
    direction. If something else is gained as well, the sum is unknown.
    """
    intended = {} if plan.drained else {pool.name: pool.weight for pool in plan.pools.values()}
    observed: Mapping[str, int] = {}
    if running.listen is not None and not running.drained:
        observed = running.weights if running.weights is not None else dict.fromkeys(running.pools, 1)
    if not (plan.weighted or running.weights is not None):
        now = sum(len(serving(running, name)) for name in observed)
        return sum(len(plan.pools[name].endpoints) for name in intended) - now
    before = {name for name, weight in observed.items() if weight}
    after = {name for name, weight in intended.items() if weight}
    gained = sum(units.get(name, len(plan.pools[name].endpoints)) for name in after - before)
    unknown = {name for name in before - after if name not in units}
    if unknown and gained:
        return None
    lost = sum(units.get(name, len(serving(running, name))) for name in before - after)
    return gained - lost
