"""The shop that every fault is tried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.ending import end_all_in
from tests.faults.rounds import chance
from tests.faults.shop import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Nothing runs in it yet; what production it has in the end is stopped."""
    shop = Shop(tmp_path, chance("edits"))
    try:
        yield shop
    finally:
        end_all_in(tmp_path)
