"""The compiled policies of a snapshot, as far as they change or make assets.

They must be known before any generator over assets runs, because these read assets that policies have
changed. So a policy that changes or makes assets is declared in a file or made from files; one that is made
from assets can only judge.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.digest import canonical, digest_all
from lehr.base.errors import LehrError
from lehr.base.pointers import pointer
from lehr.compiled_policies.policy import Unclear
from lehr.compiled_policies.rules import not_understood, unclear_in
from lehr.generate.policies.derived_assets import DerivingRule, deriving_rules
from lehr.generate.policies.mutation_rules import MutationRule, leaves_of, mutation_rules
from lehr.generate.policies.mutations import Mutations
from lehr.generate.typing.asset_files import declared_in
from lehr.generate.typing.conversion import Place
from lehr.generate.typing.problems import did_you_mean, quoted
from lehr.generate.typing.schema_pointers import pointer_problem
from lehr.model.addons import TURNDOWN
from lehr.model.asset import Asset, AssetId
from lehr.model.policy import POLICY, Policy
from lehr.model.provenance import DeclaredGenerator, Derivation
from lehr.model.schema import Form, Schema
from lehr.model.selector import Selector, selector_of
from lehr.model.types import Kind, Registry

_EVERYTHING = "id=*"


class Effects(NamedTuple):
    """The compiled rules of a policy; empty as long as they have problems.

    Attributes:
        digest: digest of everything that determines what it changes and makes, and of the positions.
        problems: all problems of the policy.
    """

    digest: str
    mutations: tuple[MutationRule, ...] = ()
    deriving: tuple[DerivingRule, ...] = ()
    problems: tuple[Diagnostic, ...] = ()


class Declarations(Protocol):
    """The declarations of the newest snapshot's assets."""

    touched: set[AssetId]
    """Ids whose declarations have changed since the last answer."""

    def declared(self, id: AssetId) -> Asset | None:
        """An asset as declared; None if it is not declared."""

    def mutate(self, mutations: Mutations, concerned: Sequence[Callable[[Asset], bool]]) -> None:
        """Apply `mutations` to assets from now on; `concerned` recognize the assets that may now differ."""


class Policies:
    """All policies of the newest snapshot.

    Args:
        declarations: the assets that include the policies, and that policies change.
        fetch: reads contents of files.
    """

    def __init__(
        self, registry: Registry, declarations: Declarations, fetch: Callable[[list[str]], Iterator[bytes]]
    ) -> None:
        self._registry = registry
        self._declarations = declarations
        self._fetch = fetch
        self._effects: dict[AssetId, Effects] = {}
        self._late: dict[AssetId, Diagnostic] = {}

    @property
    def deriving(self) -> list[DerivingRule]:
        """The rules that make assets, by policy id."""
        return [rule for id in sorted(self._effects) for rule in self._effects[id].deriving]

    @property
    def mutations(self) -> list[MutationRule]:
        """The rules that change assets, in the order of application."""
        return [rule for id in sorted(self._effects) for rule in self._effects[id].mutations]

    @property
    def declared(self) -> list[DeclaredGenerator]:
        """The rules that change assets, as generators."""
        return [rule.declared for rule in self.mutations]

    @property
    def problems(self) -> list[Diagnostic]:
        """All problems of policies."""
        return [*(found for item in self._effects.values() for found in item.problems), *self._late.values()]

    def digest_of(self, rule: DerivingRule) -> str:
        """Digest of everything that determines a rule's result for an asset."""
        return self._effects[rule.policy].digest

    def update(self) -> bool:
        """Load policies that were declared or removed since the last answer; True if there are any.

        The assembly forgets their changes as far as these may differ now.
        """
        before: list[Effects] = []
        now: list[Effects] = []
        for touched in self._declarations.touched:
            id = AssetId(touched)
            asset, known = self._declarations.declared(id), self._effects.pop(id, None)
            if known is not None:
                before.append(known)
            if asset is not None and asset.type == POLICY and not _made_of_assets(asset):
                self._effects[id] = effects_of(asset, self._registry, self._place_in(asset))
                now.append(self._effects[id])
        if any(item.mutations for item in (*before, *now)):
            self._apply_mutations(before, now)
        return bool(before or now)

    def _apply_mutations(self, before: Iterable[Effects], now: Iterable[Effects]) -> None:
        """Apply the current rules to assets, again only where rules differ in more than their positions."""
        olds, news = {item.digest for item in before}, {item.digest for item in now}
        concerned = [
            rule.matching.may_concern
            for item in (*before, *now)
            for rule in item.mutations
            if item.digest in olds ^ news
        ]
        self._declarations.mutate(Mutations(self.mutations, self._registry), concerned)

    def load_late(self) -> None:
        """Load policies that generators over assets made since the last answer."""
        for touched in self._declarations.touched:
            id = AssetId(touched)
            asset = self._declarations.declared(id)
            self._late.pop(id, None)
            if asset is not None and asset.type == POLICY and _made_of_assets(asset):
                policy = self._registry.payload(asset, Policy)
                if policy.mutate or policy.generate:
                    self._late[id] = _too_late(asset)

    def _place_in(self, asset: Asset) -> Place:
        """Map JSON pointers into the payload of a policy to positions."""
        origin = asset.origin or Position("")

        @functools.cache
        def place() -> Place:
            found = declared_in(origin.file, next(self._fetch([origin.file])), asset.id)
            if found is None:
                return lambda pointer: origin
            return lambda pointer: found.document.position(f"{found.pointer}/payload{pointer}")

        return lambda pointer: place()(pointer)


