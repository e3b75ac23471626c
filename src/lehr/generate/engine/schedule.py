"""The order of generators: those over files first, then each after the makers of its input."""

from __future__ import annotations

import fnmatch
import functools
import graphlib
from collections.abc import Callable, Iterable, Sequence

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.generate.outcome.globs import glob_problem
from lehr.generate.policies.derived_assets import DerivingRule
from lehr.generate.sandbox.authors import FoundGenerator
from lehr.generate.typing.problems import did_you_mean, quoted
from lehr.model.asset import Asset
from lehr.model.selector import Selector, selector_of
from lehr.model.types import Registry
from lehr.sdk.generator import Declaration, Reads

OVER_FILES = (Reads.FILE, Reads.FILES)

_selector_of = functools.lru_cache(maxsize=1024)(selector_of)


class Generator(msgspec.Struct, frozen=True):
    """A generator of the snapshot: a function in a module, or a policy's rule.

    Attributes:
        uses: paths of its module and of its imports from the snapshot.
        rule: the policy's rule.
    """

    path: str
    found: FoundGenerator
    uses: tuple[str, ...] = ()
    rule: DerivingRule | None = None

    @property
    def name(self) -> str:
        """Unique within the snapshot."""
        return f"{self.path}:{self.found.name}"

    @property
    def over_files(self) -> bool:
        """True if it reads files, False if it reads assets."""
        return self.found.declaration.reads in OVER_FILES

    @property
    def selector(self) -> Selector:
        """The assets that it reads. Only for a generator over assets."""
        if self.rule is not None:
            return self.rule.matching.select
        return _selector_of(self.found.declaration.of)

    def wants(self) -> Callable[[Asset], bool]:
        """Recognizes assets that it reads. Called a million times, but with few types."""
        selector = self.selector
        may_match = functools.cache(selector.may_match)
        if not selector.ids and not selector.labels:
            return lambda asset: may_match(asset.type)
        return lambda asset: may_match(asset.type) and selector.matches(asset)

    @property
    def at(self) -> Position:
        """Position of its definition."""
        if self.rule is not None:
            return self.rule.place(self.rule.at)
        return Position(self.path, self.found.line)


def generator_of(rule: DerivingRule) -> Generator:
    """A policy's deriving rule, as a generator."""
    path, _, name = rule.by.generator.rpartition(":")
    declared = Declaration(Reads.ASSET, rule.by.of, (rule.makes,))
    return Generator(path, FoundGenerator(name, declared, rule.by.line), rule=rule)


def in_order(generators: Iterable[Generator], registry: Registry) -> tuple[list[Generator], list[Diagnostic]]:
    """The generators that can run, in the required order, and why the others cannot."""
    diagnostics: list[Diagnostic] = []
    sound: list[Generator] = []
    for generator in sorted(generators, key=lambda item: item.name):
        found = [] if generator.rule is not None else _problems(generator, registry)
        diagnostics += found
        if not found:
            sound.append(generator)
    over_files = [item for item in sound if item.over_files]
    over_assets = {item.name: item for item in sound if not item.over_files}
    graph: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for name, item in over_assets.items():
        graph.add(name, *(other.name for other in over_assets.values() if _reads_of(item, other)))
    try:
        ordered = [over_assets[name] for name in graph.static_order()]
    except graphlib.CycleError as err:
        diagnostics.append(_cycle([over_assets[name] for name in err.args[1]]))
        ordered = []
    return over_files + ordered, diagnostics


def _reads_of(one: Generator, other: Generator) -> bool:
    return any(map(one.selector.may_match, other.found.declaration.makes))


def _problems(generator: Generator, registry: Registry) -> list[Diagnostic]:
    declaration = generator.found.declaration
    problems = []
    patterns = [declaration.of] if generator.over_files else []
    patterns += [declaration.templates] if declaration.templates else []
    for pattern in patterns:
        reason = glob_problem(pattern)
        if reason is not None:
            what = f"{generator.name} reads files with a pattern that is not valid: {quoted(pattern)}"
            problems.append(_problem(generator, what, reason, "fix the pattern"))
    if generator.over_files:
        return problems
    reads = generator.selector.types
    for type_name in (*reads, *declaration.makes):
        known = type_name in registry.types
        if not known and not (type_name in reads and fnmatch.filter(registry.types, type_name)):
            what = f"{generator.name} names the asset type {quoted(type_name)}, which does not exist"
            fix = did_you_mean(type_name, registry.types, f"known types: {', '.join(sorted(registry.types))}")
            problems.append(_problem(generator, what, "", fix))
    return problems


def _problem(generator: Generator, what: str, why: str, fix: str) -> Diagnostic:
    return Diagnostic(code="GEN030", what=what, why=why, fix=fix, subject=generator.name, at=generator.at)


def _cycle(generators: Sequence[Generator]) -> Diagnostic:
    first = next((item for item in generators if item.rule is not None), generators[0])
    if first.rule is not None and set(generators) == {first}:
        return _matches_what_it_makes(first, first.rule)
    chain = " -> ".join(item.name for item in generators)
    return Diagnostic(
        code="GEN031",
        what=f"generators read each other's assets in a cycle: {chain}",
        why="each would have to run before the other",
        fix="let one of them read files or other types, or make a different type",
        subject=generators[0].name,
        at=first.at,
    )


def _matches_what_it_makes(generator: Generator, rule: DerivingRule) -> Diagnostic:
    return Diagnostic(
        code="GEN031",
        what=f"policy `{rule.policy}` may match what its `{rule.name}` makes: assets of {rule.makes}",
        why="it would make one for each that it has made, and so on; only types determine the order",
        fix=f"name `types` under `select` of its `match` other than {rule.makes}, or make a different type",
        subject=rule.policy,
        at=generator.at,
    )
