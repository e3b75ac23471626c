"""The benches of generation and of the store run on little, and report what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.manifests import PLACES, manifest

FIGURES = [
    (
        "generate_cold",
        [
            *("generate_cold", "cpu", "started again", "started again, cpu"),
            *("memo", "memory", "stored"),
        ],
    ),
    (
        "store",
        [
            *("first", "publish_100_p50", "publish_100_p99", "stored"),
            *("compare_p50", "compare_p99", "read_p50", "read_p99"),
        ],
    ),
]


@pytest.mark.parametrize(("bench", "figures"), FIGURES)
def test_a_bench_reports_its_figures(bench: str, figures: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{bench}", "200"], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["figure"] for line in lines] == figures
    assert all(line["size"] == 200 and line["value"] > 0 for line in lines)


def test_manifests_are_of_the_size_that_the_figures_are_for() -> None:
    assert 1500 < len(manifest(7)) < 2500
    assert manifest(7, 2) != manifest(7)
    assert manifest(7).count("- cluster") == PLACES
