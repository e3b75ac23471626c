"""Combines all outputs: the current assets, and the changes since the last answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.digest import canonical
from lehr.generate.engine.enclosures import Enclosures
from lehr.generate.outcome.output import Addition, Output, UnsetFields
from lehr.generate.policies.mutations import Mutated, Mutations
from lehr.generate.typing.conversion import size_checked
from lehr.generate.typing.problems import quoted
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.evolution import FIRST
from lehr.model.provenance import Annotated
from lehr.model.types import Registry

T = TypeVar("T")

ALL = "*"
"""The item of generators that are called once, with all input."""

PLAIN = ""
"""Maker of the assets in asset files."""

TYPES = "types"
"""Maker of the types in type files."""


_FEW_ASSETS = 256  # size of an output up to which a search costs less than an index


class Unit(NamedTuple):
    """One input that has an output.

    Attributes:
        maker: the generator (`generators/web.py:processes`); or `PLAIN`, `TYPES`.
        item: path of the source file, or id of the source asset; `*` for all together.
    """

    maker: str
    item: str


class Assembly:
    """Outputs by unit, and the assets that result from them. Every change costs O(changed).

    Args:
        seal: completes an asset after everything else is in it.
    """

    def __init__(self, registry: Registry, seal: Callable[[Asset], Asset] = lambda asset: asset) -> None:
        self._seal = seal
        self._enclosures = Enclosures(registry)
        self.touched: set[AssetId] = set()
        """Ids whose declarations have changed since the last successful `settle`."""
        self._outputs: dict[Unit, Output] = {}
        self._items: dict[str, set[str]] = {}
        self._declared: dict[AssetId, tuple[Asset, ...]] = {}
        self._mutations: Mutations | None = None
        self._mutated: dict[AssetId, Mutated] = {}
        self._unset_fields: dict[Unit, dict[AssetId, UnsetFields]] = {}
        self._additions: dict[AssetId, tuple[Addition, ...]] = {}
        self._troubled: set[Unit] = set()
        self._conflicts: dict[AssetId, list[Diagnostic]] = {}
        self._settled: dict[AssetId, Asset] = {}

    def get(self, unit: Unit) -> Output | None:
        """The output of `unit`."""
        return self._outputs.get(unit)

    def items(self, maker: str) -> set[str]:
        """Every item with an output of `maker`. A copy."""
        return set(self._items.get(maker, ()))

    def makers(self) -> list[str]:
        """Every generator with an output."""
        return [maker for maker in self._items if maker not in (PLAIN, TYPES)]

    def put(self, unit: Unit, output: Output) -> None:
        """Replace the output of `unit` with `output`."""
        self.drop(unit)
        self._outputs[unit] = output
        self._items.setdefault(unit.maker, set()).add(unit.item)
        if output.diagnostics:
            self._troubled.add(unit)
        for asset in output.assets:
            self._declared[asset.id] = (*self._declared.get(asset.id, ()), asset)
            self._touch(asset.id)
        for addition in output.additions:
            self._additions[addition.id] = (*self._additions.get(addition.id, ()), addition)
            self.touched.add(addition.id)

    def drop(self, unit: Unit) -> None:
        """Forget the output of `unit`."""
        self._unset_fields.pop(unit, None)
        output = self._outputs.pop(unit, None)
        if output is None:
            return
        items = self._items[unit.maker]
        items.discard(unit.item)
        if not items:
            del self._items[unit.maker]
        self._troubled.discard(unit)
        for asset in output.assets:
            _remove(self._declared, asset.id, asset)
            self._touch(asset.id)
        for addition in output.additions:
            _remove(self._additions, addition.id, addition)
            self.touched.add(addition.id)

    def mutate(self, mutations: Mutations, concerned: Sequence[Callable[[Asset], bool]]) -> None:
        """Apply these mutations to assets from now on.

        Args:
            concerned: each recognizes assets that may now be changed differently.
        """
        self._mutations = mutations
        for id, declared in self._declared.items() if concerned else ():
            if any(may(asset) for may in concerned for asset in declared):
                self._touch(id)

    def asset(self, id: AssetId) -> Asset | None:
        """The asset after policies, without annotations; None if it is declared never or several times."""
        declared = self.declared(id)
        return None if declared is None else self._changed(declared).asset

    def declared(self, id: AssetId) -> Asset | None:
        """The asset as declared, without changes by policies and annotations; None as for `asset`."""
        declared = self._declared.get(id, ())
        return declared[0] if len(declared) == 1 else None

    def ids(self) -> Iterable[AssetId]:
        """Ids of everything declared."""
        return self._declared.keys()

    def settle(self, others: Iterable[Diagnostic]) -> tuple[list[Asset], list[AssetId], list[Diagnostic]]:
        """The differences from the last call without an error, and all problems.

        Args:
            others: problems from elsewhere; an error among them also holds everything back.

        Returns:
            New and changed assets, removed ids, diagnostics. If the diagnostics include an error, there are
            no differences, and `touched` keeps growing.
        """
        wanted = self._wanted()
        diagnostics = [*others, *self._diagnostics()]
        if errors(diagnostics):
            return [], [], diagnostics
        upserts: list[Asset] = []
        removals: list[AssetId] = []
        for id, asset in wanted.items():
            before = self._settled.get(id)
            if asset is not None and asset != before:
                self._settled[id] = asset
                upserts.append(asset)
            elif asset is None and before is not None:
                del self._settled[id]
                removals.append(id)
        self.touched.clear()
        self._unset_fields.clear()
        return upserts, removals, diagnostics

    def _wanted(self) -> dict[AssetId, Asset | None]:
        """Every touched asset; None for one that is gone or has problems."""
        wanted = {id: self._resolve(id) for id in self.touched}
        others = (asset for id, asset in self._settled.items() if id not in wanted)
        for id in self._enclosures.update(wanted, others):
            self.touched.add(id)
            asset = wanted[id] if id in wanted else self._resolve(id)
            wanted[id] = None if asset is None else self._enclosures.completed(asset)
        return wanted

    def _touch(self, id: AssetId) -> None:
        self.touched.add(id)
        self._mutated.pop(id, None)

    def _changed(self, asset: Asset) -> Mutated:
        """A declared asset, with the changes by policies."""
        if self._mutations is None or not self._mutations.of_type(asset.type):
            return Mutated(asset)
        known = self._mutated.get(asset.id)
        if known is None:
            known = self._mutations.applied(asset, lambda: self._unset_fields_of(asset))
            if known.asset is not asset:  # there may be a million without changes
                self._mutated[asset.id] = known
        return known

    def _unset_fields_of(self, asset: Asset) -> UnsetFields:
        """The unset fields of a declared asset."""
        unit = _unit_of(asset)
        output = self._outputs[unit]
        if len(output.assets) <= _FEW_ASSETS:
            return next(
                output.unset_fields[place] for place, item in enumerate(output.assets) if item is asset
            )
        if unit not in self._unset_fields:
            self._unset_fields[unit] = {
                item.id: output.unset_fields[place] for place, item in enumerate(output.assets)
            }
        return self._unset_fields[unit][asset.id]

    def _diagnostics(self) -> Iterator[Diagnostic]:
        for unit in self._troubled:
            yield from self._outputs[unit].diagnostics
        for found in self._conflicts.values():
            yield from found

    def _resolve(self, id: AssetId) -> Asset | None:
        declared = self._declared.get(id, ())
        additions = self._additions.get(id, ())
        problems: list[Diagnostic] = []
        asset: Asset | None = None
        if len(declared) > 1:
            problems = _duplicates(declared)
        elif not declared:
            problems = [_nothing_to_annotate(addition) for addition in additions]
        elif not additions:
            asset, found = self._changed(declared[0])
            problems = list(found)
        else:
            asset, problems = _annotated(declared[0], additions)
            if asset is not None and self._mutations is not None:
                asset, found = self._mutations.applied(asset, lambda: self._unset_fields_of(declared[0]))
                problems += found
        if problems:
            self._conflicts[id] = problems
        else:
            self._conflicts.pop(id, None)
        return None if asset is None else self._seal(asset)


def _unit_of(asset: Asset) -> Unit:
    """The maker of an asset."""
    if asset.made_by is not None:
        return Unit(asset.made_by.generator, asset.made_by.item or ALL)
    return Unit(PLAIN, "" if asset.origin is None else asset.origin.file)


def _remove(index: dict[AssetId, tuple[T, ...]], id: AssetId, item: T) -> None:
    left = tuple(other for other in index[id] if other is not item)
    if left:
        index[id] = left
    else:
        del index[id]


def _annotated(asset: Asset, additions: tuple[Addition, ...]) -> tuple[Asset | None, list[Diagnostic]]:
    body = msgspec.json.decode(asset.body)
    addons = body["addons"]
    declared = set(addons)
    versions: dict[str, int] = body.get("versions", {})
    problems: list[Diagnostic] = []
    places: dict[str, Position | None] = dict.fromkeys(declared, asset.origin)
    for addition in sorted(additions, key=lambda item: (item.addon, item.at)):
        value = msgspec.json.decode(canonical(addition.value))
        if addition.addon not in addons:
            addons[addition.addon] = value
            if addition.version != FIRST:
                versions[addition.addon] = addition.version
            places[addition.addon] = addition.at
        elif addons[addition.addon] != value:
            problems.append(_conflict(addition, places[addition.addon]))
    if problems:
        return None, problems
    annotated_by = tuple(sorted(Annotated(addition.addon, addition.by) for addition in additions))
    whole = make_asset(
        asset.id, asset.type, body["payload"], addons, asset.origin, asset.made_by, annotated_by, versions
    )
    return size_checked(whole, lambda _: asset.origin or additions[0].at)


def _duplicates(declared: tuple[Asset, ...]) -> list[Diagnostic]:
    first, *others = sorted(declared, key=lambda asset: (asset.origin or Position(""), _made_of(asset)))
    return [
        Diagnostic(
            code="GEN008",
            what=f"asset {quoted(other.id)} is declared twice{_made_of(other)}",
            why=f"it is already declared at {first.origin}{_made_of(first)}, and ids are unique within a "
            "partition",
            fix="delete one of the two, or give it a different id",
            subject=other.id,
            at=other.origin,
        )
        for other in others
    ]


def _made_of(asset: Asset) -> str:
    """The input of an asset, where its origin does not show it."""
    by = asset.made_by
    return f", made from {quoted(by.item)}" if by is not None and by.reads == "asset" else ""


def _nothing_to_annotate(addition: Addition) -> Diagnostic:
    return Diagnostic(
        code="GEN032",
        what=f"there is no asset {quoted(addition.id)} to annotate with {addition.addon}",
        why="neither an asset file nor a generator declares it",
        fix="declare the asset, or fix the id",
        subject=addition.id,
        at=addition.at,
    )


def _conflict(addition: Addition, first: Position | None) -> Diagnostic:
    return Diagnostic(
        code="GEN033",
        what=f"asset {quoted(addition.id)} already has the addon {addition.addon}, with a different value",
        why=f"the other value comes from {first}, and one of the two would be lost",
        fix="keep only one of the two",
        subject=addition.id,
        at=addition.at,
    )
