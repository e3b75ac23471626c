"""What policies put on assets: one asset at a time, and always the same on the same.

Policies go in the order of their ids, and each from top to bottom; each sees what those before it have
done. What comes out has to be at rest: all of it once more would change nothing. What cannot be so, or would
depend on who comes last, is an error that names the policies.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from lehr.base.cel import NoAnswerError
from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.digest import canonical
from lehr.generate.conversion import Place, convert
from lehr.generate.left_out import LeftOut
from lehr.generate.problems import pointer, quoted, show
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.policy import Policy
from lehr.model.provenance import Annotated, DeclaredGenerator, Derivation
from lehr.model.types import Registry
from lehr.sdk.policy import NEVER_CHANGED, Filling, Matching, compiled_value, values_of

NO_ANSWER, CONFLICT, RESTLESS = "GEN040", "GEN041", "GEN042"

Path = tuple[str, ...]
"""Keys from the top of an asset's document to a field."""


class Leaf(NamedTuple):
    """A field that a rule puts.

    Attributes:
        fill: its value.
        inner: JSON pointer to it, in the policy's payload.
        mark: what an asset says that has it from there, with the line of the field.
    """

    path: Path
    fill: Filling
    inner: str
    mark: Annotated


class MutationRule(NamedTuple):
    """One item of a policy's `mutate`, compiled.

    Attributes:
        sets: True if it puts fields whatever is written there.
        by: the policy and its line.
        of: which assets it is about, as `Derivation.of`.
        place: from a JSON pointer into the policy's payload to where that stands.
    """

    policy: AssetId
    name: str
    matching: Matching
    sets: bool
    leaves: tuple[Leaf, ...]
    by: Derivation
    place: Place

    @property
    def told(self) -> str:
        """The rule, for people."""
        return f"policy `{self.policy}`, `{self.name}`"

    @property
    def declared(self) -> DeclaredGenerator:
        """The rule, as a generator."""
        return DeclaredGenerator(self.by.generator, self.by.line, self.by.reads, self.by.of)


def mutation_rules(
    id: AssetId, policy: Policy, by: Callable[[str, int], Derivation], place: Place
) -> Iterator[MutationRule]:
    """What the policy `id` puts on assets, compiled. Nothing in it may be unclear.

    Args:
        by: from the name and line of a rule to what its assets say.
        place: from a JSON pointer into the policy's payload to where that stands.
    """
    matching = Matching(policy, [])
    for number, item in enumerate(policy.mutate):
        verb, values = item.values
        at = f"/mutate/{number}"
        leaves = [
            Leaf(
                path,
                compiled_value(value, inner, []),
                inner,
                Annotated("", by(item.name, place(inner).line), pointer(path)),
            )
            for root, held in (("payload", values.payload), ("addons", values.addons))
            for path, value, inner in leaves_of(held, (root,), f"{at}/{verb}/{root}")
        ]
        derived = by(item.name, place(at).line)
        yield MutationRule(id, item.name, matching, verb == "set", tuple(leaves), derived, place)


class Mutated(NamedTuple):
    """An asset with what policies put on it, or as it was where there are problems."""

    asset: Asset
    problems: tuple[Diagnostic, ...] = ()


