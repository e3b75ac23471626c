"""Plain data as a complete configuration of a block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lehr.plugins.terraform.provider import (
    UNKNOWN,
    Attribute,
    Block,
    Diagnostic,
    NestedBlock,
    NestedObject,
    Nesting,
    Path,
    Severity,
    Value,
)
from lehr.plugins.terraform.values.canonical import in_order
from lehr.plugins.terraform.values.conversion import converted, problem, unknown_name
from lehr.plugins.terraform.values.cty_types import attribute_type, block_of, implied_type
from lehr.plugins.terraform.values.msgpack_codec import encode
from lehr.plugins.terraform.values.nulls import null_blocks, null_value


def configured(block: Block, written: Mapping[str, Any]) -> tuple[Value, tuple[Diagnostic, ...]]:
    """The configuration that `written` means, with every attribute and block, and what is wrong with it.

    Values are converted as Terraform converts them (`"8080"` is a number where one is needed). One block of
    a list or set of blocks may be written without a list around it. Use the configuration only if no
    diagnostic is an error, since wrong values are null or missing in it.
    """
    problems: list[Diagnostic] = []
    return _object(block, written, (), problems), tuple(problems)


def _object(block: Block, written: Any, path: Path, problems: list[Diagnostic]) -> Value:
    if written is UNKNOWN:
        return written
    if not isinstance(written, Mapping):
        problems.append(problem(path, "must be a mapping"))
        return null_value(block)
    names = [*(one.name for one in block.attributes), *(one.name for one in block.blocks)]
    problems += [
        unknown_name(path, str(name), names, "attribute or block" if block.blocks else "attribute")
        for name in written
        if name not in names
    ]
    value: dict[str, Value] = {}
    for attribute in block.attributes:
        place = (*path, attribute.name)
        value[attribute.name] = _attribute(attribute, written.get(attribute.name), place, problems)
    for nested in block.blocks:
        place = (*path, nested.name)
        value[nested.name] = _blocks(nested, written.get(nested.name), place, problems)
    return value


def _attribute(attribute: Attribute, written: Any, path: Path, problems: list[Diagnostic]) -> Value:
    if written is None:
        if attribute.required:
            problems.append(problem(path, f'"{attribute.name}" is required'))
        return None
    if attribute.computed and not attribute.optional:
        problems.append(problem(path, f'"{attribute.name}" cannot be set: the provider decides it'))
        return None
    if attribute.deprecated:
        problems.append(Diagnostic(Severity.WARNING, f'"{attribute.name}" is deprecated', "", path))
    if attribute.nested is None or written is UNKNOWN:
        return converted(written, attribute_type(attribute), path, problems)
    return _nested(attribute.nested, written, path, problems)


def _nested(nested: NestedObject, written: Any, path: Path, problems: list[Diagnostic]) -> Value:
    block = block_of(nested)
    match nested.nesting, written:
        case ((Nesting.SINGLE | Nesting.GROUP), _):
            return _object(block, written, path, problems)
        case Nesting.MAP, Mapping():
            return {
                str(key): _element(block, one, (*path, str(key)), problems) for key, one in written.items()
            }
        case Nesting.LIST, list() | tuple():
            return [_element(block, one, (*path, index), problems) for index, one in enumerate(written)]
        case Nesting.SET, list() | tuple():
            found = [_element(block, one, path, problems) for one in written]
            return in_order(found, implied_type(block), encode)
    kind = "a mapping" if nested.nesting is Nesting.MAP else "a list"
    problems.append(problem(path, f"must be {kind}"))
    return None


def _element(block: Block, written: Any, path: Path, problems: list[Diagnostic]) -> Value:
    return None if written is None else _object(block, written, path, problems)


def _blocks(nested: NestedBlock, written: Any, path: Path, problems: list[Diagnostic]) -> Value:
    if written is UNKNOWN:
        return written
    single = nested.nesting in {Nesting.SINGLE, Nesting.GROUP}
    if single and isinstance(written, list | tuple) and len(written) <= 1:
        written = written[0] if written else None
    count = _count(nested, written)
    if (least := max(nested.least, 0)) > count:
        problems.append(problem(path, f'{_times(least)} of block "{nested.name}" required, {count} written'))
    if nested.most and count > nested.most:
        problems.append(
            problem(path, f'at most {_times(nested.most)} of block "{nested.name}", {count} written')
        )
    if nested.block.deprecated and count:
        problems.append(Diagnostic(Severity.WARNING, f'block "{nested.name}" is deprecated', "", path))
    return null_blocks(nested) if written is None else _some_blocks(nested, written, path, problems)


def _some_blocks(nested: NestedBlock, written: Any, path: Path, problems: list[Diagnostic]) -> Value:
    block = nested.block
    match nested.nesting, written:
        case ((Nesting.SINGLE | Nesting.GROUP), _):
            return _object(block, written, path, problems)
        case Nesting.MAP, Mapping():
            return {
                str(key): _object(block, one, (*path, str(key)), problems) for key, one in written.items()
            }
        case ((Nesting.LIST | Nesting.SET), Mapping()):
            return [_object(block, written, (*path, 0) if nested.nesting is Nesting.LIST else path, problems)]
        case Nesting.LIST, list() | tuple():
            return [_object(block, one, (*path, index), problems) for index, one in enumerate(written)]
        case Nesting.SET, list() | tuple():
            found = [_object(block, one, path, problems) for one in written]
            return in_order(found, implied_type(block), encode)
    kind = "a mapping" if nested.nesting is Nesting.MAP else "a list of mappings"
    problems.append(problem(path, f"must be {kind}"))
    return null_blocks(nested)


def _count(nested: NestedBlock, written: Any) -> int:
    if written is None:
        return 0
    if isinstance(written, list | tuple) or (nested.nesting is Nesting.MAP and isinstance(written, Mapping)):
        return len(written)
    return 1


def _times(count: int) -> str:
    return "1 instance" if count == 1 else f"{count} instances"
