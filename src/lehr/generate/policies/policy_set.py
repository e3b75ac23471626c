"""The compiled policies of a snapshot, as far as they change or make assets.

They must be known before any generator over assets runs, because these read assets that policies have
changed. So a policy that changes or makes assets is declared in a file or made from files; one that is made
from assets can only judge.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.digest import canonical, digest_all
from lehr.base.errors import LehrError
from lehr.compiled_policies.policy import Unclear
from lehr.compiled_policies.rules import not_understood, unclear_in
from lehr.generate.policies.derived_assets import DerivingRule, deriving_rules
from lehr.generate.policies.mutation_rules import MutationRule, mutation_rules
from lehr.generate.policies.mutations import Mutations
from lehr.generate.policies.policy_type_check import unfit
from lehr.generate.typing.asset_files import declared_in
from lehr.generate.typing.conversion import Place
from lehr.model.asset import Asset, AssetId
from lehr.model.policy import POLICY, Policy
from lehr.model.provenance import DeclaredGenerator, Derivation
from lehr.model.selector import Selector, selector_of
from lehr.model.types import Registry

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
        self._standing: dict[AssetId, Effects] = {}
        self._late: dict[AssetId, Diagnostic] = {}

    @property
    def deriving(self) -> list[DerivingRule]:
        """The rules that make assets, by policy id."""
        return [rule for id in sorted(self._standing) for rule in self._standing[id].deriving]

    @property
    def mutations(self) -> list[MutationRule]:
        """The rules that change assets, in the order of application."""
        return [rule for id in sorted(self._standing) for rule in self._standing[id].mutations]

    @property
    def declared(self) -> list[DeclaredGenerator]:
        """The rules that change assets, as generators."""
        return [rule.declared for rule in self.mutations]

    @property
    def problems(self) -> list[Diagnostic]:
        """All problems of policies."""
        return [*(found for item in self._standing.values() for found in item.problems), *self._late.values()]

    def digest_of(self, rule: DerivingRule) -> str:
        """Digest of everything that determines a rule's result for an asset."""
        return self._standing[rule.policy].digest

    def update(self) -> bool:
        """Load policies that were declared or removed since the last answer; True if there are any.

        The assembly forgets their changes as far as these may differ now.
        """
        before: list[Effects] = []
        now: list[Effects] = []
        for touched in self._declarations.touched:
            id = AssetId(touched)
            asset, known = self._declarations.declared(id), self._standing.pop(id, None)
            if known is not None:
                before.append(known)
            if asset is not None and asset.type == POLICY and not _made_of_assets(asset):
                self._standing[id] = effects_of(asset, self._registry, self._placing(asset))
                now.append(self._standing[id])
        if any(item.mutations for item in (*before, *now)):
            self._have_mutated(before, now)
        return bool(before or now)

    def _have_mutated(self, before: Iterable[Effects], now: Iterable[Effects]) -> None:
        """Apply the current rules to assets, again only where rules differ in more than their positions."""
        olds, news = {item.digest for item in before}, {item.digest for item in now}
        concerned = [
            rule.matching.may_concern
            for item in (*before, *now)
            for rule in item.mutations
            if item.digest in olds ^ news
        ]
        self._declarations.mutate(Mutations(self.mutations, self._registry), concerned)

    def look_for_late(self) -> None:
        """Load policies that generators over assets made since the last answer."""
        for touched in self._declarations.touched:
            id = AssetId(touched)
            asset = self._declarations.declared(id)
            self._late.pop(id, None)
            if asset is not None and asset.type == POLICY and _made_of_assets(asset):
                policy = self._registry.payload(asset, Policy)
                if policy.mutate or policy.generate:
                    self._late[id] = _too_late(asset)

    def _placing(self, asset: Asset) -> Place:
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
        unclear.append(Unclear("", "its id has a colon, and what it changes names it as FILE:ID/NAME"))
    origin = asset.origin or Position("")
    whole = canonical((policy.match, policy.exclude, policy.mutate, policy.generate))
    said = (asset.id, origin.file, whole.decode()) if changes else ()
    problems = [not_understood(asset, item, place(item.pointer)) for item in unclear]
    problems += unfit(asset.id, policy, registry, place)
    if problems:
        return Effects(digest_all(said), problems=tuple(problems))
    of = _told_as(policy.match.select or Selector(all=True))

    def by(name: str, line: int) -> Derivation:
        return Derivation(f"{origin.file}:{asset.id}/{name}", line, "asset", of)

    deriving = tuple(deriving_rules(asset.id, policy, by, place))
    mutations = tuple(mutation_rules(asset.id, policy, by, place))
    marks = [item.by for item in deriving] + [leaf.mark.by for rule in mutations for leaf in rule.leaves]
    digest = digest_all((*said, *(str(item.line) for item in marks)))
    return Effects(digest, mutations, deriving)


def _made_of_assets(asset: Asset) -> bool:
    return asset.made_by is not None and not asset.made_by.over_files


def _told_as(select: Selector) -> str:
    """A selector as `Derivation.of`, or the closest text for it."""
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
        what=f"the policy `{asset.id}` is made of assets, and is to change assets or make some",
        why=f"{asset.made_by.generator} makes it of what such policies have changed already",
        fix="declare it in a file, let a generator make it of files, or let it only judge: `rules`",
        subject=asset.id,
        at=asset.origin,
    )