def effects_of(asset: Asset, registry: Registry, place: Place) -> Effects:
    """Compile what the policy `asset` changes and makes.

    Args:
        place: maps a JSON pointer into its payload to its position.
    """
    policy = registry.payload(asset, Policy)
    unclear = unclear_in(policy)
    changes = bool(policy.mutate or policy.generate)
    if changes and ":" in asset.id:
        unclear.append(
            Unclear("", "its id has a colon, but the origin of changed values has the form FILE:ID/NAME")
        )
    origin = asset.origin or Position("")
    whole = canonical((policy.match, policy.exclude, policy.mutate, policy.generate))
    inputs = (asset.id, origin.file, whole.decode()) if changes else ()
    problems = [not_understood(asset, item, place(item.pointer)) for item in unclear]
    problems += type_problems(asset.id, policy, registry, place)
    if problems:
        return Effects(digest_all(inputs), problems=tuple(problems))
    of = _selector_text(policy.match.select or Selector(all=True))

    def by(name: str, line: int) -> Derivation:
        return Derivation(f"{origin.file}:{asset.id}/{name}", line, "asset", of)

    deriving = tuple(deriving_rules(asset.id, policy, by, place))
    mutations = tuple(mutation_rules(asset.id, policy, by, place))
    marks = [item.by for item in deriving] + [leaf.mark.by for rule in mutations for leaf in rule.leaves]
    digest = digest_all((*inputs, *(str(item.line) for item in marks)))
    return Effects(digest, mutations, deriving)


def _made_of_assets(asset: Asset) -> bool:
    return asset.made_by is not None and not asset.made_by.over_files


def _selector_text(select: Selector) -> str:
    """A selector as `Derivation.of`, or the closest text."""
    if len(select.types) == 1 and not select.ids and not select.labels:
        return select.types[0]
    text = _EVERYTHING if select.all else str(select)
    try:
        return text if select.all or selector_of(text) == select else _only_types(select)
    except LehrError:
        return _only_types(select)


def _only_types(select: Selector) -> str:
    return ",".join(f"type={item}" for item in select.types) or _EVERYTHING


def _too_late(asset: Asset) -> Diagnostic:
    assert asset.made_by is not None
    return Diagnostic(
        code="GEN043",
        what=f"the policy `{asset.id}` is made from assets, but changes or makes assets",
        why=f"{asset.made_by.generator} makes it from assets that such policies have already changed",
        fix="declare it in a file, let a generator make it from files, or let it only judge: `rules`",
        subject=asset.id,
        at=asset.origin,
    )


# --- the output of policies against its types, before any asset matches ----------


