"""Which of two versions is lower."""

from __future__ import annotations

import pytest

from lehr.base.versions import precedes


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        ("1", "2"),
        ("1.9", "1.10"),
        ("1", "1.0.1"),
        ("v1", "v2"),
        ("2.0rc1", "2.0"),
        ("2.0a", "2.0b"),
        ("0", "1"),
    ],
)
def test_a_lower_version_precedes_a_higher_one(lower: str, higher: str) -> None:
    assert precedes(lower, higher)
    assert not precedes(higher, lower)


@pytest.mark.parametrize(("one", "other"), [("1", "1"), ("1", "1.0"), ("v2", "2"), ("1.0.0", "1")])
def test_equal_versions_precede_neither(one: str, other: str) -> None:
    assert not precedes(one, other)
    assert not precedes(other, one)
