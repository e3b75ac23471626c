"""Units of a rollout: assets that are updated together."""

from __future__ import annotations

from lehr.sdk.target_selection import MOST_SECONDS, Amount, Seconds, Unit, count_of

__all__ = ["MOST_SECONDS", "Amount", "Seconds", "Unit", "count_of"]
