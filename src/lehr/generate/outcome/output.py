"""What one input has been made into."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lehr.base.diagnostics import Diagnostic, Position
from lehr.model.asset import Asset, AssetId
from lehr.model.evolution import FIRST
from lehr.model.provenance import Derivation

LeftOut = tuple[str, ...]
"""JSON pointers into an asset's document."""


class Addition(msgspec.Struct, frozen=True):
    """An addon that a generator puts on an asset of somebody else.

    Attributes:
        value: of the addon's type.
        by: the call of the generator, and the line, that it was yielded by.
        version: of the addon's type.
    """

    id: AssetId
    addon: str
    value: Any
    by: Derivation
    version: int = FIRST

    @property
    def at(self) -> Position:
        """Where it was yielded."""
        return Position(self.by.module, self.by.line)


class LeftOutOf(msgspec.Struct, frozen=True, array_like=True):
    """What each of some assets leaves out (`lehr.generate.typing.unset_fields`), each answer held once.

    Attributes:
        answers: all that there are.
        of: for each asset the index of its own; none at all if no asset leaves anything out.
    """

    answers: tuple[LeftOut, ...] = ()
    of: tuple[int, ...] = ()

    def __getitem__(self, place: int) -> LeftOut:
        return self.answers[self.of[place]] if self.of else ()


def gathered(found: Sequence[LeftOut]) -> LeftOutOf:
    """What each asset leaves out, in the order of the assets."""
    places = {answer: place for place, answer in enumerate(dict.fromkeys(found))}
    if set(places) <= {()}:
        return LeftOutOf()
    return LeftOutOf(tuple(places), tuple(places[answer] for answer in found))


class Output(msgspec.Struct, frozen=True):
    """What was made of one asset file, or of one call of a generator.

    Attributes:
        inputs: digest or id of all that went in: while it stays the same, so does this.
        repeatable: False when something outside the input had a part in it (a time limit), so
            that it has to be made again next time.
        left_out: of each asset.
    """

    inputs: str
    assets: tuple[Asset, ...] = ()
    additions: tuple[Addition, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    repeatable: bool = True
    left_out: LeftOutOf = LeftOutOf()
