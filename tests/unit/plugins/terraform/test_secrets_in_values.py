"""Secrets of a value: where they are, and messages without them."""

import pytest

from lehr.plugins.terraform.provider import Diagnostic, Path, Severity
from lehr.plugins.terraform.values import secret_paths
from lehr.plugins.terraform.values.configured import configured
from lehr.plugins.terraform.values.redaction import HIDDEN, hidden, redacted
from tests.unit.plugins.terraform.blocks import BLOCK

VALUE = configured(
    BLOCK,
    {
        "name": "n",
        "password": "pass word",
        "servers": [{"token": "t0ken"}],
        "step": [{"port": 1, "key": "k1"}, {"port": 2}],
        "by_key": {"a": {"port": 3, "key": "k2"}},
        "only": {"port": 4, "key": "k3"},
    },
)[0]


def test_every_sensitive_attribute_is_found() -> None:
    assert secret_paths.sensitive_paths(BLOCK) == {
        ("password",),
        ("servers", "token"),
        ("rule", "key"),
        ("step", "key"),
        ("only", "key"),
        ("by_key", "key"),
    }
    assert secret_paths.write_only_paths(BLOCK) == {("servers", "token")}
    assert secret_paths.secret_texts(BLOCK, VALUE) == {"pass word", "t0ken", "k1", "k2", "k3"}


def test_a_value_without_its_secrets_shows_where_they_were() -> None:
    shown = secret_paths.without(BLOCK, VALUE, secret_paths.sensitive_paths(BLOCK), HIDDEN)
    assert shown["password"] == HIDDEN
    assert shown["servers"][0]["token"] == HIDDEN
    assert [one["key"] for one in shown["step"]] == [HIDDEN, None]
    assert shown["by_key"]["a"] == {"port": 3, "name": None, "id": None, "key": HIDDEN}
    assert shown["only"]["key"] == HIDDEN
    assert VALUE["password"] == "pass word"
    assert secret_paths.secret_texts(BLOCK, shown) == {HIDDEN}


@pytest.mark.parametrize(
    ("path", "secret"),
    [
        (("password",), True),
        (("step", 1, "key"), True),
        (("by_key", "key"), False),
        (("by_key", "key", "key"), True),
        (("only", "key"), True),
        (("servers",), False),
        (("labels", "password"), False),
        ((), False),
    ],
)
def test_keys_and_indexes_are_not_names(path: Path, secret: bool) -> None:
    assert secret_paths.is_within(path, BLOCK, secret_paths.sensitive_paths(BLOCK)) is secret


@pytest.mark.parametrize(
    "text",
    ["a%22%20b%5Cc", "a%22+b%5Cc", 'x "a\\" b\\\\c" y', 'a" b\\c'],
)
def test_a_secret_is_hidden_as_it_is_and_as_it_is_escaped(text: str) -> None:
    assert "b" not in hidden(text, ['a" b\\c']).replace(HIDDEN, "")


def test_each_line_of_a_long_secret_is_hidden() -> None:
    key = "-----BEGIN KEY-----\nMIIEpAIBAAKCAQEA\n-----END KEY-----"
    assert "MIIEpAIBAAKCAQEA" not in hidden("line 2: MIIEpAIBAAKCAQEA", [key])


def test_a_secret_of_few_characters_would_hide_all_texts() -> None:
    assert hidden("a new day", ["a", ""]) == "a new day"


def test_of_a_diagnostic_about_a_secret_only_the_summary_is_kept() -> None:
    about = Diagnostic(Severity.ERROR, "bad password", "must not begin with pass", ("password",))
    assert redacted(about, BLOCK, []) == Diagnostic(Severity.ERROR, "bad password", HIDDEN, ("password",))
    other = Diagnostic(Severity.ERROR, "with pass word", "and t0ken", ("name",))
    assert redacted(other, BLOCK, secret_paths.secret_texts(BLOCK, VALUE)) == Diagnostic(
        Severity.ERROR, f"with {HIDDEN}", f"and {HIDDEN}", ("name",)
    )
