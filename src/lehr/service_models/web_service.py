"""A web service in several clusters, each behind a balancer, and one balancer over them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from lehr.model.addons import AFFECTED_CLUSTERS, DEPENDS_ON, LABELS, TURNDOWN
from lehr.model.secret import Secret
from lehr.sdk.generator import DeclaredAsset, SourceFile, asset
from lehr.service_models.model_input import InputProblem, read, refused

NOUN = "a web service"

GLOBAL = "global"
"""Stands for all clusters together. No cluster can have this name."""

MOST_REPLICAS = 90

_BALANCER, _ADMIN, _REPLICAS = 0, 1, 2  # ports of a cluster, counted from its first

Port = Annotated[int, msgspec.Meta(ge=1, le=65_400)]
Version = Annotated[str, msgspec.Meta(min_length=1)]
Words = Annotated[list[str], msgspec.Meta(min_length=1)]
FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$")]


class Cluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One place in which the service runs.

    Attributes:
        replicas: how many run.
        ports: the cluster's first port, that of its balancer. The next is the admin interface of its
            Envoy, and the following ones are those of the replicas.
        weight: parts of all requests that it gets; by default its number of replicas.
        version: version that runs here, if it differs from that of the service.
        environment: added to that of the service, or overrides it by name.
        turndown: why the cluster should be removed. It then leaves the global balancer, and production.
    """

    replicas: Annotated[int, msgspec.Meta(ge=0, le=MOST_REPLICAS)]
    ports: Port
    weight: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    version: Version | None = None
    environment: dict[str, str | Secret] = {}
    turndown: str = ""


