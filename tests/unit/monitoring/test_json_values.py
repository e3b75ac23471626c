"""Values in JSON documents, by pointer and by CEL."""

from typing import Any

import pytest

from lehr.model.monitoring import Cause, MetricError, Question, Sample
from lehr.monitoring.json_values import samples_in

DOCUMENT = b"""{"rate": 0.5, "time": 1800000000, "when": "2027-01-15T08:00:00Z", "a/b": {"x": 1, "y": 2},
"list": [1, 2], "text": "5", "services": [{"name": "shop", "errors": 3}, {"name": "mail", "errors": 9}]}"""


def found(value: str, at: str = "", content: bytes = DOCUMENT) -> list[Sample]:
    return samples_in(content, Question("status", value=value, at=at, at_most=1.0))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/rate", [Sample(0.5)]),
        ("/list/1", [Sample(2)]),
        ("/list", [Sample(1, "0"), Sample(2, "1")]),
        ("/a~1b", [Sample(1, "x"), Sample(2, "y")]),
        ("/text", [Sample("5")]),
        ("answer.rate * 2.0", [Sample(1.0)]),
        ("answer.services.filter(s, s.name == 'shop').map(s, s.errors)", [Sample(3, "0")]),
        ("answer.text == '5'", [Sample(True)]),
    ],
)
def test_a_value_is_found(value: str, expected: list[Sample]) -> None:
    assert found(value) == expected


def test_a_document_may_be_the_value() -> None:
    assert found("", content=b"0.25") == [Sample(0.25)]


@pytest.mark.parametrize("at", ["/time", "/when", "answer.time"])
def test_the_time_of_the_value_is_found(at: str) -> None:
    assert found("/rate", at) == [Sample(0.5, "", 1_800_000_000.0)]


@pytest.mark.parametrize(
    ("value", "at", "content", "cause"),
    [
        ("/rate", "", b"", Cause.UNREADABLE),
        ("/rate", "", b"NaN", Cause.UNREADABLE),
        ("/rate", "", b'{"rate": NaN}', Cause.UNREADABLE),
        ("/rate", "", b"[" * 100_000, Cause.UNREADABLE),
        ("/none", "", DOCUMENT, Cause.NO_DATA),
        ("/list/2", "", DOCUMENT, Cause.NO_DATA),
        ("/list/-", "", DOCUMENT, Cause.NO_DATA),
        ("/rate/deeper", "", DOCUMENT, Cause.NO_DATA),
        ("answer.none", "", DOCUMENT, Cause.NO_DATA),
        ("answer.rate / 0.0 > 1 && answer.x", "", DOCUMENT, Cause.NO_DATA),
        ("/rate", "/none", DOCUMENT, Cause.NO_DATA),
        ("/rate", "/text", DOCUMENT, Cause.UNREADABLE),
        ("/rate", "/list", DOCUMENT, Cause.UNREADABLE),
        ("/rate", "answer.rate > 0.0", DOCUMENT, Cause.UNREADABLE),
    ],
)
def test_what_is_not_there_has_a_cause(value: str, at: str, content: bytes, cause: Cause) -> None:
    with pytest.raises(MetricError) as raised:
        found(value, at, content)
    assert raised.value.cause is cause


@pytest.mark.parametrize("value", ["", "/list", "/a~1b"])
def test_an_empty_list_has_no_values(value: str) -> None:
    content: Any = {"": b"[]", "/list": b'{"list": []}', "/a~1b": b'{"a/b": {}}'}[value]
    assert found(value, content=content) == []
