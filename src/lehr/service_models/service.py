"""A service: a program with its files, in one place or in several that differ in some fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec

from lehr.base.pointers import escaped
from lehr.model.addons import AFFECTED_CLUSTERS, DEPENDS_ON, LABELS, OWNER, TURNDOWN
from lehr.model.secret import Secret
from lehr.sdk.generator import DeclaredAsset, SourceFile, asset
from lehr.service_models.model_input import InputProblem, Value, read, refused, rendered
from lehr.service_models.web_service import FileName, Name, Port, Words

NOUN = "a service"

Replicas = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Path = Annotated[str, msgspec.Meta(pattern="^/")]


class ServicePlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Differences in one place; omitted fields are as in the service.

    Attributes:
        environment, values: added to those of the service, or override them by name.
        turndown: why the service should leave the place.
    """

    command: Words | None = None
    version: str | None = None
    replicas: Replicas | None = None
    port: Port | None = None
    environment: dict[str, str | Secret] = {}
    values: dict[str, Value] = {}
    turndown: str = ""


class Service(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A service: a program with its files, in one place or several.

    Attributes:
        name: the first part of its assets' ids.
        command: the program. `{place}`, `{version}` and `{files}` (the folder of its files) are
            replaced; `{port}` and `{replica}` are different for each replica.
        version: of the program; a change rolls the replicas.
        replicas: how many run.
        port: of the first replica; each further one has the next port.
        health: path that answers 200 while a replica is healthy; without it, a replica that runs is healthy.
        environment: variables; references to secrets among them.
        files: by name, texts in which `{{name}}` is replaced with a value. A change rolls the replicas.
        values: for the files, in addition to `name`, `place`, `version` and `port`.
        needs: ids of assets that are pushed first.
        restart_on: ids of assets whose change rolls the replicas, in addition to the files.
        versions: by id of an asset, its lowest version that this service works with.
        owner: the responsible team.
        places: by name. Without places, it runs once.
    """

    model: Literal["service"] = "service"
    name: Name
    command: Words
    version: str = ""
    replicas: Replicas = 1
    port: Port | None = None
    health: Path | None = None
    environment: dict[str, str | Secret] = {}
    files: dict[FileName, str] = {}
    values: dict[str, Value] = {}
    needs: list[str] = []
    restart_on: list[str] = []
    versions: dict[str, int | str] = {}
    owner: str = ""
    places: dict[Name, ServicePlace] = {}

    def __post_init__(self) -> None:
        if (
            self.health
            and self.port is None
            and not all(item.port for item in self.places.values() or [_NONE])
        ):
            raise ValueError("`health` needs a `port`")


_NONE = ServicePlace()


class _Here(msgspec.Struct, frozen=True):
    """The service in one place; `at` is the JSON pointer to the place."""

    prefix: str
    place: str
    port: int | None
    version: str
    values: dict[str, Value]
    item: ServicePlace
    at: str

    @property
    def folder(self) -> str:
        return f"production/{self.prefix}"


def service(file: SourceFile) -> Iterator[DeclaredAsset]:
    """The assets of the `Service` that `file` describes.

    Ids are `NAME/PLACE/job` and `NAME/PLACE/FILE`; without places, `NAME/job` and `NAME/FILE`.

    Raises:
        UnreadableFileError: the file does not describe a service; has all problems, with their positions.
    """
    spec = read(file, Service, NOUN)
    instances = list(_instances(spec))
    problems = [problem for here in instances for problem in _unknown_values(spec, here)]
    if problems:
        raise refused(file, NOUN, list(dict.fromkeys(problems)))
    for here in instances:
        addons = _addons(spec, here)
        files = {f"{here.prefix}/{name}": (name, text) for name, text in spec.files.items()}
        for id, (name, text) in files.items():
            payload = {"path": f"{here.folder}/{name}", "content": rendered(text, here.values)}
            yield asset(id, "lehr.File", payload, addons)
        needs: dict[str, Any] = {"assets": spec.needs}
        if spec.versions:
            items = spec.versions.items()
            needs["versions"] = [{"asset": id, "at_least": str(version)} for id, version in items]
        order = {DEPENDS_ON: needs} if spec.needs or spec.versions else {}
        yield asset(f"{here.prefix}/job", "lehr.Process", _job(spec, here, list(files)), {**addons, **order})


def _instances(spec: Service) -> Iterator[_Here]:
    for place, item in spec.places.items() or [("", _NONE)]:
        prefix = f"{spec.name}/{place}" if place else spec.name
        port = spec.port if item.port is None else item.port
        version = spec.version if item.version is None else item.version
        known: dict[str, Value] = {"name": spec.name, "place": place, "version": version}
        if port is not None:
            known["port"] = port
        values = {**known, **spec.values, **item.values}
        at = f"/places/{escaped(place)}" if place else ""
        yield _Here(prefix, place, port, version, values, item, at)


def _unknown_values(spec: Service, here: _Here) -> Iterator[InputProblem]:
    for name, text in spec.files.items():
        try:
            rendered(text, here.values)
        except LookupError as error:
            where = f" in place {here.place}" if here.place else ""
            fix = f"add it to `values`; defined values: {', '.join(sorted(here.values))}"
            what = f"file {name} needs the value `{error.args[0]}`, which is not defined{where}"
            yield InputProblem(f"/files/{escaped(name)}", what, fix)


def _job(spec: Service, here: _Here, files: list[str]) -> dict[str, Any]:
    own = {"{place}": here.place, "{version}": here.version, "{files}": here.folder}
    item = here.item
    payload: dict[str, Any] = {
        "command": [_filled(word, own) for word in item.command or spec.command],
        "environment": {
            name: _filled(value, own) if isinstance(value, str) else value
            for name, value in {**spec.environment, **item.environment}.items()
        },
        "replicas": spec.replicas if item.replicas is None else item.replicas,
        "restart_on": [*spec.restart_on, *files],
        "group": here.prefix.replace("/", "-"),
        "version": here.version,
    }
    if here.port is not None:
        payload["ports"] = [{"name": "http", "base": here.port}]
    if spec.health:
        payload["health_url"] = f"http://127.0.0.1:{{port}}{spec.health}"
    return payload


def _filled(text: str, own: Mapping[str, str]) -> str:
    for name, value in own.items():
        text = text.replace(name, value)
    return text


def _addons(spec: Service, here: _Here) -> dict[str, Any]:
    labels = {"service": spec.name, **({"place": here.place} if here.place else {})}
    addons: dict[str, Any] = {LABELS: {"labels": labels}}
    if here.place:
        addons[AFFECTED_CLUSTERS] = {"clusters": [here.place]}
    if spec.owner:
        addons[OWNER] = {"team": spec.owner}
    if here.item.turndown:
        addons[TURNDOWN] = {"reason": here.item.turndown}
    return addons
