"""Rows of a database as a file: the same rows make the same bytes, and what is doubtful is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import random
import uuid
from typing import Any

import msgspec
import pytest

from lehr.base.documents import load
from lehr.base.errors import StalledError
from lehr.model.declared_sources import SqlPlace
from lehr.sdk.source import Rows
from lehr.sources.rows import document

PLACE = SqlPlace(sql="sqlite:a", query="SELECT", key=("name",))


def made(rows: Rows, place: SqlPlace = PLACE) -> list[dict[str, Any]]:
    content = document(rows, place)
    loaded = load("rows.json", content)
    assert not loaded.diagnostics
    [found] = loaded.documents
    assert isinstance(found.value, list)
    return found.value


def refused(rows: Rows, place: SqlPlace = PLACE) -> str:
    with pytest.raises(StalledError) as caught:
        document(rows, place)
    assert caught.value.fix
    return f"{caught.value.code}: {caught.value}"


def test_a_row_is_an_object_on_a_line_of_its_own() -> None:
    rows = Rows(("size", "name"), [(2, "b"), (None, "a")])
    assert document(rows, PLACE) == b'[\n{"name":"a","size":null},\n{"name":"b","size":2}\n]\n'


def test_the_order_in_which_rows_come_does_not_count() -> None:
    place = SqlPlace(sql="sqlite:a", query="SELECT", key=("name", "number"))
    values: list[tuple[Any, ...]] = [(f"n{i % 7}", i, i * i) for i in range(100)]
    columns = ("name", "number", "square")
    first = document(Rows(columns, values), place)
    for seed in range(5):
        shuffled = list(values)
        random.Random(seed).shuffle(shuffled)
        assert document(Rows(columns, shuffled), place) == first
    numbers = [row["number"] for row in made(Rows(columns, values), place) if row["name"] == "n0"]
    assert numbers == sorted(numbers)


def test_what_is_exact_stays_exact_and_times_and_bytes_are_text() -> None:
    moment = dt.datetime(2026, 11, 21, 1, 2, 3, tzinfo=dt.UTC)
    values = (
        "a",
        decimal.Decimal("1.50"),
        moment,
        moment.date(),
        uuid.UUID(int=7),
        b"\x00\xff",
        {"deep": [1, None, True]},
        2**63 - 1,
        0.5,
    )
    columns = ("name", "money", "at", "day", "id", "raw", "more", "large", "half")
    assert made(Rows(columns, [values])) == [
        {
            "name": "a",
            "money": "1.50",
            "at": "2026-11-21T01:02:03Z",
            "day": "2026-11-21",
            "id": "00000000-0000-0000-0000-000000000007",
            "raw": "AP8=",
            "more": {"deep": [1, None, True]},
            "large": 2**63 - 1,
            "half": 0.5,
        }
    ]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 2**64, {"a": [float("nan")]}, object(), complex(1, 2)]
)
def test_what_no_file_of_intent_can_hold_is_refused_by_the_name_of_its_column(value: object) -> None:
    assert "the column odd" in refused(Rows(("name", "odd"), [("a", value)]))


def test_two_rows_with_one_key_are_an_error_that_names_it() -> None:
    rows = Rows(("name", "size"), [("a", 1), ("b", 1), ("a", 2)])
    assert "name='a'" in refused(rows)


@pytest.mark.parametrize("value", [None, [1], {"a": 1}])
def test_a_key_is_a_plain_value(value: object) -> None:
    assert "SRC138" in refused(Rows(("name",), [(value,)]))


def test_columns_are_told_apart_and_keys_are_columns() -> None:
    assert "SRC135" in refused(Rows(("name", "name"), [("a", "b")]))
    assert "SRC136" in refused(Rows(("nam",), [("a",)]))


def test_no_row_is_an_error_unless_it_is_said_that_it_may_be() -> None:
    assert "SRC132" in refused(Rows(("name",), []))
    may = msgspec.structs.replace(PLACE, may_be_empty=True)
    assert document(Rows(("name",), []), may) == b"[\n]\n"


def test_too_much_is_refused() -> None:
    rows = Rows(("name", "text"), [(str(number), "x" * 100_000) for number in range(110)])
    assert "SRC134" in refused(rows)
