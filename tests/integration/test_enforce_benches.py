"""The benches of the Enforcer run, and report what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

FIGURES = [
    ("controls_under_load", ["refused_for_others_pins"]),
    ("diff_many", ["programs", "schemas"]),
    ("enforce_push", ["pushes"]),
    ("enforce_sweep", ["sweep", "memory"]),
    ("log_size", ["lines", "log"]),
    ("metrics", ["size", "p99", "p50", "p99_during_a_sweep"]),
    ("plan", ["plan", "noop"]),
    ("simulate", ["simulate", "growth"]),
]


@pytest.mark.parametrize(("bench", "figures"), FIGURES)
def test_a_bench_reports_its_figures(bench: str, figures: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{bench}", "20"], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["figure"] for line in lines] == figures
    for line in lines:
        assert {"figure", "value", "unit", "size", "machine"} <= line.keys()
        assert line["size"] == (80 if line["figure"] == "growth" else 20)
        # Pins of some assets refuse no admission of others.
        assert line["value"] == 0 if bench == "controls_under_load" else line["value"] > 0
    if bench == "enforce_push":
        assert {"peer", "ratio", "durability"} <= lines[0].keys()
        assert lines[0]["decisions"] == 40
