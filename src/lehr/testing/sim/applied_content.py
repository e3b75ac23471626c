"""What production was last made from, or found to match: each asset, and everything that it read."""

from __future__ import annotations

from lehr.base.digest import Digest
from lehr.model.asset import AssetId
from lehr.model.operation import LedgerEntry, Operation
from lehr.testing.sim.wanted_content import WantedContent
from lehr.testing.sim.witness import Witness

_Digests = dict[str, Digest | None]
"""By id, of an asset and of everything that it reads; None for one that is not there."""


class AppliedContent:
    """By everything that the witness has seen written.

    The incarnation in the ledger is that of the asset alone. It read others as their
    pins and releases had them then.
    """

    def __init__(self, witness: Witness, contents: WantedContent) -> None:
        self._witness = witness
        self._contents = contents
        self._pushed: dict[str, _Digests] = {}
        self._applied: dict[str, _Digests] = {}

    def admitted(self, operation: Operation) -> None:
        """A push is admitted."""
        id, at = operation.asset, operation.started_at
        self._pushed[operation.id] = self._made_of(id, operation.content, operation.governing, at)

    def entered(self, entry: LedgerEntry) -> None:
        """The ledger has a new entry: of a push, or of what a look has found."""
        pushed = None if entry.operation is None else self._pushed.pop(entry.operation, None)
        if pushed is None:
            newest = max(self._witness.incarnations, default=0)
            pushed = self._made_of(entry.asset, entry.content, newest)
        self._applied[entry.asset] = pushed

    def matches(self, id: AssetId, sequence: int, governing: int) -> bool:
        """Whether that is what the content of incarnation `sequence` should be made from.

        True if that incarnation does not have the asset.

        Args:
            governing: the newest incarnation.
        """
        wanted = self._made_of(id, sequence, governing)
        return not wanted or wanted == self._applied.get(id)

    def _made_of(self, id: AssetId, sequence: int, governing: int, at: float | None = None) -> _Digests:
        assets = self._witness.assets(sequence)
        if id not in assets:
            return {}
        found: _Digests = {id: assets[id].digest}
        for name in assets[id].document()["payload"].get("reads", ()):
            read_at = self._contents.incarnation(AssetId(name), governing, at) or sequence
            there = self._witness.assets(read_at).get(name)
            found[name] = None if there is None else there.digest
        return found
