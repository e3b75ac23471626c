"""Secrets in texts that a plan would show."""

from __future__ import annotations

import pytest

from lehr.dry_run.revealed import revealed_secret


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\n", "a private key"),
        ("hook xoxb-1234567890\n", "a Slack token"),
        ("bind 127.0.0.1\nrequirepass hunter2\n", "a password"),
        ("bind 127.0.0.1\r\n  masterauth hunter2\r\n", "a password"),
        ("smtp_password hunter2;\n", "a password"),
        ("PGPASSWORD=x\n", "a password"),
    ],
)
def test_short_secrets_and_directives_are_found(text: str, kind: str) -> None:
    assert revealed_secret("content", text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "proxy_pass http://127.0.0.1:8080;\n",
        "ssl_password_file /etc/keys/global.pass;\n",
        "Enter your password to continue.\n",
        "password\n",
        "password\nnext line\n",
    ],
)
def test_names_and_prose_are_shown(text: str) -> None:
    assert revealed_secret("content", text) is None
