"""The workspace file `lehr.yaml`: the parts of a snapshot, and their limits.

partition: shakespeare          # required
types: ["types/*.{yaml,py}"]    # types of assets and addons that it declares
assets: ["assets/**/*.yaml"]    # plain asset files
generators: ["generators/*.py"]
let_go: {old-job: "moved to the other cell"}
shrink: {percent: 30, floor: 5, types: {lehr.File: {percent: 50}}}
growth: {percent: 50, floor: 100}
blank: {percent: 0, floor: 1}
jump: {factor: 10, severity: error, ignore: [/retries]}
acknowledge: [{code: VAL021, subject: shakespeare, after: shakespeare@41, reason: closing a region}]
not_secret: [{asset: certificates/*, field: /payload/content, reason: public keys}]
databases:
- {name: clusters, connection: sqlite:inventory.sqlite, query: SELECT name FROM cluster,
   type: team.Service, field: /cluster, when_down: refuse}
sources: {shared: {directory: ../shared}}    # see lehr.model.declared_sources
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position, file_problem
from lehr.base.pointers import pointer
from lehr.generate.outcome.globs import glob_problem
from lehr.generate.typing.problems import did_you_mean, problems_of, quoted
from lehr.model import declared_sources
from lehr.model.asset import Partition, id_problem, partition_problem
from lehr.model.declared_sources import KINDS, kind_of, name_problem, reveals_password
from lehr.model.incarnation import Acknowledgement
from lehr.sdk.validator import (
    ACKNOWLEDGEABLE,
    Blank,
    DatabaseRule,
    Growth,
    Jump,
    Limits,
    NotSecret,
    Reason,
    Shrink,
)

WORKSPACE_FILE = declared_sources.WORKSPACE_FILE
DEFAULT_ASSETS = ("assets/**/*.{yaml,yml,json,toml}",)
DEFAULT_TYPES = ("types/*.{yaml,yml,json,toml,py,binpb,desc,pb,protoset}",)
DEFAULT_GENERATORS = ("generators/*.py",)


_PATTERNS = ("assets", "generators", "types")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partition: str
    assets: tuple[str, ...] = DEFAULT_ASSETS
    generators: tuple[str, ...] = DEFAULT_GENERATORS
    types: tuple[str, ...] = DEFAULT_TYPES
    let_go: dict[str, Reason] = {}
    shrink: Shrink = Shrink()
    growth: Growth = Growth()
    blank: Blank = Blank()
    jump: Jump = Jump()
    acknowledge: tuple[Acknowledgement, ...] = ()
    not_secret: tuple[NotSecret, ...] = ()
    databases: tuple[DatabaseRule, ...] = ()
    sources: dict[str, Any] = {}


FIELDS: tuple[str, ...] = _File.__struct_fields__
"""Every field of the file."""


class Workspace(msgspec.Struct, frozen=True):
    """The content of `lehr.yaml`.

    Attributes:
        assets, generators, types: glob patterns (`lehr.generate.outcome.globs`).
        explicit: the patterns that are written in the file, with their place; a written pattern that matches
            nothing gets a warning, a default one does not.
        named: types that guards and rules apply to, with their place.
    """

    partition: Partition
    assets: tuple[str, ...]
    generators: tuple[str, ...]
    limits: Limits
    explicit: dict[str, Position]
    named: tuple[tuple[str, Position], ...] = ()
    types: tuple[str, ...] = DEFAULT_TYPES

    @property
    def patterns(self) -> tuple[tuple[str, ...], ...]:
        """The settings that assign files to assets, types and code."""
        return self.assets, self.types, self.generators


def missing_workspace() -> Diagnostic:
    """The workspace file is missing."""
    return file_problem(
        "GEN001",
        Position(WORKSPACE_FILE),
        what=f"there is no {WORKSPACE_FILE} here",
        why="it names the partition and the files that declare assets",
        fix="`lehr init DIR` creates one; or add the file with the line `partition: NAME`",
    )


def read_workspace(content: bytes) -> tuple[Workspace | None, list[Diagnostic]]:
    """The workspace that the file's `content` describes; None if it has an error."""
    loaded = documents.load(WORKSPACE_FILE, content)
    if loaded.diagnostics:
        return None, list(loaded.diagnostics)
    if len(loaded.documents) != 1 or not isinstance(loaded.documents[0].value, dict):
        at = Position(WORKSPACE_FILE)
        return None, [_problem("it is not a single mapping", "write `partition: NAME`", at)]
    document = loaded.documents[0]
    problems = [
        _problem(item.what, item.fix, document.position(item.pointer), item.why)
        for item in problems_of(document.value, _File)
    ]
    if problems:
        return None, problems
    file = msgspec.convert(document.value, _File)
    problems = list(_value_problems(file, document))
    if problems:
        return None, problems
    limits = Limits(**{name: getattr(file, name) for name in Limits.__struct_fields__})
    explicit = _explicit(document)
    partition = Partition(file.partition)
    named = tuple(_named(file, document))
    return Workspace(partition, file.assets, file.generators, limits, explicit, named, file.types), []


