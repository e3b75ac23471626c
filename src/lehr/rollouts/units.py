"""Units of a rollout: assets that are updated together."""

from __future__ import annotations

from lehr.sdk.target_selection import Amount, Seconds, Unit, count_of

__all__ = ["Amount", "Seconds", "Unit", "count_of"]
