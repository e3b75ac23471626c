"""The corpus of canaries: it can be repeated, and its recordings are judged by what is true of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.canary.corpus import RECORDED, SHAPES, SMALL, recorded, recording
from benchmarks.canary.rank_judge import rank_judge
from lehr.canary import Judge, Judgement, Look, Outcome, looks_of
from lehr.canary.recording import read_recording

FILES = dict(recorded())
UNDECIDED = {"low-traffic-bad"}
"""Too few events for a verdict within a quarter of an hour."""


def looks(name: str, lines: list[str]) -> list[Look]:
    read = read_recording(name, lines)
    assert read.diagnostics == ()
    judge = Judge()
    return list(looks_of(read.samples, 60, judge.warmup_seconds, judge.longest_gap_seconds))


def test_all_recordings_are_checked_in() -> None:
    assert set(RECORDED.iterdir()) == set(FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_is_judged_by_what_is_true(file: Path) -> None:
    text = file.read_text()
    assert text == FILES[file], "write it again: python -m benchmarks.canary.corpus"
    judgement = Judgement(Judge(), ["requests", "errors"])
    outcomes = [judgement.add(look) for look in looks(file.name, text.splitlines())]
    variant = file.stem.rpartition("-")[2]
    if variant == "good":
        assert Outcome.FAIL not in outcomes
    elif variant == "unknown":
        assert set(outcomes) == {Outcome.INCONCLUSIVE}
    else:
        assert Outcome.PASS not in outcomes
        assert (outcomes[-1] is Outcome.FAIL) == (file.stem not in UNDECIDED)


def test_another_seed_gives_other_rows() -> None:
    first, second = (list(recording(SHAPES[0], "good", SMALL, seed)) for seed in (0, 1))
    assert first != second
    assert first[0] == second[0]
    assert len(first) == len(second)


def test_the_rank_judge_finds_what_is_doubled_and_passes_what_is_not() -> None:
    bad = looks("bad", list(recording(SHAPES[0], "bad", SMALL, 0)))
    good = looks("good", list(recording(SHAPES[0], "good", SMALL, 0)))
    assert rank_judge(bad, every=15) is Outcome.FAIL
    assert rank_judge(good, every=15) is Outcome.PASS
    assert rank_judge([]) is Outcome.INCONCLUSIVE
