"""What holds for files of every format."""

from __future__ import annotations

import pytest

from lehr.base.diagnostics import Position
from lehr.base.documents import MAX_BYTES, SUFFIXES, load

every_format = pytest.mark.parametrize("suffix", sorted(SUFFIXES))


def only(path: str, content: bytes) -> tuple[str, Position | None]:
    documents = load(path, content)
    assert documents.documents == ()
    (item,) = documents.diagnostics
    assert item.what
    assert item.why
    assert item.fix
    return item.code, item.at


@every_format
@pytest.mark.parametrize(
    ("content", "code", "line", "column"),
    [
        (b"a: 1\nb: \xff\n", "DOC002", 2, 4),
        ("ä: 1\nü: ".encode() + b"\xe4\n", "DOC002", 2, 4),
        ("ä\nüü".encode("latin-1"), "DOC002", 1, 1),
        ("a: 1".encode("utf-16"), "DOC002", 1, 1),
        (b"\xef\xbb\xbfa: 1", "DOC002", 1, 1),
        (b"a: 1\nb: \0\n", "DOC003", 2, 4),
        (b"a: 1\nb: x\x1b[31m\n", "DOC003", 2, 5),
        (b"a: \x7f\n", "DOC003", 1, 4),
        ("a: \u009b\n".encode(), "DOC003", 1, 4),
        ("ü: 1\n\ufeffb: 2".encode(), "DOC003", 2, 1),
        ("ü: 1\r\nü: 2\rb: 3\r\n".encode(), "DOC003", 2, 5),
    ],
)
def test_what_is_not_text_is_refused_with_line_and_column(
    suffix: str, content: bytes, code: str, line: int, column: int
) -> None:
    path = "a" + suffix
    assert only(path, content) == (code, Position(path, line, column))


@every_format
def test_huge_files_are_refused_unread(suffix: str) -> None:
    path = "a" + suffix
    assert only(path, b"[" * (MAX_BYTES + 1)) == ("DOC001", Position(path))


@pytest.mark.parametrize("path", ["a", "a.txt", "yaml", ".yaml", "a.yaml.orig"])
def test_a_name_that_does_not_say_the_format_is_refused(path: str) -> None:
    assert only(path, b"a: 1") == ("DOC013", Position(path))


def test_text_in_any_script_is_fine() -> None:
    assert load("a.yaml", "größe: 名前 😀\n".encode()).documents[0].value == {"größe": "名前 😀"}
    assert load("a.YML", b"a: 1").documents[0].value == {"a": 1}


LONG = "k" * 100_000


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.yaml", f"'{LONG}': 1\n\n'{LONG}': 2"),
        ("a.yaml", f"? [{LONG}]\n: 1"),
        ("a.yaml", f"*{LONG} : 1"),
        ("a.yaml", f"a: &{LONG} [*{LONG}]"),
        ("a.yaml", f"!{LONG} a"),
        ("a.yaml", f"!<tag:yaml.org,2002:{LONG}> a"),
        ("a.yaml", "9" * 100_000),
        ("a.json", f'{{"{LONG}": 1, "{LONG}": 2}}'),
        ("a.json", f'{{"a": {"9" * 100_000}}}'),
        ("a.toml", f"{LONG} = 1\n{LONG} = 2"),
        ("a.toml", f"a = {LONG}"),
    ],
)
def test_a_message_is_short_whatever_it_is_about(path: str, text: str) -> None:
    problems = load(path, text.encode()).diagnostics
    assert problems
    assert all(len(item.what) + len(item.why) + len(item.fix) < 400 for item in problems)


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_the_number_of_reported_problems_is_bounded(suffix: str) -> None:
    documents = load("a" + suffix, b"{" + b'"a": 1, ' * 2_000 + b'"a": 1}')
    codes = [item.code for item in documents.diagnostics]
    assert codes == ["DOC005"] * 1_000 + ["DOC014"]
    assert documents.documents == ()
