"""Entries of the audit trail name the commands that people gave."""

from __future__ import annotations

import pytest

from lehr.cli.main import SECTIONS
from lehr.model.control import AuditEntry


@pytest.mark.parametrize(
    ("command", "kind", "given"),
    [
        ("freeze", None, "freeze"),
        ("lift", "freeze", "unfreeze"),
        ("lift", "pause", "resume"),
        ("lift", "pin", "unpin"),
        ("lift", "approval", "revoke"),
        ("lift", "restart", "revoke"),
        ("refresh", None, "sync"),
        ("prune", None, "store prune"),
    ],
)
def test_a_request_is_named_like_its_command(command: str, kind: str | None, given: str) -> None:
    arguments = {"selector": "all"} | ({"kind": kind} if kind else {})
    assert AuditEntry(at=1.0, actor="ann", command=command, arguments=arguments, result="").given == given
    assert any(given.partition(" ")[0] in section for section in SECTIONS.values())
