"""The bench against kustomize runs to its end, however long kustomize takes.

Instead of kubectl a few lines of shell stand on the PATH; no figure of them means anything.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BUILDS = """#!/bin/sh
exec cat "$2"/objects/*.yaml
"""
FOR_EVER = """#!/bin/sh
exec sleep 1000
"""


def bench(folder: Path, kubectl: str, **environment: str) -> list[dict[str, Any]]:
    command = folder / "kubectl"
    command.write_text(kubectl)
    command.chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.versus_kustomize", "1000"],
        capture_output=True,
        text=True,
        timeout=150,
        env={**os.environ, "PATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("kubectl", "environment", "told"),
    [
        (BUILDS, {}, "times_faster"),
        (FOR_EVER, {"KUSTOMIZE_LIMIT": "0.2"}, "times_faster_at_least"),
    ],
)
def test_growth_is_shown_and_a_limit_that_is_met_is_a_lower_bound(
    kubectl: str, environment: dict[str, str], told: str, tmp_path: Path
) -> None:
    lines = bench(tmp_path, kubectl, **environment)
    names = ["one_changed_p50", "one_changed_p99"]
    assert [(line["figure"], line["size"]) for line in lines] == [
        (name, size) for size in (100, 200, 1000) for name in names
    ]
    for line in lines:
        assert line[told] == pytest.approx(line["peer_value"] / line["value"], rel=0.1, abs=0.1)
        assert {"times_faster", "times_faster_at_least"} & line.keys() == {told}
        assert line.get("peer_at_least", False) is (told == "times_faster_at_least")
        if "peer_at_least" in line:
            assert line["peer_value"] == 200
