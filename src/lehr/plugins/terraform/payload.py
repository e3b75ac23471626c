"""The payloads of Terraform's types, and their checks without a provider: all problems at once. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec

from lehr.model.secret import Secret
from lehr.model.types import AssetType, Dependency, Reference
from lehr.plugins.terraform.placeholders import names_in

TERRAFORM_PROVIDER = "lehr.TerraformProvider"
TERRAFORM_RESOURCE = "lehr.TerraformResource"
TERRAFORM_DATA = "lehr.TerraformData"

DISCARD = "discard"
"""Where a secret goes that the provider makes and that nothing should keep."""

_MOST_CONFIG = 1 << 16
_MOST_DEPTH = 32
_NAME = re.compile(r"[a-z][a-z0-9_]{0,60}")
_TYPE = re.compile(r"[a-z0-9][a-z0-9_-]{0,120}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Name = Annotated[str, msgspec.Meta(min_length=1)]
ProviderName = Annotated[str, Reference((TERRAFORM_PROVIDER,))]


class OutputReference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An output of another asset.

    Attributes:
        asset: the asset, which is pushed first and removed last.
        output: the output, and the path within it: `attributes/arn`, as `lehr describe` shows it.
    """

    asset: Dependency
    output: Name


class TerraformProvider(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Terraform provider with one configuration: one account, region or server.

    Lehr starts the provider's program and speaks its protocol. Terraform is not needed, and nothing is
    downloaded.

    Attributes:
        path: the provider's program, absolute or relative to the base folder.
        sha256: SHA-256 of that file, as `sha256sum` prints it. No other file is started.
        config: the provider's configuration. `${NAME}` in a text is replaced by the secret of that name.
        secrets: the secrets that `config` uses, by name.
        environment: variables that it gets beyond `PATH`, `HOME` and `LANG`. They must not be secret.
        calls_per_second: most reads and changes in a second. One may send several requests to the API.
        concurrency: most calls at the same time.
        operation_tag: name of the attribute (a map of texts, such as `tags`) in which resources get the tag
            `lehr-operation` with the id of the push that created them. Lehr then finds a resource whose
            creation was interrupted, if the provider has a data source that is searched by tags.
    """

    path: Name
    sha256: str
    config: dict[str, Any] = {}
    secrets: dict[str, Secret] = {}
    environment: dict[str, str] = {}
    calls_per_second: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 20.0
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    operation_tag: str = ""

    def __post_init__(self) -> None:
        problems = [*_config_problems(self.config, {"secrets": self.secrets})]
        if not _SHA256.fullmatch(self.sha256):
            problems.append("`sha256` must be 64 lower-case hexadecimal digits, as `sha256sum` prints them")
        _raise(problems)


class TerraformResource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One resource of a Terraform provider.

    Attributes:
        provider: the `lehr.TerraformProvider` that manages it.
        type: the resource type in the provider (`aws_sqs_queue`).
        config: the arguments of the resource; blocks are mappings, or lists of mappings. `${NAME}` in a text
            is replaced by the output or secret of that name.
        references: the outputs of other assets that `config` uses, by name.
        secrets: the secrets that `config` uses, by name.
        import: the id by which the provider imports the resource. If it exists, Lehr adopts it; otherwise
            Lehr creates it. If the name of a resource is declared, so is its import id, as a rule: then the
            resource is found again whatever happens.
        born_secrets: where secrets go that the provider makes (`{secret: "file:/run/secrets/key"}`), by
            attribute: `file:PATH`, a new file that only its owner can read, or `discard`. A type that makes
            secrets is refused without it.
        verified_push: id of a push after which a person has verified what it left: either it created nothing,
            or what it created is in order although its creation ended with an error.
    """

    provider: ProviderName
    type: Annotated[str, msgspec.Meta(pattern=_TYPE.pattern + "$")]
    config: dict[str, Any] = {}
    references: dict[str, OutputReference] = {}
    secrets: dict[str, Secret] = {}
    import_: Name | None = msgspec.field(name="import", default=None)
    born_secrets: dict[str, str] = {}
    verified_push: str = ""

    def __post_init__(self) -> None:
        problems = [
            *_config_problems(self.config, {"references": self.references, "secrets": self.secrets}),
            *_born_problems(self.born_secrets),
        ]
        _raise(problems)


class TerraformData(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A data source of a Terraform provider: looked up, never changed. Other assets read its outputs.

    Attributes:
        provider: the `lehr.TerraformProvider` that reads it.
        type: the data source in the provider (`aws_caller_identity`).
        config: its arguments, as of a `lehr.TerraformResource`.
        references: the outputs of other assets that `config` uses, by name.
        secrets: the secrets that `config` uses, by name.
    """

    provider: ProviderName
    type: Annotated[str, msgspec.Meta(pattern=_TYPE.pattern + "$")]
    config: dict[str, Any] = {}
    references: dict[str, OutputReference] = {}
    secrets: dict[str, Secret] = {}

    def __post_init__(self) -> None:
        _raise([*_config_problems(self.config, {"references": self.references, "secrets": self.secrets})])


def _raise(problems: list[str]) -> None:
    if problems:
        raise ValueError("; ".join(problems))


def _config_problems(config: dict[str, Any], named: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Problems of a configuration, and of the names that it uses.

    Args:
        named: the fields that declare names, each with what it declares.
    """
    try:
        size = len(msgspec.json.encode(config))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
        yield "`config` must be plain JSON"
        return
    if size > _MOST_CONFIG:
        yield f"`config` has {size:,} bytes; at most {_MOST_CONFIG:,} are allowed"
    if _depth(config) > _MOST_DEPTH:
        yield f"`config` is nested more than {_MOST_DEPTH} levels deep"
        return
    used = names_in(config)
    seen = set[str]()
    for field, names in named.items():
        for name in names:
            if not _NAME.fullmatch(name):
                yield f"`{field}` has the invalid name {name[:80]!r}: use lower-case letters, digits and _"
            elif name not in used:
                yield f"`{field}` has `{name}`, and no text of `config` uses ${{{name}}}"
            if name in seen:
                yield f"`{name}` is in `references` and in `secrets`"
            seen.add(name)


def _born_problems(born: Mapping[str, str]) -> Iterator[str]:
    for name, place in born.items():
        path = place.removeprefix("file:")
        if place != DISCARD and (path == place or not path.startswith("/") or "\0" in path):
            yield f"`born_secrets` of {name[:80]!r} must be `{DISCARD}`, or `file:` and an absolute path"


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _claims(resource: TerraformResource) -> Iterator[str]:
    # Not `import`: the same id means another resource in another account, and claims are those of the host.
    for place in resource.born_secrets.values():
        if place != DISCARD:
            yield place


TYPES = (
    AssetType(TERRAFORM_PROVIDER, TerraformProvider, enforced=False),
    AssetType(TERRAFORM_RESOURCE, TerraformResource, claims=_claims),
    AssetType(TERRAFORM_DATA, TerraformData),
)