def unknown_types(workspace: Workspace, known: Collection[str]) -> Iterator[Diagnostic]:
    """GEN002: a guard or rule must apply to a type, or it would guard nothing."""
    for name, at in workspace.named:
        if name not in known:
            fix = did_you_mean(name, known, f"known types: {', '.join(sorted(known))}")
            yield _problem(f"there is no asset type {quoted(name)}", fix, at, "the setting would never apply")


def _value_problems(file: _File, document: documents.Document) -> Iterator[Diagnostic]:
    def at(*parts: str | int) -> Position:
        return document.position(pointer(parts))

    if reason := partition_problem(file.partition):
        what = f"{quoted(file.partition)} is not a valid partition name"
        yield _problem(what, "choose another name", at("partition"), reason)
    for key in _PATTERNS:
        for index, pattern in enumerate(getattr(file, key)):
            if reason := glob_problem(pattern):
                what = f"pattern {quoted(pattern)} is not valid"
                yield _problem(what, "fix the pattern", at(key, index), reason)
    for id in file.let_go:
        if reason := id_problem(id):
            what = f"{quoted(id)} in `let_go` is not a valid asset id"
            yield _problem(what, "write the id that the asset had", at("let_go", id), reason)
    for index, item in enumerate(file.acknowledge):
        if item.code not in ACKNOWLEDGEABLE:
            what = f"{quoted(item.code)} cannot be acknowledged"
            fix = did_you_mean(item.code, ACKNOWLEDGEABLE, f"codes that can: {', '.join(ACKNOWLEDGEABLE)}")
            yield _problem(what, fix, at("acknowledge", index, "code"))
    for name, value in file.sources.items():
        yield from _source_problems(name, value, document)
        if isinstance(value, dict) and value.get("partition") == file.partition:
            why = "it would read its own result"
            fix = "name a different partition, or delete the source"
            what = f"{file.partition} cannot be its own source"
            yield _problem(what, fix, at("sources", name, "partition"), why)


def _source_problems(name: str, value: Any, document: documents.Document) -> Iterator[Diagnostic]:
    at = ["sources", name]
    if reason := name_problem(name):
        where = document.position(pointer(at))
        yield _problem(f"{quoted(name)} is not a valid source name", "choose another name", where, reason)
    kind = kind_of(value)
    if kind is None:
        what = f"`sources.{name}` must have exactly one kind of source"
        fix = f"write a mapping with one of {', '.join(KINDS)}"
        yield _problem(what, fix, document.position(pointer(at)))
        return
    for item in problems_of(value, kind):
        where = document.position(pointer(at) + item.pointer)
        found = _problem(f"`sources.{name}`: {item.what}", item.fix, where, item.why)
        yield replace(found, confidential=reveals_password(value))


def _named(file: _File, document: documents.Document) -> Iterator[tuple[str, Position]]:
    for index, rule in enumerate(file.databases):
        yield rule.type, document.position(f"/databases/{index}/type")
    for guard in ("shrink", "growth", "blank"):
        for name in getattr(file, guard).types:
            yield name, document.position(pointer([guard, "types", name]))


def _explicit(document: documents.Document) -> dict[str, Position]:
    found: dict[str, Position] = {}
    for key in _PATTERNS:
        for index, pattern in enumerate(document.value.get(key, ())):
            found[pattern] = document.position(f"/{key}/{index}")
    return found


def _problem(what: str, fix: str, at: Position, why: str = "") -> Diagnostic:
    return file_problem("GEN002", at, what=f"{WORKSPACE_FILE}: {what}", why=why, fix=fix)
