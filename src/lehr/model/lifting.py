"""Which controls a command lifts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lehr.model.control import Control, ControlKind
from lehr.model.selector import Selector


def lifted_by(kind: ControlKind, asked: Selector, controls: Iterable[Control]) -> list[Control]:
    """Those of `controls` that are lifted by a command for a kind and a selector, in their order."""
    return [item for item in controls if item.kind is kind and _is_lifted(item.selector, asked)]


def _is_lifted(active: Selector, asked: Selector) -> bool:
    if asked.all or active == asked:
        return True
    plain = not (active.types or active.labels or asked.types or asked.labels)
    return plain and bool(active.ids) and set(active.ids) <= set(asked.ids)
