"""Rows of two sources beside each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lehr.store.sql.check.row_pairs import gathered, side_by_side

rows = st.dictionaries(st.text(max_size=3), st.integers(), max_size=8)


@given(rows, rows)
def test_every_key_comes_once_in_order_with_what_either_side_has(
    left: dict[str, int], right: dict[str, int]
) -> None:
    found = list(side_by_side(iter(sorted(left.items())), iter(sorted(right.items()))))
    expected = [
        (key, (key, left[key]) if key in left else None, (key, right[key]) if key in right else None)
        for key in sorted({*left, *right})
    ]
    assert found == expected


def test_rows_that_begin_alike_are_one() -> None:
    told = list(gathered(iter([("a", 1, 2), ("a", 3, 4), ("b", 5, 6)])))
    assert told == [("a", [(1, 2), (3, 4)]), ("b", [(5, 6)])]