def type_problems(id: AssetId, policy: Policy, registry: Registry, place: Place) -> Iterator[Diagnostic]:
    """GEN005, GEN006, GEN007: types, addons and fields that a policy names and that do not exist; GEN044.

    A field is unknown if no type that the policy can match has it; types that are unknown here may be known
    elsewhere where the policy is used.

    Args:
        place: maps a JSON pointer into the policy's payload to its position.
    """
    problems = _Problems(id, registry, place)
    matched = [] if policy.match.select is None else policy.match.select.types
    for number, mutation in enumerate(policy.mutate):
        verb, values = mutation.values
        at = f"/mutate/{number}/{verb}"
        if matched and all(type in registry.types for type in matched):
            yield from problems.of_payload(values.payload, matched, f"{at}/payload")
        yield from problems.of_addons(values.addons, f"{at}/addons")
        if TURNDOWN in values.addons:
            yield problems.of_turndown(at + pointer(["addons", TURNDOWN]))
    for number, generation in enumerate(policy.generate):
        asset, at = generation.asset, f"/generate/{number}/asset"
        if asset.type in registry.types:
            yield from problems.of_payload(asset.payload, [asset.type], f"{at}/payload")
        else:
            yield problems.of_type(asset.type, f"{at}/type")
        yield from problems.of_addons(asset.addons, f"{at}/addons")


class _Problems:
    def __init__(self, policy: AssetId, registry: Registry, place: Place) -> None:
        self._policy = policy
        self._registry = registry
        self._place = place

    def of_type(self, type: str, at: str) -> Diagnostic:
        known = self._registry.types
        why = "the policy would make assets of this type; expressions are not allowed here"
        fix = did_you_mean(type, known, f"known types: {', '.join(sorted(known))}")
        return self._problem("GEN005", f"there is no asset type {quoted(type)}", why, fix, at)

    def of_turndown(self, at: str) -> Diagnostic:
        return self._problem(
            "GEN044",
            f"the policy `{self._policy}` would take everything that it matches out of production",
            f"{TURNDOWN} must be written for each asset by name, and never follows from a match",
            "write it on the assets that you mean",
            at,
        )

    def of_payload(self, values: Mapping[str, Any], types: Iterable[str], at: str) -> Iterator[Diagnostic]:
        kinds = {type: self._registry.types[type].payload for type in types}
        for path, _, inner in leaves_of(values, (), at):
            found = [pointer_problem(pointer(path), _schema_of(kind)) for kind in kinds.values()]
            if all(item is not None for item in found):
                _, fix = found[0] or ("", "")
                what = f"no {' or '.join(kinds)} has a field {quoted(pointer(path))}"
                yield self._problem("GEN007", what, "the policy applies to no other type", fix, inner)

    def of_addons(self, values: Mapping[str, Any], at: str) -> Iterator[Diagnostic]:
        known = self._registry.addons
        for name, value in values.items():
            inner = at + pointer([name])
            if name not in known:
                fix = did_you_mean(name, known, f"known addons: {', '.join(sorted(known))}")
                what = f"there is no addon type {quoted(name)}"
                yield self._problem("GEN006", what, "an addon that nothing reads has no effect", fix, inner)
            elif isinstance(value, dict):
                yield from self._of_addon(name, known[name], value, inner)

    def _of_addon(self, name: str, kind: Kind, value: Mapping[str, Any], at: str) -> Iterator[Diagnostic]:
        for path, _, inner in leaves_of(value, (), at):
            found = pointer_problem(pointer(path), _schema_of(kind))
            if found is not None:
                what = f"{name} has no field {quoted(pointer(path))}"
                yield self._problem("GEN007", what, "", found[1], inner)

    def _problem(self, code: str, what: str, why: str, fix: str, at: str) -> Diagnostic:
        return Diagnostic(code=code, what=what, why=why, fix=fix, subject=self._policy, at=self._place(at))


def _schema_of(kind: Kind) -> Any:
    if not isinstance(kind, Schema):
        return _struct_schema(kind)
    return {} if kind.form is Form.PROTOBUF else kind.document  # fields of messages have two names


@functools.lru_cache(maxsize=256)
def _struct_schema(kind: type[msgspec.Struct]) -> Any:
    try:
        return msgspec.json.schema(kind)
    except (TypeError, ValueError, NameError):  # a type that JSON schema cannot describe
        return {}
