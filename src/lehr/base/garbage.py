"""How often Python looks for cyclic garbage."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Have this process look for cyclic garbage rarely, because it makes hardly any.

    With Python's own thresholds, a sweep of a million assets has three full collections, each of which stops
    the event loop for more than a second, and they take a tenth of the sweep.
    """
    gc.set_threshold(50_000, 20, 100)