class Mutations:
    """All that policies put on assets.

    Args:
        rules: in the order in which they go.
    """

    def __init__(self, rules: Sequence[MutationRule], registry: Registry) -> None:
        self.rules = tuple(rules)
        self._registry = registry
        self.of_type = functools.cache(self._of_type)

    def _of_type(self, type: str) -> tuple[MutationRule, ...]:
        if type in NEVER_CHANGED:
            return ()
        return tuple(rule for rule in self.rules if rule.matching.may_match(type))

    def applied(self, asset: Asset, left_out: LeftOut) -> Mutated:
        """`asset` with all that is put on it; itself if that is nothing.

        Args:
            left_out: fields of it that nobody has written.
        """
        rules = [rule for rule in self.of_type(asset.type) if rule.matching.may_concern(asset)]
        if not rules:
            return Mutated(asset)
        work = _Work(asset, frozenset(left_out))
        for rule in rules:
            work.apply(rule)
        if work.problems:
            return Mutated(asset, tuple(work.problems))
        if not work.changes:
            return Mutated(asset)
        changed, problems = self._converted(work)
        problems += [] if errors(problems) else _restless(changed, work, rules)
        if problems:
            return Mutated(asset, tuple(problems))
        marks = sorted({*asset.annotated_by, *(put.leaf.mark for put in work.changes)})
        return Mutated(replace(changed, annotated_by=_shared(tuple(marks))))

    def _converted(self, work: _Work) -> tuple[Asset, list[Diagnostic]]:
        """What has become of an asset, if it is one of its type."""
        before = work.before

        def place(at: str) -> Position:
            put = work.source_of(at)
            if put is None:
                return before.origin or Position("")
            inner = f"{at}/".removeprefix(f"{pointer(put.leaf.path)}/")
            below = "" if inner == f"{at}/" else f"/{inner}"
            return put.rule.place(f"{put.leaf.inner}{below}".removesuffix("/"))

        value = {"id": before.id, "type": before.type, **work.document}
        origin = before.origin or Position("")
        asset, found = convert(value, self._registry, origin, place, before.made_by)
        if asset is None:
            return before, [_told(item, before, work) for item in errors(found)]
        return replace(asset, origin=before.origin), []


class _Put(NamedTuple):
    rule: MutationRule
    leaf: Leaf
    value: Any


class _Work:
    """One asset on its way through all rules.

    Attributes:
        document: payload and addons, as they are by now.
        puts: what was put, by path, whether it was there already or not.
        changes: what of that nobody has written.
    """

    def __init__(self, before: Asset, left_out: frozenset[str]) -> None:
        self.before = before
        self.document: dict[str, Any] = _document(before)
        self.puts: dict[Path, _Put] = {}
        self.problems: list[Diagnostic] = []
        self._written = _document(before)
        self._left_out = left_out
        self._now: Asset | None = before

    @property
    def changes(self) -> list[_Put]:
        """What was put, and nobody has written."""
        return [
            put
            for path, put in self.puts.items()
            if not self._was_written(path) or not _same(_at(self._written, path), put.value)
        ]

    def apply(self, rule: MutationRule) -> None:
        """Put what `rule` says, if it is about the asset as it is now."""
        now = self._asset()
        try:
            if not rule.matching.matches(now):
                return
        except NoAnswerError as error:
            self.problems.append(_no_answer(rule, now, "/match", str(error)))
            return
        values = values_of(now)
        for leaf in rule.leaves:
            if not rule.sets and self.is_written(leaf.path):
                continue
            try:
                self._put(_Put(rule, leaf, leaf.fill(values)))
            except NoAnswerError as error:
                self.problems.append(_no_answer(rule, now, leaf.inner, str(error)))

    def is_written(self, path: Path) -> bool:
        """Whether a field stands as a person wants it, so that no default is to be put there."""
        if any(put.rule.sets and _overlap(other, path) for other, put in self.puts.items()):
            return True
        return self._was_written(path)

    def _was_written(self, path: Path) -> bool:
        value: Any = self._written
        for step, place in _steps(path):
            if not isinstance(value, dict):
                return True
            if step not in value or place in self._left_out:
                return False
            value = value[step]
        return True

    def source_of(self, at: str) -> _Put | None:
        """What was put at a JSON pointer, above it, or else below it."""
        below = None
        for path, put in self.puts.items():
            leaf = pointer(path)
            if f"{at}/".startswith(f"{leaf}/"):
                return put
            if f"{leaf}/".startswith(f"{at}/"):
                below = below or put
        return below

    def _asset(self) -> Asset:
        if self._now is None:
            self._now = make_asset(
                self.before.id, self.before.type, self.document["payload"], self.document["addons"]
            )
        return self._now

    def _put(self, new: _Put) -> None:
        path = new.leaf.path
        for other, old in list(self.puts.items()):
            if not _overlap(other, path) or (other == path and _same(old.value, new.value)):
                continue
            if old.rule.sets == new.rule.sets:
                self.problems.append(_conflict(self.before, old, new))
                return
            del self.puts[other]  # a default, which what is set goes before
        self.puts[path] = new
        inner = self.document
        for step in path[:-1]:
            if not isinstance(inner.get(step), dict):
                inner[step] = {}
            inner = inner[step]
        if not (isinstance(new.value, dict) and isinstance(inner.get(path[-1]), dict) and not new.value):
            inner[path[-1]] = new.value
        self._now = None


