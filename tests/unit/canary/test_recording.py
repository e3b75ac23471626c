"""Samples from CSV, and everything that can be wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base.diagnostics import Severity
from lehr.canary import Sample
from lehr.canary.recording import Recording, read_recording

HEADER = "time,group,replica,requests,errors\n"
GOOD = "100,canary,a,10,1\n100,control,b,20,2\n"


def read(text: str) -> Recording:
    return read_recording("metrics.csv", text.splitlines(keepends=True))


def problems(text: str) -> list[str]:
    return [f"{item.code} {item.at}" for item in read(text).diagnostics]


def test_a_row_is_a_sample() -> None:
    found = read(HEADER + GOOD)
    assert found.counters == ("requests", "errors")
    assert found.samples[0] == Sample(100.0, "canary", "a", {"requests": 10.0, "errors": 1.0})
    assert found.diagnostics == ()


def test_columns_may_be_in_any_order_and_rows_as_well() -> None:
    text = "errors,replica,time,group,requests\n2,a,200,canary,20\n1,a,100.5,canary,10\n1,b,100,control,10\n"
    assert [sample.time for sample in read(text).samples] == [100, 100.5, 200]


@pytest.mark.parametrize("cell", ["", " ", "NaN", "nan"])
def test_a_cell_that_was_not_measured_is_absent(cell: str) -> None:
    found = read(HEADER + f"100,canary,a,10,{cell}\n" + GOOD)
    assert found.samples[0].values == {"requests": 10.0}
    assert [item.severity for item in found.diagnostics] == [Severity.WARNING]  # the same replica and time


def test_empty_lines_and_quotes_are_csv() -> None:
    found = read(HEADER + '\n"100",canary,"a, b",10,1\n\n100,control,b,20,2\n')
    assert [sample.replica for sample in found.samples] == ["a, b", "b"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["CAN001 metrics.csv:1:1"] * 4),
        ("time,group,requests\n", ["CAN001 metrics.csv:1:1"]),
        ("time,group,replica\n", ["CAN001 metrics.csv:1:1"]),
        ("time,group,replica,requests,requests,\n", ["CAN002 metrics.csv:1:29", "CAN002 metrics.csv:1:38"]),
        (HEADER + "100,canary,a,10\n", ["CAN003 metrics.csv:2:1"]),
        (HEADER + '100,canary,"a,10,1\n', ["CAN003 metrics.csv:2:1"]),
        (HEADER + "soon,canary,a,10,1\n", ["CAN004 metrics.csv:2:1"]),
        (HEADER + "nan,canary,a,10,1\n", ["CAN004 metrics.csv:2:1"]),
        (HEADER + "1767225600000,canary,a,10,1\n", ["CAN004 metrics.csv:2:1"]),
        (HEADER + "100,canary,a,1e16,1e308\n", ["CAN007 metrics.csv:2:14", "CAN007 metrics.csv:2:19"]),
        (HEADER + "100,canaries,a,10,1\n", ["CAN005 metrics.csv:2:5"]),
        (HEADER + "100,canary, ,10,1\n", ["CAN006 metrics.csv:2:12"]),
        (HEADER + "100,canary,a,ten,-1\n", ["CAN007 metrics.csv:2:14", "CAN007 metrics.csv:2:18"]),
        (HEADER + '100,canary,"a, b",1_0,inf\n', ["CAN007 metrics.csv:2:19", "CAN007 metrics.csv:2:23"]),
        (HEADER + "soon,x,,10,1\n", [f"CAN00{n} metrics.csv:2:{at}" for n, at in ((4, 1), (5, 6), (6, 8))]),
        (HEADER, ["CAN008 metrics.csv", "CAN008 metrics.csv"]),
        (HEADER + "100,canary,a,10,1\n", ["CAN008 metrics.csv"]),
        (HEADER + GOOD + "100,canary,a,11,1\n", ["CAN008 metrics.csv"]),
    ],
)
def test_every_problem_has_its_place(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


def gauge(replica: str, group: str) -> str:
    """Requests per second instead of requests."""
    return "".join(f"{100 + 15 * n},{group},{replica},{20 + n % 3},{n}\n" for n in range(30))


def test_a_rate_is_not_a_counter() -> None:
    text = HEADER + gauge("a", "canary") + gauge("b", "control")
    assert problems(text) == ["CAN014 metrics.csv:5"]
    assert "requests" in read(text).diagnostics[0].what


def test_a_replica_that_restarts_all_the_time_is_not_a_mistake_of_the_file() -> None:
    steady = "".join(
        f"{100 + 15 * n},control,{name},{20 * n},{n}\n" for n in range(30) for name in ("b", "c")
    )
    assert problems(HEADER + gauge("a", "canary") + steady) == []


def test_buckets_have_what_narrower_ones_have() -> None:
    header = "time,group,replica,latency_le_1,latency_le_0.1,latency_le_inf\n"
    cumulative = header + "100,canary,a,99,90,100\n100,control,b,999,,1000\n"
    assert problems(cumulative) == []
    assert problems(header + "100,canary,a,7,90,3\n100,control,b,1,1,1\n") == ["CAN015 metrics.csv:2:16"]


def test_milliseconds_are_named() -> None:
    [found] = read(HEADER + "1767225600000,canary,a,10,1\n").diagnostics
    assert "1,000" in (found.fix or "")


def test_a_row_that_occurs_twice_is_not_worth_a_warning() -> None:
    assert problems(HEADER + GOOD + GOOD) == []


def test_there_is_a_limit_to_what_is_listed() -> None:
    found = problems(HEADER + "x,canary,a,1,1\n" * 100_000)
    assert len(found) < 2000
    assert found[-1].startswith("CAN009")


@given(st.text(alphabet='time,groupcanaryl"\n\r0123456789-.eNa _', max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = read_recording("x.csv", text.splitlines(keepends=True))
    assert found.diagnostics or found.samples
    assert len(read_recording("x.csv", (HEADER + text).splitlines(keepends=True)).counters) == 2
