"""Patches as they are shown: bounded, and without anything that a terminal would obey."""

from __future__ import annotations

import pytest

from lehr.cli import patch_text


def test_a_long_patch_is_cut_and_can_be_seen_whole() -> None:
    before, after = ("".join(f"{letter}{number}\n" for number in range(30)) for letter in "ab")
    shown = list(patch_text.patch(before, after, full=False))
    assert len(shown) == 41
    assert shown[-1] == "  21 more lines; see --full-diff"
    assert len(list(patch_text.patch(before, after, full=True))) == 61


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ("a\r\n", "a\n", ["-a\\r", "+a"]),
        ("a\r\r\n", "a\r\n", ["-a\\r\\r", "+a\\r"]),
        ("\ta\n", " a\n", ["-\ta", "+ a"]),
        ("a\n", "\x1b[2Ja\u202e\n", ["-a", "+\\x1b[2Ja\\u202e"]),
    ],
)
def test_characters_that_cannot_be_seen_show(before: str, after: str, shown: list[str]) -> None:
    assert list(patch_text.patch(before, after, full=False))[1:] == shown
