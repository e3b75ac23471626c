"""Judge files: what they mean, and what is wrong with them."""

from __future__ import annotations

import pytest

from lehr.canary import Judge, Metric
from lehr.cli.judge_file import JudgeFile, counter_problems, read_judge

COUNTERS = ["requests", "errors", "retries", "latency_le_0.25", "latency_le_1", "latency_le_inf"]

FULL = """\
alpha: 0.05
margin: 1.5
minimum_seconds: 600
metrics:
  - {name: errors, events: errors}
  - {name: slow, histogram: latency, above: 0.25, margin: 1.1}
  - {name: retries, events: retries, of: errors, worse: lower}
"""


def problems(text: str) -> list[str]:
    _, found = read_judge("judge.yaml", text.encode())
    return [f"{item.code} {item.at}" for item in found]


def against(text: str, counters: list[str]) -> list[str]:
    file, found = read_judge("judge.yaml", text.encode())
    assert file is not None, found
    return [f"{item.code} {item.at}" for item in counter_problems("metrics.csv", file, counters)]


def test_a_judge_file_is_a_judge() -> None:
    file, found = read_judge("judge.yaml", FULL.encode())
    assert found == []
    assert file is not None
    assert file.judge.alpha == 0.05
    assert file.judge.warmup_seconds == Judge().warmup_seconds
    assert file.judge.metrics[1] == Metric("slow", histogram="latency", above=0.25, margin=1.1)
    assert against(FULL, COUNTERS) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a", ["CAN010 judge.yaml"]),
        ("alpha: 2", ["CAN010 judge.yaml:1:1"]),
        ("alfa: 0.1\nmargin: small", ["CAN010 judge.yaml:1:1", "CAN010 judge.yaml:2:1"]),
        ("margin: 1", ["CAN010 judge.yaml:1:1"]),
        ("metrics: [{name: a}]", ["CAN010 judge.yaml:1:11"]),
        ("metrics: [{name: a, events: b, histogram: c}]", ["CAN010 judge.yaml:1:11"]),
        ("metrics: [{name: a, histogram: c}]", ["CAN010 judge.yaml:1:11"]),
        ("metrics: [{name: a, events: b, above: 1}]", ["CAN010 judge.yaml:1:11"]),
        ("metrics:\n- {name: a, events: b}\n- {name: a, events: c}", ["CAN010 judge.yaml:3:3"]),
        ("alpha: 0.1\nalpha: 0.2", ["DOC005 judge.yaml:2:1"]),
    ],
)
def test_every_problem_has_its_place(text: str, expected: list[str]) -> None:
    assert sorted(problems(text)) == expected


def test_a_counter_that_the_recording_does_not_have_is_refused() -> None:
    assert against("metrics: [{name: a, events: eror}]", COUNTERS) == ["CAN011 judge.yaml:1:11"]
    assert against("metrics: [{name: a, histogram: latency, above: 0.3}]", COUNTERS) == [
        "CAN011 judge.yaml:1:11"
    ]
    assert against("metrics: [{name: a, events: errors}]", ["errors"]) == ["CAN011 judge.yaml:1:11"]


def test_the_advice_names_what_exists() -> None:
    file, _ = read_judge("judge.yaml", b"metrics: [{name: a, histogram: latency, above: 0.3}]")
    assert file is not None
    [problem] = counter_problems("metrics.csv", file, COUNTERS)
    assert "0.25, 1" in problem.fix
    file, _ = read_judge("judge.yaml", b"metrics: [{name: a, events: eror}]")
    assert file is not None
    [problem] = counter_problems("metrics.csv", file, COUNTERS)
    assert "`errors`" in problem.fix


def test_counters_that_nothing_judges_are_a_warning() -> None:
    found = list(counter_problems("metrics.csv", JudgeFile(Judge()), COUNTERS))
    assert [item.code for item in found] == ["CAN013"]
    assert "retries" in found[0].what
    assert against(FULL, COUNTERS) == []


def test_a_recording_without_anything_to_judge_is_refused() -> None:
    found = list(counter_problems("metrics.csv", JudgeFile(Judge()), ["bytes"]))
    assert [item.code for item in found] == ["CAN012"]