class WebService(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A web service in one or more clusters.

    Attributes:
        name: the first part of its assets' ids.
        version: which version of the program runs.
        schema: lowest version of the database's schema that this version works with; None if any does.
        environment: variables of the program; references to secrets among them.
        port: port of the service, on the global balancer. The next is the admin interface of its Envoy.
        clusters: by name.
        command, envoy, restart_on, envoy_restart_on, needs, schema_of: as the arguments of `web_service`,
            which take precedence; `schema_of` is its `schema`.
    """

    model: Literal["web-service"] = "web-service"
    name: Name
    version: Version
    port: Port
    clusters: Annotated[dict[Name, Cluster], msgspec.Meta(min_length=1)]
    schema: int | None = None
    environment: dict[str, str | Secret] = {}
    command: list[str] = []
    envoy: list[str] = []
    restart_on: list[str] = []
    envoy_restart_on: list[str] = []
    needs: list[str] = []
    schema_of: str = ""

    def __post_init__(self) -> None:
        if GLOBAL in self.clusters:
            raise ValueError(
                f"a cluster cannot be called {GLOBAL}: the name is reserved for all clusters together"
            )
        if all(cluster.turndown for cluster in self.clusters.values()):
            raise ValueError("every cluster is turned down, but the global balancer needs one that stays")


def web_service(
    file: SourceFile,
    *,
    command: Sequence[str] = (),
    envoy: Sequence[str] = (),
    restart_on: Sequence[str] = (),
    envoy_restart_on: Sequence[str] = (),
    needs: Sequence[str] = (),
    schema: str = "",
) -> Iterator[DeclaredAsset]:
    """The assets of the `WebService` that `file` describes.

    Ids are `NAME/CLUSTER/job`, `.../envoy` and `.../balancer`, and `NAME/global/envoy` and
    `.../balancer`. The file provides arguments that are not given here.

    Args:
        command: the program; `{version}`, `{cluster}` and `{port}` are replaced with those of the replica. It
            answers `/healthz`.
        envoy: the program that becomes an Envoy, called with `--folder` and `--admin` added.
        restart_on: ids of assets whose change rolls the replicas.
        envoy_restart_on: the same, for the Envoys.
        needs: ids of assets that are pushed before the jobs.
        schema: id of the schema whose version the field `schema` of the file requires.

    Raises:
        UnreadableFileError: the file does not describe a web service; has all problems, with their
            positions.
    """
    service = read(file, WebService, NOUN)
    programs = {"command": list(command) or service.command, "envoy": list(envoy) or service.envoy}
    missing = [name for name, words in programs.items() if not words]
    if missing:
        fix = "write it in the file, or pass it to `web_service`"
        raise refused(file, NOUN, [InputProblem("", f"`{name}` is missing", fix) for name in missing])
    job: dict[str, Any] = {
        "restart_on": list(restart_on) or service.restart_on,
        "command": programs["command"],
    }
    needed: dict[str, Any] = {"assets": list(needs) or service.needs}
    if (of := schema or service.schema_of) and service.schema is not None:
        needed["versions"] = [{"asset": of, "at_least": str(service.schema)}]
    rolled = list(envoy_restart_on) or service.envoy_restart_on
    yield from assets_of(service, job, needed, programs["envoy"], rolled)


def assets_of(
    service: WebService,
    job: Mapping[str, Any],
    needs: Mapping[str, Any],
    envoy: list[str],
    envoy_restart_on: list[str],
) -> Iterator[DeclaredAsset]:
    """The assets of `service`, for callers that do not read it from a file.

    Args:
        job: fields of each job's payload that the service does not set.
        needs: the jobs' `lehr.DependsOn`.
        envoy, envoy_restart_on: as for `web_service`.
    """
    proxy = {"command": envoy, "restart_on": envoy_restart_on}
    for name, cluster in service.clusters.items():
        id = f"{service.name}/{name}"
        addons = _addons(service, name, cluster.turndown)
        yield asset(f"{id}/job", "lehr.Process", _job(service, name, job), {**addons, DEPENDS_ON: needs})
        yield _envoy(service, name, cluster.ports, proxy, addons)
        backends = {"jobs": [{"asset": f"{id}/job", "port": "http"}]}
        yield _balancer(service, name, cluster.ports, backends, [f"{id}/job"], addons)
    stays = {name: item for name, item in service.clusters.items() if not item.turndown}
    weights = {f"{service.name}/{name}/balancer": _weight(item) for name, item in stays.items()}
    over = {"balancers": [{"asset": id, "weight": weight} for id, weight in weights.items()]}
    yield _envoy(service, GLOBAL, service.port, proxy, _addons(service, GLOBAL))
    yield _balancer(service, GLOBAL, service.port, over, list(weights), _addons(service, GLOBAL))


def _job(service: WebService, name: str, job: Mapping[str, Any]) -> dict[str, Any]:
    cluster = service.clusters[name]
    return {
        **job,
        "command": [_filled(part, service, name) for part in job["command"]],
        "environment": {**service.environment, **cluster.environment},
        "replicas": cluster.replicas,
        "ports": [{"name": "http", "base": cluster.ports + _REPLICAS}],
        "health_url": "http://127.0.0.1:{port}/healthz",
        "group": f"{service.name}-{name}",
        "version": _version(service, cluster),
    }


def _envoy(
    service: WebService, place: str, ports: int, proxy: Mapping[str, Any], addons: Mapping[str, Any]
) -> DeclaredAsset:
    admin = ports + _ADMIN
    options = ["--folder", _folder(service, place), "--admin", "127.0.0.1:{port}"]
    payload = {
        **proxy,
        "command": [*proxy["command"], *options],
        "ports": [{"name": "admin", "base": admin}],
        "health_url": "http://127.0.0.1:{port}/ready",
        "group": f"{service.name}-{place}",
    }
    return asset(f"{service.name}/{place}/envoy", "lehr.Process", payload, addons)


def _balancer(
    service: WebService,
    place: str,
    ports: int,
    backends: Mapping[str, Any],
    capacity: list[str],
    addons: Mapping[str, Any],
) -> DeclaredAsset:
    payload = {
        "folder": _folder(service, place),
        "admin": f"127.0.0.1:{ports + _ADMIN}",
        "listen": f"127.0.0.1:{ports + _BALANCER}",
        "backends": backends,
    }
    # Its Envoy runs first. The order between it and its backends follows the change.
    order = {"assets": [f"{service.name}/{place}/envoy"], "capacity": capacity}
    addons = {**addons, DEPENDS_ON: order}
    return asset(f"{service.name}/{place}/balancer", "lehr.LoadBalancer", payload, addons)


def _addons(service: WebService, place: str, turndown: str = "") -> dict[str, Any]:
    gone = {TURNDOWN: {"reason": turndown}} if turndown else {}
    labels = {"service": service.name, **({} if place == GLOBAL else {"place": place})}
    return {AFFECTED_CLUSTERS: {"clusters": [place]}, LABELS: {"labels": labels}, **gone}


def _weight(cluster: Cluster) -> int:
    return cluster.replicas if cluster.weight is None else cluster.weight


def _folder(service: WebService, place: str) -> str:
    return f"production/{service.name}/{place}/envoy"


def _filled(text: str, service: WebService, cluster: str) -> str:
    version = _version(service, service.clusters[cluster])
    return text.replace("{version}", version).replace("{cluster}", cluster)


def _version(service: WebService, cluster: Cluster) -> str:
    return service.version if cluster.version is None else cluster.version
