"""At how many awaits the conformance suites break off pushes that take seconds."""

from __future__ import annotations

import os


def some(most: int) -> int | None:
    """`most` in an ordinary run; None, which is every await, in `make conformance`."""
    return None if os.environ.get("EVERY_AWAIT") else most
