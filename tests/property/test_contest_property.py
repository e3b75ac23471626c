"""However fast something undoes pushes, it is pushed against ever more slowly, and never given up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lehr.base.digest import digest
from lehr.enforce.contest import ANY_DIFF, LONGEST_DELAY, NO_CONTEST, WINDOW

CONTENTS = (digest("one content"), digest("another"))
DIFFS = tuple(digest(f"diff {number}") for number in range(3))

undone = st.tuples(st.floats(0, 200), st.integers(0, 2), st.floats(0, 1))
"""Seconds until a repair is undone, by which diff, and the jitter of the next one."""


@given(st.lists(undone, min_size=1, max_size=80))
def test_pushes_of_one_content_within_a_window_are_few(course: list[tuple[float, int, float]]) -> None:
    contest, now, repairs = NO_CONTEST, 0.0, []
    for seconds, diff, jitter in course:
        now += seconds
        wait = contest.wait(CONTENTS[0], now)
        assert 0 <= wait <= LONGEST_DELAY
        now += wait
        assert not contest.wait(CONTENTS[0], now)
        contest = contest.verified(CONTENTS[0], DIFFS[diff], now, jitter)
        repairs.append(now)
        assert sum(at > now - WINDOW for at in repairs) <= 2 * ANY_DIFF


@given(st.lists(undone, max_size=20), undone)
def test_other_content_and_a_calm_window_never_wait(
    course: list[tuple[float, int, float]], last: tuple[float, int, float]
) -> None:
    contest, now = NO_CONTEST, 0.0
    for seconds, diff, jitter in course:
        now += seconds
        contest = contest.verified(CONTENTS[0], DIFFS[diff], now, jitter)
    assert not contest.wait(CONTENTS[1], now)
    calm = contest.verified(CONTENTS[0], DIFFS[last[1]], now + WINDOW + 1, last[2])
    assert not calm.wait(CONTENTS[0], now + WINDOW + 1)
