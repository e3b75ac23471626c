"""What answers mean, as pure functions."""

from __future__ import annotations

import pytest

from lehr.base.http_answer import Answer
from lehr.plugins.http_resource.answers import (
    UnknownOutcomeError,
    message_in,
    next_link,
    retry_after,
    strong_etag,
    write_error,
)
from lehr.sdk.secrets import NOTHING_HIDDEN

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("link", "url"),
    [
        ("", ""),
        ('<https://a/?page=2>; rel="next"', "https://a/?page=2"),
        ("</a?b=1,2>; rel=next", "/a?b=1,2"),
        ('<a>; rel="prev", <b>; title="x, y"; rel="next"', "b"),
        ('<a>; rel="prev next"', "a"),
        ('<a>; rel="nextish", <b>; rel=nexter', ""),
        ('<a>; title="rel=next"', ""),
        ("<a>; REL=Next", "a"),
        ("<" * 10_000, ""),
    ],
)
def test_the_next_page_is_linked_in_a_header(link: str, url: str) -> None:
    assert next_link(Answer(200, b"", {"link": link})) == url


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("30", 30),
        ("99999999999999", 600),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30),
        ("Tue, 14 Nov 2000 22:13:50 GMT", 0),
        ("Tue, 14 Nov 2050 22:13:50 GMT", 600),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("²", None),
    ],
)
def test_a_pause_is_bounded(text: str, seconds: int | None) -> None:
    at = retry_after(Answer(429, b"", {"retry-after": text}), NOW)
    assert at == (None if seconds is None else NOW + seconds)


@pytest.mark.parametrize(
    ("tag", "strong"), [('"a"', '"a"'), ('W/"a"', ""), ("a", ""), ('"a\nb"', ""), ('"' + "a" * 300 + '"', "")]
)
def test_weak_tags_are_not_used(tag: str, strong: str) -> None:
    assert strong_etag(Answer(200, b"", {"etag": tag})) == strong


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", ""),
        (b"no", "no"),
        (b'{"message": "no"}', "no"),
        (b'{"error": {"code": 7, "message": "no"}}', "no"),
        (b'{"error": {"code": 7}}', '{"error": {"code": 7}}'),
        (b'{"code": 7, "detail": "no"}', "no"),
        (b"\xff\x00\x1b[2J", "\ufffd  [2J"),
        (b"[" * 100_000, "[" * 200 + "..."),
    ],
)
def test_the_server_has_one_short_line(body: bytes, message: str) -> None:
    assert message_in(Answer(400, body), NOTHING_HIDDEN) == message


@pytest.mark.parametrize(
    ("status", "again", "unknown"),
    [(500, True, True), (504, True, True), (503, True, False), (503, False, True), (429, False, False)],
)
def test_what_may_have_been_carried_out_is_unknown(status: int, again: bool, unknown: bool) -> None:
    error = write_error(Answer(status, b""), "https://a", "created", NOTHING_HIDDEN, NOW, again=again)
    assert isinstance(error, UnknownOutcomeError) is unknown
