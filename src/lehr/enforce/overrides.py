"""Which checks people can override in an emergency. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from lehr.base.errors import LehrError
from lehr.model.asset import Asset


def overridable(governing: Iterable[Asset]) -> list[Asset]:
    """Those of the assets that configure checks which can be overridden: the ones with `override: true`."""
    return [asset for asset in governing if asset.document()["payload"].get("override") is True]


def require_overridable(check: str, governing: Sequence[Asset]) -> None:
    """Check that an override would have an effect: one without would go unnoticed in an emergency.

    Args:
        governing: assets that configure checks now; those with `override: true` can be overridden.

    Raises:
        LehrError: the asset does not exist, or its check cannot be overridden.
    """
    possible = sorted(asset.id for asset in overridable(governing))
    ids = [str(asset.id) for asset in governing]
    if check not in ids:
        close = difflib.get_close_matches(check, ids, n=1)
        raise LehrError(
            f"no check is configured by `{check}`",
            code="CTL114",
            why="an override must name the asset of a check",
            fix=f"did you mean `{close[0]}`?" if close else _can_be_overridden(possible),
        )
    if check not in possible:
        raise LehrError(
            f"{check} cannot be overridden",
            code="CTL115",
            why="only checks whose asset has `override: true` can be overridden",
            fix=f"{_can_be_overridden(possible)}; or commit `override: true`, if its type has that field",
        )


def _can_be_overridden(possible: Sequence[str]) -> str:
    return f"can be overridden: {', '.join(possible[:10])}" if possible else "no check can be overridden here"
