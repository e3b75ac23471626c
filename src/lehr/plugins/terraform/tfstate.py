"""Reads a Terraform state file (version 4): which resources it has. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from lehr.base.errors import StalledError

_VERSION = 4
_FIX = "write it with `terraform state pull > terraform.tfstate`"


class Kept(msgspec.Struct, frozen=True):
    """A resource of a state file.

    Attributes:
        name: as in Terraform: `aws_vpc.main`, `module.net.aws_subnet.a["x"]`.
        attributes: as the file has them. They may hold secrets.
        schema: version of the schema that they belong to.
        needs: names of the resources that it depends on, without keys of instances.
        obstacle: why it cannot be adopted; empty if it can.
    """

    name: str
    type: str
    attributes: dict[str, Any]
    schema: int
    needs: tuple[str, ...] = ()
    obstacle: str = ""

    @property
    def address(self) -> str:
        """The name without the key of the instance."""
        return self.name.rpartition("[")[0] if self.name.endswith("]") else self.name

    @property
    def id(self) -> str:
        """Attribute `id`; empty if it has none."""
        id = self.attributes.get("id")
        return id if isinstance(id, str) else ""


class _Instance(msgspec.Struct):
    attributes: dict[str, Any] | None = None
    schema_version: int = 0
    index_key: str | int | None = None
    dependencies: list[str] = []
    status: str = ""
    deposed: str = ""


class _Resource(msgspec.Struct):
    mode: str
    type: str
    name: str
    instances: list[_Instance]
    module: str = ""


class _State(msgspec.Struct):
    version: int
    resources: list[_Resource] = []


def resources(content: bytes) -> list[Kept]:
    """The managed resources of a state file; data sources are left out.

    Raises:
        StalledError: it is not a state file of version 4. The message does not quote it.
    """
    try:
        version = msgspec.json.decode(content, type=_Version).version
        if version != _VERSION:
            raise StalledError(
                f"the state file has version {version}; only version {_VERSION} can be read",
                code="TER129",
                fix="write it with Terraform 0.12 or later, or with OpenTofu",
            )
        state = msgspec.json.decode(content, type=_State)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Not chained: such an error may quote the file.
        raise StalledError("this is not a Terraform state file", code="TER130", fix=_FIX) from None
    return [
        _kept(resource, instance)
        for resource in state.resources
        if resource.mode == "managed"
        for instance in resource.instances
    ]


class _Version(msgspec.Struct):
    version: int


def _kept(resource: _Resource, instance: _Instance) -> Kept:
    parts = [*([resource.module] if resource.module else []), resource.type, resource.name]
    key = instance.index_key
    index = "" if key is None else f"[{key}]" if isinstance(key, int) else f'["{key}"]'
    obstacle = ""
    if instance.attributes is None:
        obstacle = "the state file has no attributes of it"
    elif instance.deposed:
        obstacle = "it is a deposed object, which Terraform was about to destroy"
    elif instance.status:
        obstacle = f"it is {instance.status}: Terraform was about to replace it"
    return Kept(
        name=f"{'.'.join(parts)}{index}",
        type=resource.type,
        attributes=instance.attributes or {},
        schema=instance.schema_version,
        needs=tuple(instance.dependencies),
        obstacle=obstacle,
    )
