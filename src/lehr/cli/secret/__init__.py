"""`lehr secret`: secrets that lie encrypted in the workspace."""

from __future__ import annotations

from typing import ClassVar

import click

from lehr.cli.lazy import Lazy, LazyGroup


class _Commands(LazyGroup):
    sections: ClassVar = {
        "Secrets": {
            "encrypt": Lazy("lehr.cli.secret.changing:encrypt", "Keep a secret in an encrypted file."),
            "edit": Lazy("lehr.cli.secret.editing:edit", "Edit an encrypted file, in memory."),
            "rotate": Lazy("lehr.cli.secret.changing:rotate", "Encrypt files anew, for the recipients."),
        },
        "Keys": {
            "keygen": Lazy("lehr.cli.secret.keys:keygen", "Make a key pair for this machine."),
            "show-recipients": Lazy("lehr.cli.secret.keys:show_recipients", "List who can decrypt."),
        },
    }


@click.command(
    cls=_Commands,
    epilog="""
    \b
    Examples:
      lehr secret keygen --add --name "build server"
      lehr secret encrypt secrets/db.yaml.age#password
      lehr secret edit secrets/db.yaml.age
      lehr secret rotate

    \b
    Intent refers to what is kept so:
      password: {secret: "age:secrets/db.yaml.age#password"}
    """,
)
def secret() -> None:
    """Keep secrets in the workspace, encrypted with age for those in secrets/recipients.txt.

    Plain text comes from standard input, a prompt or an editor, never from an argument, and is never
    written into the workspace. It is decrypted with the private key in LEHR_AGE_IDENTITY, in the file that
    LEHR_AGE_IDENTITY_FILE names, or in age-identity.txt in the state folder.
    """
