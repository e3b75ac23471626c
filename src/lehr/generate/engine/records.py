"""Converts what a generator yielded into typed assets and additions."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate.engine.schedule import Generator
from lehr.generate.outcome.output import Addition, Output, UnsetFields, gathered
from lehr.generate.outcome.problem_list import Collected
from lehr.generate.sandbox.authors import CallOutput, Record
from lehr.generate.typing.conversion import always, convert, typed_addon
from lehr.generate.typing.problems import quoted
from lehr.generate.typing.unset_fields import unset_fields
from lehr.model.asset import Asset, AssetId
from lehr.model.provenance import Derivation
from lehr.model.types import Registry
from lehr.sdk.generator import Reads


def output_of(answer: CallOutput, generator: Generator, inputs: str, item: str, registry: Registry) -> Output:
    """Convert an answer to an output.

    Args:
        item: path of the file, or id of the asset, passed to the generator.
    """
    assets: list[Asset] = []
    additions: list[Addition] = []
    unset: list[UnsetFields] = []
    problems = Collected(generator.name, answer.diagnostics)
    called = _derivations(generator, item)
    origin = Position(item) if generator.found.declaration.reads is Reads.FILE else None
    for record in answer.records:
        if problems.full:
            break
        at = Position(generator.path, record.line)
        value = _decoded(record)
        if value is _UNREADABLE:
            problems.add([_unreadable(generator, record, at)])
        elif record.addon is not None:
            addon, found = typed_addon(record.addon, value, registry, record.id, always(at))
            problems.add(found)
            if not found:
                version = registry.evolution(record.addon).version
                additions.append(
                    Addition(AssetId(record.id), record.addon, addon, called(record.line), version)
                )
        else:
            asset, found = convert(value, registry, origin or at, always(at), called(record.line))
            problems.add(_with_record(found, record, called(record.line)))
            if asset is not None and _undeclared(generator, asset):
                problems.add([_not_made(generator, asset, at)])
            elif asset is not None:
                assets.append(asset)
                unset.append(unset_fields(value, asset, registry))
    return Output(
        inputs,
        tuple(assets),
        tuple(additions),
        problems.all(),
        answer.repeatable,
        gathered(unset),
    )


def _derivations(generator: Generator, item: str) -> Callable[[int], Derivation]:
    """Map a line to the derivation shared by everything that one call yields there."""
    declared, name = generator.found.declaration, sys.intern(generator.name)
    one = item if declared.reads in (Reads.FILE, Reads.ASSET) else ""
    return functools.cache(lambda line: Derivation(name, line, declared.reads.value, declared.of, one))


def _with_record(problems: list[Diagnostic], record: Record, by: Derivation) -> list[Diagnostic]:
    """Add to `problems` which yielded asset they concern: the generator's line does not show that."""
    made_of = f", made from {by.item}" if by.item else ""
    where = f"it is in {quoted(record.id)}{made_of}"
    return [replace(item, why=f"{item.why}; {where}" if item.why else where) for item in problems]


_UNREADABLE = object()


def _decoded(record: Record) -> Any:
    try:
        return msgspec.json.decode(record.body)
    except (msgspec.DecodeError, RecursionError):
        return _UNREADABLE


def _unreadable(generator: Generator, record: Record, at: Position) -> Diagnostic:
    return Diagnostic(
        code="GEN027",
        what=f"{generator.name} yielded {quoted(record.id)} with a value that cannot be read",
        why="it is nested too deeply, or its numbers are too large",
        fix="reduce the nesting",
        subject=generator.name,
        at=at,
    )


def _undeclared(generator: Generator, asset: Asset) -> bool:
    return not generator.over_files and asset.type not in generator.found.declaration.makes


def _not_made(generator: Generator, asset: Asset, at: Position) -> Diagnostic:
    return Diagnostic(
        code="GEN029",
        what=f"{generator.name} yielded {quoted(asset.id)}, a {asset.type}, which its decorator does not "
        "declare",
        why="generators over assets run in the order of the types that they declare",
        fix=f'write `makes="{asset.type}"` in its decorator',
        subject=generator.name,
        at=at,
    )
