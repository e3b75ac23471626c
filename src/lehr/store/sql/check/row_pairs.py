"""Merges two lists of rows ordered by their first column, in constant memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

Row = tuple[Any, ...]


def side_by_side(left: Iterator[Row], right: Iterator[Row]) -> Iterator[tuple[Any, Row | None, Row | None]]:
    """Every first column with its row on each side; None where a side has no row.

    No side has two rows with the same first column.
    """
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield one[0], one, None
            one = next(left, None)
        elif one is None or other[0] < one[0]:
            yield other[0], None, other
            other = next(right, None)
        else:
            yield one[0], one, other
            one, other = next(left, None), next(right, None)


def gathered(rows: Iterator[Row]) -> Iterator[tuple[Any, list[Row]]]:
    """Groups rows by their first column: that column, and the rest of each row."""
    for first, group in groupby(rows, itemgetter(0)):
        yield first, [tuple(row[1:]) for row in group]
