"""The workspace file `lehr.yaml`: what a snapshot declares, and within which limits.

partition: shakespeare          # required
types: ["types/*.yaml"]         # asset types that it declares
assets: ["assets/**/*.yaml"]    # plain asset files
generators: ["generators/*.py"]
let_go: {old-job: "moved to the other cell"}
shrink: {percent: 30, floor: 5}
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from lehr.base import documents
from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate.globs import glob_problem
from lehr.generate.problems import pointer, problems_of, quoted
from lehr.model.asset import Partition, id_problem, partition_problem
from lehr.sdk.validator import Limits

WORKSPACE_FILE = "lehr.yaml"
DEFAULT_ASSETS = ("assets/**/*.{yaml,yml,json,toml}",)
DEFAULT_TYPES = ("types/*.{yaml,yml,json,toml}",)
DEFAULT_GENERATORS = ("generators/*.py",)


_PATTERNS = ("assets", "generators", "types")


class _Shrink(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    percent: Annotated[float, msgspec.Meta(ge=0, le=100)] = Limits.__struct_defaults__[1]
    floor: Annotated[int, msgspec.Meta(ge=0)] = Limits.__struct_defaults__[2]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    partition: str
    assets: tuple[str, ...] = DEFAULT_ASSETS
    generators: tuple[str, ...] = DEFAULT_GENERATORS
    types: tuple[str, ...] = DEFAULT_TYPES
    let_go: dict[str, Annotated[str, msgspec.Meta(min_length=1)]] = {}
    shrink: _Shrink = _Shrink()


class Workspace(msgspec.Struct, frozen=True):
    """What `lehr.yaml` says.

    Attributes:
        assets, generators, types: glob patterns (`lehr.generate.globs`).
        explicit: which of these patterns somebody wrote, with their place; a written pattern that
            matches nothing is worth a warning, a default one is not.
    """

    partition: Partition
    assets: tuple[str, ...]
    generators: tuple[str, ...]
    limits: Limits
    explicit: dict[str, Position]
    types: tuple[str, ...] = DEFAULT_TYPES

    @property
    def patterns(self) -> tuple[tuple[str, ...], ...]:
        """What says which files hold assets and types."""
        return self.assets, self.types


def missing_workspace() -> Diagnostic:
    """There is no workspace file."""
    return Diagnostic(
        code="GEN001",
        what=f"there is no {WORKSPACE_FILE} here",
        why="it names the partition, and which files declare assets",
        fix="`lehr init DIR` makes one; or add the file with the line `partition: NAME`",
        subject=WORKSPACE_FILE,
        at=Position(WORKSPACE_FILE),
    )


def read_workspace(content: bytes) -> tuple[Workspace | None, list[Diagnostic]]:
    """The workspace that the file's `content` describes; None if there is an error in it."""
    loaded = documents.load(WORKSPACE_FILE, content)
    if loaded.diagnostics:
        return None, list(loaded.diagnostics)
    if len(loaded.documents) != 1 or not isinstance(loaded.documents[0].value, dict):
        return None, [_problem("it is not one mapping", "write `partition: NAME`", Position(WORKSPACE_FILE))]
    document = loaded.documents[0]
    problems = [
        Diagnostic(
            code="GEN002",
            what=f"{WORKSPACE_FILE}: {item.what}",
            why=item.why,
            fix=item.fix,
            subject=WORKSPACE_FILE,
            at=document.position(item.pointer),
        )
        for item in problems_of(document.value, _File)
    ]
    if problems:
        return None, problems
    file = msgspec.convert(document.value, _File)
    problems = _value_problems(file, document)
    if problems:
        return None, problems
    limits = Limits(file.let_go, file.shrink.percent, file.shrink.floor)
    explicit = _explicit(document)
    partition = Partition(file.partition)
    return Workspace(partition, file.assets, file.generators, limits, explicit, file.types), []


def _value_problems(file: _File, document: documents.Document) -> list[Diagnostic]:
    problems = []
    reason = partition_problem(file.partition)
    if reason is not None:
        where = document.position("/partition")
        problems.append(
            _problem(
                f"{quoted(file.partition)} cannot name a partition", "choose another name", where, reason
            )
        )
    for key in _PATTERNS:
        for index, pattern in enumerate(getattr(file, key)):
            reason = glob_problem(pattern)
            if reason is not None:
                where = document.position(f"/{key}/{index}")
                problems.append(
                    _problem(f"pattern {quoted(pattern)} cannot be used", "mend the pattern", where, reason)
                )
    for id in file.let_go:
        reason = id_problem(id)
        if reason is not None:
            where = document.position(pointer(["let_go", id]))
            problems.append(
                _problem(f"{quoted(id)} in let_go is no asset id", "write the id as it was", where, reason)
            )
    return problems


def _explicit(document: documents.Document) -> dict[str, Position]:
    found: dict[str, Position] = {}
    for key in _PATTERNS:
        for index, pattern in enumerate(document.value.get(key, ())):
            found[pattern] = document.position(f"/{key}/{index}")
    return found


def _problem(what: str, fix: str, at: Position, why: str = "") -> Diagnostic:
    return Diagnostic(
        code="GEN002", what=f"{WORKSPACE_FILE}: {what}", why=why, fix=fix, subject=WORKSPACE_FILE, at=at
    )
