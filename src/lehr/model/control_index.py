"""Finds the controls over one asset without matching all of them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from lehr.model.asset import AssetId
from lehr.model.control import Control

_MAGIC = frozenset("*?[")


class ControlIndex:
    """Controls in the order in which they were set.

    People pin and approve single assets, a thousand of them in an emergency. Exact ids, and patterns such as
    `web-*`, are found by dictionary; only the remaining patterns take time linear in their number.
    """

    def __init__(self, controls: Iterable[Control] = ()) -> None:
        self._controls = tuple(controls)
        self._by_id: defaultdict[str, list[int]] = defaultdict(list)
        self._by_prefix: defaultdict[str, list[int]] = defaultdict(list)
        self._others: list[int] = []
        for place, control in enumerate(self._controls):
            self._add(place, control.selector.ids)
        self._lengths = sorted({len(prefix) for prefix in self._by_prefix})

    def _add(self, place: int, patterns: Sequence[str]) -> None:
        exact = [text for text in patterns if _MAGIC.isdisjoint(text)]
        prefixes = [text[:-1] for text in patterns if text[-1:] == "*" and _MAGIC.isdisjoint(text[:-1])]
        if not patterns or len(exact) + len(prefixes) < len(patterns):
            self._others.append(place)
            return
        for text in exact:
            self._by_id[text].append(place)
        for text in prefixes:
            self._by_prefix[text].append(place)

    def __iter__(self) -> Iterator[Control]:
        return iter(self._controls)

    def __len__(self) -> int:
        return len(self._controls)

    def over(self, id: AssetId, now: float) -> Sequence[Control]:
        """The controls, active at `now` in wall-clock seconds, that may select the asset with this id.

        In the order in which they were set; their types and labels are left to `Selector.matches`.
        """
        if not self._controls:
            return ()
        places = {*self._others, *self._by_id.get(id, ())}
        for length in self._lengths:
            places.update(self._by_prefix.get(id[:length], ()))
        return [control for place in sorted(places) if (control := self._controls[place]).is_active(now)]
