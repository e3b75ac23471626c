"""All outputs put together: which assets there are now, and what has changed since the last answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from lehr.base.diagnostics import Diagnostic, Position, errors
from lehr.base.digest import canonical
from lehr.generate.conversion import size_checked
from lehr.generate.output import Addition, Output
from lehr.generate.problems import quoted
from lehr.model.asset import Asset, AssetId, make_asset
from lehr.model.evolution import FIRST
from lehr.model.provenance import Annotated

T = TypeVar("T")


PLAIN = ""
"""Maker of what asset files declare."""

TYPES = "types"
"""Maker of what type files declare."""


class Unit(NamedTuple):
    """One thing that an output is made of.

    Attributes:
        maker: the generator (`generators/web.py:processes`); or `PLAIN`, `TYPES`.
        item: path of the file, or id of the asset, that it is made from; `*` for all together.
    """

    maker: str
    item: str


class Assembly:
    """Outputs by unit, and the assets that they add up to. Every change costs O(changed).

    Args:
        seal: what else is put into an asset, once all of it is together.
    """

    def __init__(self, seal: Callable[[Asset], Asset] = lambda asset: asset) -> None:
        self._seal = seal
        self.touched: set[AssetId] = set()
        """Ids whose declarations have changed since the last `settle` that went through."""
        self._outputs: dict[Unit, Output] = {}
        self._items: dict[str, set[str]] = {}
        self._declared: dict[AssetId, tuple[Asset, ...]] = {}
        self._additions: dict[AssetId, tuple[Addition, ...]] = {}
        self._troubled: set[Unit] = set()
        self._conflicts: dict[AssetId, list[Diagnostic]] = {}
        self._settled: dict[AssetId, Asset] = {}

    def get(self, unit: Unit) -> Output | None:
        """What was made of `unit`."""
        return self._outputs.get(unit)

    def items(self, maker: str) -> set[str]:
        """Every item that there is an output of `maker` for. A copy."""
        return set(self._items.get(maker, ()))

    def makers(self) -> list[str]:
        """Every generator that there is an output of."""
        return [maker for maker in self._items if maker not in (PLAIN, TYPES)]

    def put(self, unit: Unit, output: Output) -> None:
        """Take `output` in place of what was made of `unit` before."""
        self.drop(unit)
        self._outputs[unit] = output
        self._items.setdefault(unit.maker, set()).add(unit.item)
        if output.diagnostics:
            self._troubled.add(unit)
        for asset in output.assets:
            self._declared[asset.id] = (*self._declared.get(asset.id, ()), asset)
            self.touched.add(asset.id)
        for addition in output.additions:
            self._additions[addition.id] = (*self._additions.get(addition.id, ()), addition)
            self.touched.add(addition.id)

    def drop(self, unit: Unit) -> None:
        """Forget what was made of `unit`."""
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
            self.touched.add(asset.id)
        for addition in output.additions:
            _remove(self._additions, addition.id, addition)
            self.touched.add(addition.id)

    def asset(self, id: AssetId) -> Asset | None:
        """The asset as declared, without annotations; None if none or several are declared."""
        declared = self._declared.get(id, ())
        return declared[0] if len(declared) == 1 else None

    def ids(self) -> Iterable[AssetId]:
        """Ids of everything declared."""
        return self._declared.keys()

    def settle(self, others: Iterable[Diagnostic]) -> tuple[list[Asset], list[AssetId], list[Diagnostic]]:
        """What differs from the last call that found no error, and all problems.

        Args:
            others: problems from elsewhere; an error among them holds everything back, too.

        Returns:
            Assets that are new or differ, ids that are gone, diagnostics. With an error among the
            diagnostics nothing differs, and `touched` goes on growing.
        """
        wanted = {id: self._resolve(id) for id in self.touched}
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
        return upserts, removals, diagnostics

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
        else:
            asset, problems = _annotated(declared[0], additions)
        if problems:
            self._conflicts[id] = problems
        else:
            self._conflicts.pop(id, None)
        return None if asset is None else self._seal(asset)


def _remove(index: dict[AssetId, tuple[T, ...]], id: AssetId, item: T) -> None:
    left = tuple(other for other in index[id] if other is not item)
    if left:
        index[id] = left
    else:
        del index[id]


def _annotated(asset: Asset, additions: tuple[Addition, ...]) -> tuple[Asset | None, list[Diagnostic]]:
    if not additions:
        return asset, []
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
    checked, found = size_checked(whole, lambda _: asset.origin or additions[0].at)
    return checked, found


def _duplicates(declared: tuple[Asset, ...]) -> list[Diagnostic]:
    first, *others = sorted(declared, key=lambda asset: asset.origin or Position(""))
    return [
        Diagnostic(
            code="GEN008",
            what=f"asset {quoted(other.id)} is declared again",
            why=f"it is already declared at {first.origin}, and ids are unique within a partition",
            fix="delete one of the two, or give it another id",
            subject=other.id,
            at=other.origin,
        )
        for other in others
    ]


def _nothing_to_annotate(addition: Addition) -> Diagnostic:
    return Diagnostic(
        code="GEN032",
        what=f"there is no asset {quoted(addition.id)} to annotate with {addition.addon}",
        why="neither an asset file nor a generator declares it",
        fix="declare the asset, or mend the id",
        subject=addition.id,
        at=addition.at,
    )


def _conflict(addition: Addition, first: Position | None) -> Diagnostic:
    return Diagnostic(
        code="GEN033",
        what=f"asset {quoted(addition.id)} has the addon {addition.addon} already, with another value",
        why=f"the other value comes from {first}, and one of the two would be lost",
        fix="let one of the two places say it",
        subject=addition.id,
        at=addition.at,
    )
