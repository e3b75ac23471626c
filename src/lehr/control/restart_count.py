"""Counts restarts of programs, from the outputs in which plugins report them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lehr.model.asset import AssetId
from lehr.model.outputs import Outputs

_RESTARTS = "restarts"
"""The output with the number of restarts of an asset's programs."""


class RestartCount:
    """Restarts since this process began to count, by the type of the asset.

    Attributes:
        by_type: only of types that report restarts.
    """

    def __init__(self) -> None:
        self.by_type: Counter[str] = Counter()
        self._last: dict[AssetId, int] = {}
        self._recovering = True

    def begin(self) -> None:
        """Forget what was reported last: another process may have seen later reports."""
        self._last.clear()
        self._recovering = True

    def recovered(self, recorded: Iterable[Outputs]) -> None:
        """Add the reports that the store had, of assets that have made no later ones since `begin`."""
        for outputs in recorded:
            if outputs.asset not in self._last:
                self._note(outputs, counted=False)
        self._recovering = False

    def reported(self, outputs: Outputs) -> None:
        """Count what a new report adds to the last one."""
        if not outputs.values:
            self._last.pop(outputs.asset, None)
            return
        # Before the store was read, the last report is not known: it may have been the same.
        self._note(outputs, counted=outputs.asset in self._last or not self._recovering)

    def _note(self, outputs: Outputs, *, counted: bool) -> None:
        restarts = outputs.values.get(_RESTARTS)
        if not isinstance(restarts, int):
            return
        last = self._last.get(outputs.asset, 0)
        # A number that has fallen was started again from zero, like any counter.
        more = restarts - last if restarts >= last else restarts
        self.by_type[outputs.type] += more if counted else 0
        self._last[outputs.asset] = restarts
