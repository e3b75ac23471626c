"""The benches of reading run, and report what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

FIGURES = [
    (
        "query",
        "200",
        [
            "get_p99",
            "list_1000_by_type",
            "filter_all",
            "read_all",
            "referrers",
            "http_get_p50",
            "http_get_p99",
            "http_list_10000",
        ],
    ),
    (
        "why",
        "2000",
        [*["root_causes"] * 3, "http_why_p50", "http_why_p99", "http_causes"],
    ),
    ("watch", "5", ["all_have_all"]),
    ("informer", "200", ["updates", "memory_per_100000"]),
]


@pytest.mark.parametrize(("bench", "size", "figures"), FIGURES)
def test_a_bench_reports_its_figures(bench: str, size: str, figures: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{bench}", size], capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["figure"] for line in lines] == figures
    for line in lines:
        assert {"figure", "value", "unit", "size", "machine"} <= line.keys()
        assert line["value"] > 0
