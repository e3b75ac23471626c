"""Rules for a text file of any format: encoding, size, characters; and shared limits."""

from __future__ import annotations

import math
import re

from lehr.base.diagnostics import Diagnostic, Position, file_problem
from lehr.base.documents.document import Lines, end_of

MAX_BYTES = 10_000_000
"""Size of the largest file that is loaded."""

MAX_DEPTH = 64
"""Lists and mappings inside each other."""

MAX_PROBLEMS = 1_000
"""Problems of one file that are reported."""

_LEAST, _GREATEST = -(2**63), 2**64 - 1
_MAX_DIGITS = 80  # more than 64 bits have in any base, with a sign and a prefix

_PLAIN_ASCII = bytes([*b"\t\n\r", *range(0x20, 0x7F)])
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
"""Compiled when it is first needed, which takes 4 ms: most files are plain ASCII."""
_SEPARATOR = re.compile("[\x85\u2028\u2029]")
_LONE_RETURN = re.compile(rb"\r(?!\n)")
_SHOWN = 60  # characters of quoted input, in a message
_BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "UTF-8",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def text_problem(file: str, content: bytes) -> Diagnostic | None:
    """Why `content` cannot be read as text, whatever the format; None when it can."""
    if len(content) > MAX_BYTES:
        return file_problem(
            "DOC001",
            Position(file),
            what=f"the file has {len(content):,} bytes, more than {MAX_BYTES:,}",
            why="files of intent are read as a whole, also by reviewers",
            fix="split it, or let a generator read it as plain bytes",
        )
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return file_problem(
                "DOC002",
                Position(file, 1, 1),
                what=f"the file starts with a byte order mark of {encoding}",
                why="files are read as UTF-8 without a mark",
                fix="save it as UTF-8 without a byte order mark",
            )
    problem = None if not content.translate(None, _PLAIN_ASCII) else _character_problem(file, content)
    return problem or _return_problem(file, content)


def _character_problem(file: str, content: bytes) -> Diagnostic | None:
    try:
        text = content.decode()
    except UnicodeDecodeError as err:
        before = content[: err.start].decode()
        return file_problem(
            "DOC002",
            end_of(file, before),
            what=f"the file is not UTF-8: byte 0x{content[err.start]:02x} does not belong there",
            why="it is binary, or text in another encoding",
            fix="save it as UTF-8",
        )
    found = re.search(_FORBIDDEN, text)
    if found is None:
        return None
    return file_problem(
        "DOC003",
        Lines(file, text).at(found.start()),
        what=f"the file has a control character, U+{ord(found.group()):04X}",
        why="it is invisible, and the file may be binary",
        fix="delete it; in a quoted string, write it as an escape",
    )


def _return_problem(file: str, content: bytes) -> Diagnostic | None:
    """A carriage return on its own: YAML ends a line there, JSON and TOML and most editors do not."""
    found = _LONE_RETURN.search(content) if b"\r" in content else None
    if found is None:
        return None
    before = content[: found.start()].decode()
    return file_problem(
        "DOC003",
        end_of(file, before),
        what="the file has a carriage return, U+000D, without a line feed after it",
        why="formats and editors disagree on whether it ends a line",
        fix="save it with LF or CR LF line endings",
    )


def separator_problem(file: str, content: bytes) -> Diagnostic | None:
    """Line separators of Unicode, which YAML 1.1 (and so libyaml) folds and YAML 1.2 keeps."""
    if content.isascii():
        return None
    text = content.decode()
    found = _SEPARATOR.search(text)
    if found is None:
        return None
    return file_problem(
        "DOC003",
        Lines(file, text).at(found.start()),
        what=f"the file has a line separator, U+{ord(found.group()):04X}",
        why="versions of YAML disagree on whether it ends a line",
        fix="delete it; in a double-quoted string, write it as an escape",
    )


def bounded(file: str, diagnostics: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """At most `MAX_PROBLEMS` of them, and a note that there are more."""
    if len(diagnostics) <= MAX_PROBLEMS:
        return tuple(diagnostics)
    more = Diagnostic(
        code="DOC014",
        what=f"the file has more than {MAX_PROBLEMS:,} problems",
        why="the others are not shown",
        fix="fix those shown first",
        subject=file,
        at=diagnostics[MAX_PROBLEMS].at,
    )
    return (*diagnostics[:MAX_PROBLEMS], more)


def number_problem(number: float) -> str | None:
    """Why no program may be handed `number`; None when all is well."""
    if isinstance(number, int):
        return None if _LEAST <= number <= _GREATEST else "it does not fit into 64 bits"
    return None if math.isfinite(number) else "it is not a finite number"


def integer(text: str, base: int = 10) -> int | None:
    """The integer that `text` spells; None when it does not fit into 64 bits.

    Long texts are not converted at all: that would take time quadratic in their length.
    """
    if len(text) > _MAX_DIGITS:
        return None
    number = int(text, base)
    return number if number_problem(number) is None else None


def shown(text: str) -> str:
    """`text`, shortened for a message."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def bad_number(text: str, at: Position) -> Diagnostic:
    """The diagnostic for a number that cannot be handed on."""
    return file_problem(
        "DOC011",
        at,
        what=f"the number {shown(text)} cannot be used",
        why="numbers must be finite, and integers must fit into 64 bits",
        fix="write another number, or quote it to make it a string",
    )


def too_deep(at: Position) -> Diagnostic:
    """The diagnostic for lists and mappings nested too deeply."""
    return file_problem(
        "DOC007",
        at,
        what=f"more than {MAX_DEPTH} lists and mappings are nested",
        why="nesting is limited, so that no file can exhaust the program that reads it",
        fix="reduce the nesting",
    )


def duplicate_key(key: str, first_line: int, at: Position) -> Diagnostic:
    """The diagnostic for a key that a mapping has twice."""
    return file_problem(
        "DOC005",
        at,
        what=f"the key {shown(repr(key))} occurs again in this mapping",
        why=f"it first occurs in line {first_line}, and one of the two would be lost",
        fix="delete or rename one of them",
    )


def syntax_error(format: str, problem: str, at: Position, *, why: str = "") -> Diagnostic:
    """The diagnostic for text that does not follow the format's grammar."""
    return file_problem(
        "DOC004",
        at,
        what=f"not valid {format}: {problem}",
        why=why,
        fix="fix the syntax here or just before",
    )
