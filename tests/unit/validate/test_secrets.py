"""Intent holds no secrets."""

from __future__ import annotations

import base64
import random
import string
from typing import Any

import pytest

from lehr.base.diagnostics import Diagnostic
from lehr.sdk.validator import Limits, NotSecret
from tests.unit.validate.proposing import check, missing, note

# Put together here, so that nobody's scanner takes this file for one that holds secrets.
RANDOM = "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=40))
DIGITS = "".join(random.Random(8).choices(string.ascii_uppercase + string.digits, k=40))
KEY = "-----BEGIN {}-----\n" + RANDOM + "\n-----END {}-----\n"


def held(key: str, value: Any, limits: Limits | None = None) -> list[Diagnostic]:
    return check([], [note("n", nested={key: value})], limits)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (KEY.format("RSA PRIVATE KEY", "RSA PRIVATE KEY"), "a private key"),
        (KEY.format("PRIVATE KEY", "PRIVATE KEY"), "a private key"),
        ("AK" + "IA" + DIGITS[:16], "an AWS access key"),
        ("gh" + "p_" + RANDOM[:36], "a GitHub token"),
        ("github" + "_pat_" + RANDOM[:30], "a GitHub token"),
        ("gl" + "pat-" + RANDOM[:20], "a GitLab token"),
        ("xo" + "xb-1234567890-" + RANDOM[:24], "a Slack token"),
        ("https://hooks.slack" + ".com/services/T0001/B0001/" + RANDOM[:24], "a Slack webhook"),
        ("sk" + "_live_" + RANDOM[:24], "a Stripe key"),
        ("AGE-SECRET" + "-KEY-1" + (DIGITS * 2)[:58], "an age private key"),
        ("ey" + "J" + RANDOM[:20] + ".ey" + "J" + RANDOM[:20] + "." + RANDOM[:20], "a JSON web token"),
        ("postgresql://app:hunter2" + "@db.shop.example/shop", "a URL with a password"),
        (RANDOM, "a random token"),
        ("key = " + RANDOM + "\nother = 1\n", "a random token"),
    ],
)
def test_a_secret_is_known_by_its_form_and_never_told(value: str, what: str) -> None:
    (found,) = held("text", value)
    assert (found.code, found.confidential) == ("VAL041", True)
    assert not missing(found, "`/payload/nested/text`", "`n`", what)
    assert not any(part in str(found) for part in value.split() if len(part) > 8)


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY"])
def test_a_private_key_in_base64_is_known_in_a_field_that_holds_base64(kind: str) -> None:
    (found,) = held("content_base64", base64.b64encode(KEY.format(kind, kind).encode()).decode())
    assert not missing(found, "a private key in base64")
    assert held("content_base64", base64.b64encode(KEY.format("CERTIFICATE", "").encode()).decode()) == []


@pytest.mark.parametrize(
    "key", ["password", "DB_PASSWORD", "adminPasswd", "passphrase", "smtp-pwd", "passwords"]
)
def test_a_password_is_known_by_the_name_of_its_field(key: str) -> None:
    for value in ("hunter2", ["hunter2"]):
        assert [item.what.rpartition(" ")[2] for item in held(key, value)] == ["password"]


@pytest.mark.parametrize("key", ["token", "api_key", "clientSecret", "AWS_SECRET_ACCESS_KEY", "credentials"])
def test_a_key_is_known_by_its_field_and_that_it_is_no_name(key: str) -> None:
    assert len(held(key, "0f3a9c" * 5)) == 1
    assert held(key, "tokens-of-the-shop") == []
    assert held(key, "web/database") == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", ""),
        ("password", None),
        ("password", "env:DB_PASSWORD"),
        ("password", "${DB_PASSWORD}"),
        ("password", "{{ password }}"),
        ("password", "/run/secrets/password"),
        ("password_file", "secrets/password.txt"),
        ("token", "file:secrets/token-000111222333444"),
        ("commit", "0123456789abcdef" * 2 + "01234567"),
        ("image", "registry.shop.example/web@sha256:" + "ab" * 32),
        ("id", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
        ("url", "postgresql://app@db.shop.example:5432/shop"),
        ("url", "http://[::1]:8080/a@b"),
        ("text", "/var/lib/Shop/Configuration2/Frontend9/Templates/Main7/index.html"),
        ("text", "ShakespeareFrontendProcessConfiguration2"),
        ("text", "Shop_Frontend_Configuration_Root_Zone_QX9_G2"),
        ("text", "all work and no play makes jack a dull boy " * 20),
        ("text", KEY.format("CERTIFICATE", "CERTIFICATE")),
        ("text", "ssh-ed25519 " + RANDOM + RANDOM),
        ("integrity", "sha512-" + RANDOM + RANDOM + "=="),
        ("text", "integrity sha384-" + RANDOM + "=="),
        ("content_base64", RANDOM),
    ],
)
def test_what_only_names_or_checks_something_is_no_secret(key: str, value: Any) -> None:
    assert held(key, value) == []


def test_the_workspace_says_what_only_looks_like_a_secret() -> None:
    allowed = Limits(not_secret=(NotSecret("n*", "/payload/nested/*", "an example"),))
    assert held("text", RANDOM, allowed) == []
    other = Limits(not_secret=(NotSecret("n", "/payload/other", "an example"),))
    assert len(held("text", RANDOM, other)) == 1
