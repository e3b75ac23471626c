"""The content that each asset should have, as pins and releases allow, and its intended production."""

from __future__ import annotations

from lehr.base.clock import Clock
from lehr.model.asset import Asset, AssetId
from lehr.model.control import ControlKind
from lehr.model.types import Registry
from lehr.testing.sim.things import intended_value
from lehr.testing.sim.witness import Witness


class WantedContent:
    """By everything that the witness has seen written."""

    def __init__(self, witness: Witness, registry: Registry, clock: Clock) -> None:
        self._witness = witness
        self._registry = registry
        self._clock = clock

    def incarnation(self, id: AssetId, governing: int, at: float | None = None) -> int:
        """The incarnation whose content an asset has while `governing` is the newest; 0 if it is gone."""
        asset = self._witness.assets(governing).get(id)
        if asset is None:
            return 0
        pin = self._witness.active_control(ControlKind.PIN, asset, self._clock.now() if at is None else at)
        pinned = governing if pin is None else pin.incarnation or 0
        if self._witness.releases.governs(id):
            return self._witness.releases.content(id, min(pinned, governing))
        return pinned

    def value(self, id: str, content: int, governing: int, at: float | None = None) -> str | None:
        """Intended production of a thing with the content of incarnation `content`; None if it has none.

        It reads others as their own pins and releases allow.
        """
        assets = self._witness.assets(content)

        def read(other: str) -> Asset:
            return self._witness.assets(self.incarnation(AssetId(other), governing, at) or content)[other]

        try:
            return intended_value(assets, id, self._registry, read)
        except KeyError:
            return None
