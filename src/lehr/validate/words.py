"""Lists and places in readable form."""

from __future__ import annotations

from collections.abc import Sequence

MOST_NAMED = 10


def listed(names: Sequence[str]) -> str:
    """Some of `names`, and how many more there are: `a, b and 290 more`."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
