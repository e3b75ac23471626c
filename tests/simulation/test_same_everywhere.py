"""A seed is all that a history depends on: not the process, its hash seed, nor the folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PLAY = """
import sys
from lehr.base.digest import digest_all
from lehr.testing.sim.suite import history_of, kind_of

history = history_of(int(sys.argv[1]), kind_of(policies=sys.argv[2] == "policies"))
assert not history.violations, history.violations
assert history.witness.admitted
told = [*history.trace.story(writes=True), *history.witness.admitted]
print(len(told), digest_all(told))
"""


@pytest.mark.parametrize(("seed", "kind"), [(3, "ordinary"), (17, "policies"), (36, "policies")])
def test_another_hash_seed_and_another_folder_give_the_same_history(
    tmp_path: Path, seed: int, kind: str
) -> None:
    """What could depend on the process.

    In the second, the disk is full and rollouts look at assets that could not be pushed for that. In the
    third, a decision is recorded for an asset with several approvals, which are a set.
    """
    processes = []
    for hash_seed in ("1", "4242"):
        folder = tmp_path / hash_seed
        folder.mkdir()
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", PLAY, str(seed), kind],
                cwd=folder,
                env={**os.environ, "PYTHONHASHSEED": hash_seed, "TMPDIR": str(folder)},
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    said = [process.communicate(timeout=150)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert said[0] == said[1]
