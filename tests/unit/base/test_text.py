"""Whatever a stranger says becomes text that can be written, stored and shown."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lehr.base.diagnostics import Diagnostic
from lehr.base.errors import LehrError, StalledError
from lehr.base.text import MOST_CHARACTERS, data_line, described, one_line, writable

HOSTILE = st.text(st.characters(codec=None, categories=None), max_size=60)


class Mute:
    """Fails to say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@given(HOSTILE)
def test_any_text_becomes_writable_and_stays_what_it_was_if_it_is(text: str) -> None:
    found = writable(text)
    assert found.encode().decode() == found
    assert "\0" not in found
    if "\0" not in text and text.isprintable():
        assert found == text
    assert writable(found) == found


@given(HOSTILE, HOSTILE, HOSTILE)
@example(what="\0", why="\ud800", fix="\0\ud800")
def test_every_error_and_every_diagnostic_can_be_written_down(what: str, why: str, fix: str) -> None:
    error = StalledError(what, why=why, fix=fix)
    assert str(error).encode().decode() == str(error)
    diagnostic = Diagnostic(code="X001", what=what, why=why, fix=fix, subject=what)
    written = msgspec.json.encode(diagnostic)
    assert msgspec.json.decode(written, type=Diagnostic) == diagnostic
    assert b"\\u0000" not in written


def test_a_byte_that_is_not_utf_8_is_shown_as_that_byte() -> None:
    assert writable(b"caf\xe9".decode(errors="surrogateescape")) == r"caf\xe9"
    assert writable("a\0b\ud800") == r"a\0b\ud800"


def test_what_is_huge_is_cut_and_says_so() -> None:
    found = LehrError("x" * 10_000_000).what
    assert len(found) < MOST_CHARACTERS + 50
    assert found.endswith("... (9,992,000 more characters)")


def test_what_cannot_say_itself_is_described() -> None:
    assert described(Mute()) == "a Mute that cannot be shown"
    assert LehrError(Mute()).what == "a Mute that cannot be shown"  # type: ignore[arg-type]


def test_what_is_quoted_on_one_line_has_no_empty_lines_and_nothing_that_a_terminal_obeys() -> None:
    assert one_line(" a \r\n\n\n\tb\x1b[2J\u2028c\x85d\u202ee ") == "a | b [2J | c | d e"
    assert one_line("\x1b\n \n") == ""


@given(HOSTILE)
def test_whatever_is_quoted_on_one_line_is_printable(text: str) -> None:
    assert one_line(text).isprintable()


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("plain", "plain"),
        ({"size": 8, "digest": "ab"}, "size 8, digest ab"),
        ({"size": [8]}, '{"size":[8]}'),
        ({}, "{}"),
        (None, "null"),
    ],
)
def test_data_is_shown_on_one_line(data: object, line: str) -> None:
    assert data_line(data) == line
