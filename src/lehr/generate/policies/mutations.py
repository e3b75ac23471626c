"""Applies policies to assets: one asset at a time, and deterministically.

Policies apply in the order of their ids, and each from top to bottom; each sees the changes of those before
it. The result must be stable: applying everything again would change nothing. An unstable result, or one that
depends on the order, is an error that names the policies.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.digest import canonical
from lehr.base.pointers import pointer
from lehr.cel import NoAnswerError
from lehr.compiled_policies.policy import NEVER_CHANGED, values_of
from lehr.generate.outcome.output import UnsetFields
from lehr.generate.policies.mutation_problems import conflict, put_problem, rule_has_no_answer, unstable
from lehr.generate.policies.mutation_rules import MutationRule, Path, Put
from lehr.generate.typing.conversion import convert
from lehr.model.asset import Asset
from lehr.model.provenance import Annotated
from lehr.model.types import Registry


class Mutated(NamedTuple):
    """An asset with the changes by policies, or unchanged if there are problems."""

    asset: Asset
    problems: tuple[Diagnostic, ...] = ()


class Mutations:
    """All mutations by policies.

    Args:
        rules: rules in the order of application.
    """

    def __init__(self, rules: Sequence[MutationRule], registry: Registry) -> None:
        self.rules = tuple(rules)
        self._registry = registry
        self.of_type = functools.cache(self._of_type)

    def _of_type(self, type: str) -> tuple[MutationRule, ...]:
        if type in NEVER_CHANGED:
            return ()
        return tuple(rule for rule in self.rules if rule.matching.may_match(type))

    def applied(self, asset: Asset, unset_fields: Callable[[], UnsetFields]) -> Mutated:
        """`asset` with all mutations applied; `asset` itself if there are none.

        Args:
            unset_fields: returns its unset fields; called only if a rule applies.
        """
        rules = [rule for rule in self.of_type(asset.type) if rule.matching.may_concern(asset)]
        if not rules:
            return Mutated(asset)
        work = _Work(asset, unset_fields)
        for rule in rules:
            work.apply(rule)
        if work.problems:
            return Mutated(asset, tuple(work.problems))
        changes = work.changes()
        if not changes:
            return Mutated(asset)
        changed, problems = self._converted(work, changes)
        problems = problems or _unstable_changes(changed, work, rules)
        if problems:
            return Mutated(asset, tuple(problems))
        marks = sorted({*asset.annotated_by, *(put.leaf.mark for put in changes)})
        return Mutated(replace(changed, annotated_by=_shared(tuple(marks))))

    def _converted(self, work: _Work, changes: Iterable[Put]) -> tuple[Asset, list[Diagnostic]]:
        """The changed asset, if it fits its type; otherwise its problems."""
        before = work.before
        sources: dict[Position, Put] = {}  # of the problems, where only one value was put there

        def place(at: str) -> Position:
            put = work.source_of(at)
            if put is None:
                return before.origin or Position("")
            whole, leaf = f"{at}/", f"{pointer(put.leaf.path)}/"
            if not whole.startswith(leaf):
                return put.rule.place(put.leaf.inner)
            found = put.rule.place(f"{put.leaf.inner}/{whole.removeprefix(leaf)}".removesuffix("/"))
            sources[found] = put
            return found

        origin = before.origin or Position("")
        asset, found = convert(dict(work.values), self._registry, origin, place, before.made_by)
        if asset is None:
            changers = [put.rule for put in changes]
            at = Position("")
            return before, [
                put_problem(item, before, changers, sources.get(item.at or at)) for item in errors(found)
            ]
        return replace(asset, origin=before.origin), []


class _Work:
    """One asset during the application of all rules.

    Attributes:
        values: the current state of the asset.
        puts: the values put, by path, even if they were already there.
    """

    def __init__(self, before: Asset, unset_fields: Callable[[], UnsetFields]) -> None:
        self.before = before
        self.values = values_of(before)
        self.puts: dict[Path, Put] = {}
        self.problems: list[Diagnostic] = []
        self._written = values_of(before)
        self._find_unset_fields = unset_fields

    def changes(self) -> list[Put]:
        """The values that were put and are not written in intent."""
        return [
            put
            for path, put in self.puts.items()
            if not self._was_written(path) or not _same(_at(self._written, path), put.value)
        ]

    def apply(self, rule: MutationRule) -> None:
        """Put the fields of `rule`, if it applies to the asset in its current state."""
        try:
            if not rule.matching.matches(self.values):
                return
        except NoAnswerError as error:
            self.problems.append(rule_has_no_answer(rule, self.before, "/match", str(error)))
            return
        puts: list[Put] = []
        for leaf in rule.leaves:
            if not rule.sets and self.is_written(leaf.path):
                continue
            try:
                puts.append(Put(rule, leaf, _own(leaf.fill(self.values))))
            except NoAnswerError as error:
                self.problems.append(rule_has_no_answer(rule, self.before, leaf.inner, str(error)))
        for put in puts:
            self._put(put)

    def is_written(self, path: Path) -> bool:
        """Whether the field was written on purpose, so that no default may be put there."""
        if any(put.rule.sets and _overlap(other, path) for other, put in self.puts.items()):
            return True
        return self._was_written(path)

    @functools.cached_property
    def _unset_fields(self) -> UnsetFields:
        return self._find_unset_fields()

    def _was_written(self, path: Path) -> bool:
        value: Any = self._written
        for step, place in _steps(path):
            if not isinstance(value, dict):
                return True
            if step not in value or place in self._unset_fields:
                return False
            value = value[step]
        return True

    def source_of(self, at: str) -> Put | None:
        """The value put at a JSON pointer, above it, or else below it."""
        below = None
        for path, put in self.puts.items():
            leaf = pointer(path)
            if f"{at}/".startswith(f"{leaf}/"):
                return put
            if f"{leaf}/".startswith(f"{at}/"):
                below = below or put
        return below

    def _put(self, new: Put) -> None:
        path = new.leaf.path
        for other, old in list(self.puts.items()):
            if not _overlap(other, path) or (other == path and _same(old.value, new.value)):
                continue
            if old.rule.sets == new.rule.sets:
                self.problems.append(conflict(self.before, old, new))
                return
            del self.puts[other]  # a default, over which a set value takes precedence
        self.puts[path] = new
        inner: dict[str, Any] = dict(self.values)
        for step in path[:-1]:
            if not isinstance(inner.get(step), dict):
                inner[step] = {}
            inner = inner[step]
        if not (isinstance(new.value, dict) and isinstance(inner.get(path[-1]), dict) and not new.value):
            inner[path[-1]] = _own(new.value)


def _unstable_changes(changed: Asset, work: _Work, rules: Iterable[MutationRule]) -> list[Diagnostic]:
    """Changes that the rules would make to their own result."""
    values = values_of(changed)
    found: list[Diagnostic] = []
    for rule in rules:
        at = "/match"
        try:
            for leaf in rule.leaves if rule.matching.matches(values) else ():
                at = leaf.inner
                put = work.puts.get(leaf.path)
                if not rule.sets and (put is not None or work.is_written(leaf.path)):
                    continue
                value = leaf.fill(values)
                if not _same(_at(values, leaf.path) if put is None else put.value, value):
                    found.append(unstable(changed, rule, leaf, value))
        except NoAnswerError as error:
            found.append(rule_has_no_answer(rule, changed, at, str(error)))
    return found


def _own(value: Any) -> Any:
    """A private copy of `value`: an expression's answer may be a part of the asset itself."""
    return copy.deepcopy(value) if isinstance(value, dict | list) else value


@functools.lru_cache(maxsize=4096)
def _steps(path: Path) -> tuple[tuple[str, str], ...]:
    """Each step of a path, with the JSON pointer up to there."""
    return tuple((step, pointer(path[:length])) for length, step in enumerate(path, start=1))


_MISSING = object()


def _at(document: Any, path: Path) -> Any:
    for step in path:
        if not isinstance(document, dict) or step not in document:
            return _MISSING
        document = document[step]
    return document


def _overlap(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def _same(one: Any, other: Any) -> bool:
    if one is _MISSING or other is _MISSING:
        return one is other
    return canonical(one) == canonical(other)


@functools.lru_cache(maxsize=4096)
def _shared(marks: tuple[Annotated, ...]) -> tuple[Annotated, ...]:
    return marks
