"""The output made from one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.model.asset import Asset, AssetId
from lehr.model.evolution import FIRST
from lehr.model.provenance import Derivation

UnsetFields = tuple[str, ...]
"""JSON pointers into an asset's document."""


class Addition(msgspec.Struct, frozen=True):
    """An addon that a generator puts on an asset that it did not make.

    Attributes:
        value: a value of the addon's type.
        by: the generator call and line that yielded it.
        version: version of the addon's type.
    """

    id: AssetId
    addon: str
    value: Any
    by: Derivation
    version: int = FIRST

    @property
    def at(self) -> Position:
        """Position of the `yield`."""
        return Position(self.by.module, self.by.line)


class UnsetFieldsOf(msgspec.Struct, frozen=True, array_like=True):
    """Fields that assets leave unset (`lehr.generate.typing.unset_fields`); equal answers are stored once.

    Attributes:
        answers: all distinct answers.
        of: for each asset the index of its answer; empty if no asset leaves anything out.
    """

    answers: tuple[UnsetFields, ...] = ()
    of: tuple[int, ...] = ()

    def __getitem__(self, place: int) -> UnsetFields:
        return self.answers[self.of[place]] if self.of else ()


def gathered(found: Sequence[UnsetFields]) -> UnsetFieldsOf:
    """The unset fields of each asset, in the order of the assets."""
    places = {answer: place for place, answer in enumerate(dict.fromkeys(found))}
    if set(places) <= {()}:
        return UnsetFieldsOf()
    return UnsetFieldsOf(tuple(places), tuple(places[answer] for answer in found))


class Output(msgspec.Struct, frozen=True):
    """The output of one asset file, or of one call of a generator.

    Attributes:
        inputs: digest or id of all inputs: while it stays the same, so does the output.
        repeatable: False if something outside the input affected it (a time limit), so that it must be
            rebuilt next time.
        unset_fields: unset fields of each asset.
    """

    inputs: str
    assets: tuple[Asset, ...] = ()
    additions: tuple[Addition, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    repeatable: bool = True
    unset_fields: UnsetFieldsOf = UnsetFieldsOf()
