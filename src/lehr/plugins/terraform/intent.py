"""A resource as intent has it, with its secrets and outputs of other assets, as a configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lehr.base.errors import StalledError
from lehr.base.text import listed
from lehr.plugins.terraform import handle as handles
from lehr.plugins.terraform import placeholders
from lehr.plugins.terraform.compare import Secrecy, secrecy_of
from lehr.plugins.terraform.differences import born_secrets
from lehr.plugins.terraform.errors import described, errors
from lehr.plugins.terraform.payload import TerraformData, TerraformProvider, TerraformResource
from lehr.plugins.terraform.provider import Block, Schema, Value
from lehr.plugins.terraform.values.configured import configured
from lehr.sdk.secrets import Hidden, SecretValue

TAG = "lehr-operation"
"""The tag with the id of the push that created a resource."""


class Intended(NamedTuple):
    """One resource or data source as intent has it.

    Attributes:
        outputs: values of `payload.references`, by name; `UNKNOWN` for one that is not known.
        secrets, provider_secrets: values of the secrets of the payload and of its provider, by name.
    """

    payload: TerraformResource | TerraformData
    provider: TerraformProvider
    outputs: Mapping[str, Any] = {}
    secrets: Mapping[str, SecretValue] = {}
    provider_secrets: Mapping[str, SecretValue] = {}

    @property
    def hidden(self) -> Hidden:
        """Hides all secrets of intent."""
        return self.secrecy(Block()).hidden

    def secrecy(self, block: Block, *values: Value) -> Secrecy:
        """Hides all secrets of intent, and what is sensitive in these values of the resource."""
        known = [*self.secrets.values(), *self.provider_secrets.values()]
        return secrecy_of(block, known, placeholders.uses(self.payload.config, self.secrets), *values)

    @property
    def records(self) -> dict[str, Any]:
        """As `handle.records`."""
        return handles.records(self.payload.config, self.outputs, self.payload.secrets)


def schema_of(schemas: Mapping[str, Schema], type: str, provider: str, what: str) -> Schema:
    """The schema of a type.

    Args:
        provider: its path. what: `resource type` or `data source`.

    Raises:
        StalledError: the provider has no such type.
    """
    if type not in schemas:
        prefix = type.partition("_")[0]
        same = sorted(name for name in schemas if name.partition("_")[0] == prefix)
        raise StalledError(
            f"the provider {provider} has no {what} {type}",
            code="TER106",
            why=f"it has {len(schemas):,}, such as {listed(same or sorted(schemas))}" if schemas else "",
            fix="correct `type` or `provider`",
        )
    return schemas[type]


def configuration(block: Block, intended: Intended, tag: tuple[str, str] | None = None) -> Value:
    """The configuration as a value of the type.

    Args:
        tag: name of the attribute with tags, and the id of the push that has created the resource; None for a
            resource without such a tag.

    Raises:
        StalledError: it does not fit the type.
    """
    payload = intended.payload
    values = {**intended.outputs, **{name: value.text() for name, value in intended.secrets.items()}}
    try:
        written = placeholders.filled(payload.config, values)
    except ValueError as error:
        raise StalledError(
            f"the configuration of a {payload.type} is invalid", code="TER107", why=str(error)
        ) from None
    if tag is not None:
        written = _tagged(block, written, *tag)
    value, problems = configured(block, written)
    if wrong := errors(problems):
        raise StalledError(
            f"the configuration does not fit the type {payload.type}",
            code="TER108",
            why=described(wrong, intended.hidden),
            fix="correct `config`",
        )
    return value


def require_places_for_secrets(block: Block, resource: TerraformResource) -> None:
    """Refuse a type that makes secrets, unless intent names places for these.

    Raises:
        StalledError: a place is missing, or is for something else.
    """
    born = born_secrets(block)
    if missing := [name for name in born if name not in resource.born_secrets]:
        raise StalledError(
            f"a {resource.type} makes secrets: {listed(missing)}",
            code="TER109",
            why="Lehr keeps no secrets, and nothing could read them again",
            fix=f'name a file (`born_secrets: {{{missing[0]}: "file:/run/secrets/NAME"}}`), or `discard`',
        )
    if others := [name for name in resource.born_secrets if name not in born]:
        raise StalledError(
            f"`born_secrets` has {listed(others)}, which a {resource.type} does not make",
            code="TER110",
            fix=f"it makes {listed(born)}" if born else "remove `born_secrets`",
        )


def tag_of(value: Value, attribute: str) -> str:
    """The id of the push that has created a resource, from its tags; empty for none."""
    tags = (value or {}).get(attribute) if attribute else None
    id = tags.get(TAG) if isinstance(tags, dict) else None
    return id if isinstance(id, str) else ""


def may_be_tagged(block: Block, attribute: str) -> bool:
    """Whether resources of a type can have tags in this attribute."""
    return any(
        item.name == attribute and item.optional and list(item.type or ()) == ["map", "string"]
        for item in block.attributes
    )


def _tagged(block: Block, written: dict[str, Any], attribute: str, id: str) -> dict[str, Any]:
    tags = written.get(attribute) or {}
    if not id or not may_be_tagged(block, attribute) or not isinstance(tags, dict):
        return written
    return {**written, attribute: {**tags, TAG: id}}
