"""A secret that was read shows itself to nobody but the one who asks for it by name."""

from __future__ import annotations

import asyncio
import pickle

import msgspec
import pytest

from lehr.base.errors import StalledError
from lehr.model.secret import Secret
from lehr.sdk.secrets import HIDDEN, Hidden, NoSecrets, SecretValue
from tests.codes import raises

CANARY = "canary-4711"
VALUE = SecretValue(f"{CANARY}\n".encode())


def test_a_value_is_not_in_what_is_printed_formatted_or_encoded() -> None:
    shown = [repr(VALUE), str(VALUE), f"{VALUE}", f"{VALUE!r}", repr([VALUE]), repr({"a": VALUE})]
    shown.append(msgspec.json.encode(VALUE, enc_hook=repr).decode())
    assert not any(CANARY in text for text in shown)
    with pytest.raises(TypeError):
        msgspec.json.encode(VALUE)
    with pytest.raises(TypeError):
        pickle.dumps(VALUE)


def test_text_is_without_the_last_line_break_and_content_with_it() -> None:
    assert (VALUE.text(), VALUE.content()) == (CANARY, f"{CANARY}\n".encode())
    assert SecretValue(b"a\n\r\n").text() == "a\n"


@pytest.mark.parametrize("content", [b"canary-\xff", b"canary-\0"])
def test_what_is_no_text_is_refused_without_being_told(content: bytes) -> None:
    with pytest.raises(StalledError) as error:
        SecretValue(content).text()
    assert "canary" not in str(error.value)
    assert error.value.__cause__ is None


def test_values_compare_by_content_and_have_no_hash() -> None:
    assert SecretValue(b"a") == SecretValue(b"a")
    assert SecretValue(b"a") != SecretValue(b"b")
    assert SecretValue(b"a").equals(b"a")
    with pytest.raises(TypeError):
        hash(VALUE)


def test_output_is_shown_without_secrets() -> None:
    hidden = Hidden([VALUE, SecretValue(b"canary-4711-and-more")])
    assert hidden.shown(f"before {CANARY} after") == f"before {HIDDEN} after"
    assert hidden.shown("canary-4711-and-more") == HIDDEN
    assert len(hidden.blotted(CANARY.encode())) == len(CANARY)
    assert CANARY not in repr(hidden)


def test_very_short_secrets_are_not_hidden_because_that_would_tell_them() -> None:
    assert Hidden([SecretValue(b"a")]).shown("a banana") == "a banana"


def test_where_nobody_keeps_secrets_none_is_read() -> None:
    with raises("SDK105", StalledError, match="env:A"):
        asyncio.run(NoSecrets().read(Secret("env:A")))
