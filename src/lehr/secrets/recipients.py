"""The recipients of a workspace's secrets: `secrets/recipients.txt`, in the format of `age -R`.

# build server
age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
# Ada
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI... ada@example.org
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from lehr.base.diagnostics import Diagnostic, Position
from lehr.base.errors import LehrError, raised_as
from lehr.secrets import age

RECIPIENTS = "secrets/recipients.txt"
"""Path of the file in the workspace."""

_PRIVATE = "AGE-SECRET-KEY-"


class Recipient(NamedTuple):
    """A public key.

    Attributes:
        name: the comment on the line before, if any: the owner of the key.
    """

    key: str
    name: str


class RecipientsError(LehrError):
    """The file cannot be used."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        first = self.diagnostics[0]
        what = f"{first.at}: {first.what}"
        super().__init__(what, code=first.code, why=first.why, fix=first.fix)


def read_recipients(workspace: Path) -> list[Recipient]:
    """The recipients of a workspace, in the file's order; empty if there is no file.

    Raises:
        RecipientsError: a line is not a public key.
        LehrError: it cannot be read.
    """
    text = ""
    with (
        raised_as(LehrError, f"{RECIPIENTS} cannot be read", code="SEC128"),
        contextlib.suppress(FileNotFoundError),
    ):
        text = (workspace / RECIPIENTS).read_text(errors="replace")
    found: dict[str, Recipient] = {}
    problems: list[Diagnostic] = []
    name = ""
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        if not line or line.startswith("#"):
            name = line.removeprefix("#").strip()
        elif age.is_recipient(line):
            found.setdefault(line, Recipient(line, name))
            name = ""
        else:
            problems.append(_problem(line, number))
    if problems:
        raise RecipientsError(problems)
    return list(found.values())


def add_recipient(workspace: Path, recipient: Recipient) -> bool:
    """Append a recipient to the file; return False and do nothing if it is already there.

    Raises:
        LehrError: the file cannot be used or written.
    """
    if any(known.key == recipient.key for known in read_recipients(workspace)):
        return False
    path = workspace / RECIPIENTS
    with raised_as(LehrError, f"{RECIPIENTS} cannot be written", code="SEC129"):
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if path.exists() else ""
        gap = "" if not before or before.endswith("\n") else "\n"
        name = " ".join(recipient.name.split())
        path.write_text(before + gap + (f"# {name}\n" if name else "") + recipient.key + "\n")
    return True


def _problem(line: str, number: int) -> Diagnostic:
    private = line.startswith(_PRIVATE)
    return Diagnostic(
        code="SEC001",
        what="this is a private key" if private else "this is not a public key",
        why=(
            "everyone who can read the repository can now decrypt its secrets"
            if private
            else "a line is `age1...`, `ssh-ed25519 ...`, `ssh-rsa ...`, or a comment that starts with #"
        ),
        fix=(
            "remove it, create a new one with `lehr secret keygen`, and change all secrets"
            if private
            else "fix or remove it"
        ),
        subject=RECIPIENTS,
        at=Position(RECIPIENTS, number, 1),
        confidential=private,
    )
