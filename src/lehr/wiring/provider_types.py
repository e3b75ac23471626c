"""Types of Terraform providers as pages of `lehr explain`, with the documentation of the provider."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lehr.plugins.terraform.provider import Attribute, Block, NestedBlock, ProviderSchema
    from lehr.query.types import FieldPage, TypePage


async def provider_page(file: Path, type: str) -> TypePage:
    """The page of a resource type or data source of the provider in `file`, which is started for that.

    It is not configured, so that no credentials are needed.

    Raises:
        LehrError: it cannot be started, or has no such type.
    """
    from lehr.base.blocking import Threads
    from lehr.base.clock import SystemClock
    from lehr.base.errors import StalledError
    from lehr.plugins.terraform.discovery import provider_in

    blocking = Threads("terraform", 1)
    id, _document, payload = await provider_in(file, blocking)
    try:
        from lehr.plugins.terraform.launch import Launcher
    except ImportError as error:
        raise StalledError(
            "Terraform providers cannot be asked for their types",
            code="TER138",
            why=f"the extra `lehr[terraform]` is not installed: {error}",
            fix="pip install 'lehr[terraform]'",
        ) from error
    schema = await Launcher(Path.cwd(), blocking, SystemClock()).schema(payload)
    return page_of(schema, type, id)


def page_of(schema: ProviderSchema, type: str, origin: str) -> TypePage:
    """The page of a resource type, or if there is none, of a data source.

    Args:
        origin: id of the provider's asset.

    Raises:
        StalledError: the provider has no such type.
    """
    from lehr.plugins.terraform.intent import schema_of
    from lehr.query.types import TypePage

    is_resource = type in schema.resources or type not in schema.data_sources
    known = schema.resources if is_resource else schema.data_sources
    found = schema_of(known, type, origin, "resource type")
    summary, _, description = found.block.description.partition("\n\n")
    role = "lehr.TerraformResource" if is_resource else "lehr.TerraformData"
    fields = (*_arguments(found.block),)
    return TypePage(type, role, origin, " ".join(summary.split()), description, fields, version=found.version)


def _arguments(block: Block) -> Iterator[FieldPage]:
    """Attributes and blocks: what can be written first."""
    for attribute in sorted(
        block.attributes, key=lambda item: (not item.required, _is_made(item), item.name)
    ):
        yield _attribute(attribute)
    for nested in block.blocks:
        yield _block(nested)


def _attribute(attribute: Attribute) -> FieldPage:
    from lehr.plugins.terraform.values.cty_types import block_of
    from lehr.query.types import FieldPage

    nested = attribute.nested
    words = {
        "made by the provider": _is_made(attribute),
        "by default decided by the provider": attribute.optional and attribute.computed,
        "secret": attribute.sensitive,
        "never read again": attribute.write_only,
        "deprecated": attribute.deprecated,
    }
    return FieldPage(
        attribute.name,
        _kind(attribute.type) if nested is None else _repeated("mapping", nested.nesting),
        attribute.required,
        limits=tuple(word for word, applies in words.items() if applies),
        meaning=attribute.description,
        fields=() if nested is None else (*_arguments(block_of(nested)),),
    )


def _block(nested: NestedBlock) -> FieldPage:
    from lehr.query.types import FieldPage

    limits = [f"at most {nested.most} items"] if nested.most > 1 else []
    limits += ["deprecated"] if nested.block.deprecated else []
    kind = "mapping" if nested.most == 1 else _repeated("mapping", nested.nesting)
    return FieldPage(
        nested.name,
        kind,
        nested.least > 0,
        limits=tuple(limits),
        meaning=nested.block.description,
        fields=(*_arguments(nested.block),),
    )


def _is_made(attribute: Attribute) -> bool:
    return attribute.computed and not attribute.optional


def _repeated(kind: str, nesting: str) -> str:
    forms = {"list": f"list of {kind}", "set": f"set of {kind}", "map": f"mapping to {kind}"}
    return forms.get(nesting, kind)


def _kind(type: Any) -> str:
    """A type of cty in words."""
    names = {"string": "text", "number": "number", "bool": "true or false", "dynamic": "anything"}
    if isinstance(type, str):
        return names.get(type, type)
    kind, inner = type[0], type[1]
    if kind in ("list", "set", "map"):
        return _repeated(_kind(inner), kind)
    return "mapping" if kind == "object" else "list"
