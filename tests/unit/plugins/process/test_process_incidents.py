"""What people are told of replicas that crashed and run again."""

from __future__ import annotations

import pytest

from lehr.plugins.process.incidents import WINDOW, notes, outputs
from lehr.plugins.process.observation import Observation, Program, State

NOW = 1_800_000_000.0


def told(*restarts: float, ended: str = "terminated by SIGKILL", now: float = NOW) -> tuple[str, ...]:
    program = Program(group="g", index=0, state=State.RUNNING, restarts=restarts, ended=ended)
    return notes(Observation((program,)), now)


@pytest.mark.parametrize(
    ("ended", "how"),
    [
        ("terminated by SIGKILL", "was killed by SIGKILL"),
        ("exit status 3", "ended with exit status 3"),
        ("", "ended"),
    ],
)
def test_one_crash_is_told_with_its_cause_and_time(ended: str, how: str) -> None:
    [line] = told(NOW - 5, ended=ended)
    assert line == f"replica 0 {how}, restarted by supervisord at 2027-01-15T07:59:55Z"


def test_crashes_are_counted_since_the_first_of_them() -> None:
    [line] = told(NOW - 2000, NOW - 60, NOW - 5)
    assert line.endswith("at 2027-01-15T07:59:55Z (2 restarts since 2027-01-15T07:59:00Z)")


def test_the_words_change_only_with_a_new_crash() -> None:
    assert told(NOW - 60, NOW - 5) == told(NOW - 60, NOW - 5, now=NOW + WINDOW - 6)
    assert told(NOW - 60, NOW - 5, now=NOW + WINDOW) == ()


@pytest.mark.parametrize(("count", "least"), [(6, 5), (12, 10), (51, 50)])
def test_a_crash_loop_changes_its_words_ever_less_often(count: int, least: int) -> None:
    [line] = told(*(NOW - count + item for item in range(count)))
    assert line.startswith("replica 0 is in a crash loop")
    assert "SIGKILL" in line
    assert f" {least} times" in line


def test_restarts_are_counted_and_crash_loops_named_as_outputs() -> None:
    def program(index: int, count: int, ago: float) -> Program:
        restarts = tuple(NOW - ago - item for item in reversed(range(count)))
        return Program(group="g", index=index, state=State.RUNNING, restarts=restarts, restarted=count)

    programs = (program(0, 0, 0), program(1, 5, 1), program(2, 6, 1), program(3, 9, WINDOW))
    assert outputs(Observation(programs), NOW) == {"restarts": 20, "crash_loops": [2]}


def test_of_many_replicas_a_few_are_told() -> None:
    programs = (Program(group="g", index=item, state=State.RUNNING, restarts=(NOW,)) for item in range(9))
    lines = notes(Observation(tuple(programs)), NOW)
    assert len(lines) == 4
    assert lines[-1] == "6 more replicas were restarted"
