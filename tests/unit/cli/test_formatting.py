"""Times and tables, as people read them."""

from __future__ import annotations

import pytest

from lehr.cli.formatting import ago, seconds_of, span, when
from lehr.cli.terminal import table


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.25, "250ms"),
        (45.0, "45s"),
        (190.0, "3m10s"),
        (1900.0, "31m"),
        (3600.0, "1h"),
        (9000.0, "2h30m"),
        (100 * 3600.0, "4d4h"),
        (-5.0, "0s"),
    ],
)
def test_a_length_of_time_is_told_in_two_units_at_most(seconds: float, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("2d", 172_800.0)]
)
def test_a_length_of_time_is_understood(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "1y", "1h30", "-1s", "1 h", "nan"])
def test_what_is_no_length_of_time_is_refused(text: str) -> None:
    assert seconds_of(text) is None


def test_moments_are_told_from_now() -> None:
    assert ago(100.0, 100.4) == "just now"
    assert ago(40.0, 100.0) == "1m ago"
    assert when(160.0, 100.0) == "in 1m (1970-01-01T00:02:40Z)"
    assert when(90.0, 100.0) == "now"


def test_a_table_is_as_wide_as_the_terminal_and_cuts_its_last_column_alone() -> None:
    rows = [("a", "Waiting", "a very long message indeed"), ("bb", "Held", "short")]
    lines = table(["id", "status", "message"], rows, 30)
    assert lines == [
        "ID  STATUS   MESSAGE",
        "a   Waiting  a very long mess…",
        "bb  Held     short",
    ]
    assert max(map(len, lines)) <= 30


def test_a_table_that_nobody_looks_at_on_a_terminal_is_not_cut() -> None:
    assert table(["message"], [("x" * 500,)], None)[1] == "x" * 500


def test_a_terminal_obeys_nothing_that_stands_in_a_cell() -> None:
    [_title, line] = table(["id"], [("a\x1b[31mred\nb",)], None)
    assert line.isprintable()
