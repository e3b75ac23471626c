"""Unified diffs: they turn one text into the other, whatever ends the lines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lehr.base import patches
from lehr.base.patches import NO_LINE_FEED, unified_diff

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d\r", "e\f", "\u2028"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


def applied(patch: list[str], text: str) -> str:
    """`text` with `patch`, as the program `patch` understands it."""
    old = re.findall(r"[^\n]*\n|[^\n]+", text)
    new: list[str] = []
    at = 0
    for number, line in enumerate(patch):
        if line.startswith("@@"):
            start, length = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+.* @@", line).groups()  # type: ignore[union-attr]
            begin = int(start) - (length != "0")
            new += old[at:begin]
            at = begin
            continue
        if line == NO_LINE_FEED:
            continue
        ended = patch[number + 1 : number + 2] != [NO_LINE_FEED]
        content = line[1:] + "\n" * ended
        if line[0] != "+":
            assert old[at] == content
            at += 1
        if line[0] != "-":
            new.append(content)
    return "".join([*new, *old[at:]])


@given(TEXTS, TEXTS, st.integers(0, 3))
def test_a_patch_turns_one_text_into_the_other(before: str, after: str, context: int) -> None:
    patch = list(unified_diff(before, after, context=context))
    assert applied(patch, before) == after
    assert bool(patch) == (before != after)


def test_of_very_many_lines_all_between_the_first_and_the_last_difference_are_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patches, "MOST_COMPARED", 3)
    assert list(unified_diff("a\nb\nc\nd\n", "a\nB\nc\nD\n", context=1)) == [
        *("@@ -1,4 +1,4 @@", " a", "-b", "-c", "-d", "+B", "+c", "+D")
    ]


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ("a\n", "a", ["-a", "+a", NO_LINE_FEED]),
        ("a", "a\n", ["-a", NO_LINE_FEED, "+a"]),
        ("a\r\n", "a\n", ["-a\r", "+a"]),
        ("a\fb\n", "a\nb\n", ["-a\fb", "+a", "+b"]),
    ],
)
def test_a_difference_in_what_ends_a_line_shows(before: str, after: str, patch: list[str]) -> None:
    assert list(unified_diff(before, after))[1:] == patch