def _restless(changed: Asset, work: _Work, rules: Iterable[MutationRule]) -> list[Diagnostic]:
    """What the rules would change in what they have made."""
    values = values_of(changed)
    found: list[Diagnostic] = []
    for rule in rules:
        try:
            if not rule.matching.matches(changed):
                continue
            for leaf in rule.leaves:
                put = work.puts.get(leaf.path)
                if not rule.sets and (put is not None or work.is_written(leaf.path)):
                    continue
                value = leaf.fill(values)
                if not _same(_at(values, leaf.path) if put is None else put.value, value):
                    found.append(_not_at_rest(changed, rule, leaf, value))
        except NoAnswerError as error:
            found.append(_no_answer(rule, changed, "/match", str(error)))
    return found


def _document(asset: Asset) -> dict[str, Any]:
    body = msgspec.json.decode(asset.body)
    return {"payload": body["payload"], "addons": body["addons"]}


def leaves_of(value: Mapping[str, Any], path: Path, inner: str) -> Iterator[tuple[Path, Any, str]]:
    """What is no mapping with something in it, with its path, and the pointer to where the policy says it."""
    for key, item in value.items():
        at = inner + pointer([key])
        if isinstance(item, dict) and item:
            yield from leaves_of(item, (*path, key), at)
        else:
            yield (*path, key), item, at


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


# --- what is wrong ---------------------------------------------------------------------


def _told(item: Diagnostic, asset: Asset, work: _Work) -> Diagnostic:
    """A problem of a changed asset, with words about who has changed it."""
    who = ", ".join(dict.fromkeys(f"{put.rule.told}" for put in work.changes))
    return replace(item, why=f"{item.why}; {who} put it on {quoted(asset.id)}".removeprefix("; "))


def _no_answer(rule: MutationRule, asset: Asset, inner: str, why: str) -> Diagnostic:
    return no_answer(f"{rule.told},", asset, rule.place(inner), why)


def no_answer(who: str, asset: Asset, at: Position, why: str) -> Diagnostic:
    """GEN040: an expression in a policy has no answer for an asset."""
    return Diagnostic(
        code=NO_ANSWER,
        what=f"{who} has no answer for {quoted(asset.id)}: {why}",
        why=f"{quoted(asset.id)} is declared at {asset.origin}; nothing is put or made by guessing",
        fix="match only what has it, or say what holds without it: has(payload.x) ? payload.x : 0",
        subject=asset.id,
        at=at,
    )


def _conflict(asset: Asset, old: _Put, new: _Put) -> Diagnostic:
    verb = "set" if new.rule.sets else "give as a default"
    one, other = (
        f"{put.rule.told} ({put.rule.place(put.leaf.inner)}), says {_shown(put.value)}" for put in (old, new)
    )
    return Diagnostic(
        code=CONFLICT,
        what=f"two policies {verb} `{pointer(new.leaf.path)}` of {quoted(asset.id)} to different values",
        why=f"{one}; {other}; one of the two would be lost",
        fix="let one of them say it, or exclude the asset from the other with a reason",
        subject=asset.id,
        at=new.rule.place(new.leaf.inner),
    )


def _not_at_rest(asset: Asset, rule: MutationRule, leaf: Leaf, value: Any) -> Diagnostic:
    return Diagnostic(
        code=RESTLESS,
        what=f"{rule.told}, would change {quoted(asset.id)} again: `{pointer(leaf.path)}` to {_shown(value)}",
        why="what is put twice has to be the same as what is put once; policies go in the order of ids, "
        "and what this one asks for comes of itself, or of one after it",
        fix="let the value follow from what nobody changes; or give the policy an id that sorts later",
        subject=asset.id,
        at=rule.place(leaf.inner),
    )


def _shown(value: Any) -> str:
    return show(value).removeprefix("the string ").removeprefix("the number ")
