"""What the conformance suites send arrives, whatever order sets have."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
from lehr.model.outputs import OutputNames
from lehr.testing.conformance.messages import sent
names = OutputNames(changing=frozenset({"restarts", "crash_loops"}))
assert sent(names) == names
"""


@pytest.mark.parametrize("seed", ["1", "19"])
def test_sets_arrive_whichever_order_they_have(seed: str) -> None:
    """With seed 19, both texts want the same place in a set, so its order shows which came first."""
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment, timeout=60)
