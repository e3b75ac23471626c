"""Rules of the payload of `lehr.Command`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from lehr.plugins.command.payload import Command, arguments
from lehr.plugins.processes import MOST_OUTPUT, Excerpt


def load(**fields: Any) -> Command:
    return msgspec.convert({"check": "true", "apply": "true", **fields}, Command)


def test_text_is_for_the_shell_and_a_list_is_not() -> None:
    command = load(check="a | b", apply=["a", "| b"])
    assert arguments(command.check) == ("/bin/sh", "-c", "a | b")
    assert arguments(command.apply) == ("a", "| b")


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"check": ""}, "length >= 1"),
        ({"check": []}, "length >= 1"),
        ({"apply": [""]}, "no program"),
        ({"apply": ["a\0"]}, "NUL"),
        ({"apply": "a\0"}, "NUL"),
        ({"remove": ["", "a"]}, "no program"),
        ({"directory": "a\0"}, "NUL"),
        ({"environment": {"A=B": ""}}, "A=B"),
        ({"environment": {"1A": ""}}, "1A"),
        ({"environment": {"": ""}}, "''"),
        ({"environment": {"LEHR_ASSET": "x"}}, "LEHR_ASSET"),
        ({"environment": {"A": "\0"}}, "NUL character.* A"),
        ({"timeout_seconds": 0}, "> 0"),
        ({"timeout_seconds": 3601}, "<= 3600"),
        ({"check_timeout_seconds": 301}, "<= 300"),
        ({"applies": "true"}, "applies"),
    ],
    ids=repr,
)
def test_what_cannot_be_run_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=problem):
        load(**fields)


def test_a_short_stream_is_kept_whole() -> None:
    excerpt = Excerpt()
    for chunk in (b"one\n", b"", b"two\n"):
        excerpt.add(chunk)
    assert excerpt.first() == excerpt.last() == "one | two"


def test_of_a_long_stream_both_ends_are_kept() -> None:
    excerpt = Excerpt()
    for number in range(10_000):
        excerpt.add(b"%d\n" % number)
    assert excerpt.first().startswith("0 | 1 | 2 | ")
    assert excerpt.first().endswith(" ...")
    assert excerpt.last().startswith("... ")
    assert excerpt.last().endswith(" | 9998 | 9999")
    assert len(excerpt.first()) < 2 * MOST_OUTPUT


def test_the_payload_does_not_import_its_plugin() -> None:
    code = (
        "import sys, lehr.plugins.command.payload\n"
        "assert not {'asyncio', 'subprocess', 'lehr.plugins.command.plugin'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
