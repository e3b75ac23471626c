"""Diffs: what an approval is bound to."""

from __future__ import annotations

from lehr.model.diff import Change, Diff, bounded


def test_a_diff_of_very_many_changes_is_identified_by_those_that_it_does_not_show() -> None:
    changes = [Change(f"columns/{number}", None, "text") for number in range(150)]
    others = [*changes[:-1], Change("columns/last", None, "text")]
    one, other = bounded(changes, "more"), bounded(others, "more")
    assert one[:-1] == other[:-1] == tuple(changes[:100])
    assert one[-1].intended == other[-1].intended == "50 more changes"
    assert Diff(one).digest() != Diff(other).digest()
