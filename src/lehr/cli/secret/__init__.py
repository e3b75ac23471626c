"""`lehr secret`: encrypted secrets in the workspace."""

from __future__ import annotations

import click

from lehr.cli.lazy import Lazy, LazyGroup


@click.command(
    cls=LazyGroup,
    sections={
        "Secrets": {
            "encrypt": Lazy("lehr.cli.secret.encryption:encrypt", "Store a secret in an encrypted file."),
            "edit": Lazy("lehr.cli.secret.editor:edit", "Edit an encrypted file in memory."),
            "rotate": Lazy(
                "lehr.cli.secret.encryption:rotate", "Re-encrypt files for the current recipients."
            ),
        },
        "Keys": {
            "keygen": Lazy("lehr.cli.secret.keys:keygen", "Generate a key pair for this machine."),
            "show-recipients": Lazy("lehr.cli.secret.keys:show_recipients", "List the recipients."),
        },
    },
)
def secret() -> None:
    """Manage secrets in the workspace, encrypted with age for the recipients in secrets/recipients.txt.

    Plain text comes from standard input, a prompt or an editor, never from an argument, and is never
    written to the workspace. Files are decrypted with the private key in LEHR_AGE_IDENTITY, in the file named
    by LEHR_AGE_IDENTITY_FILE, or in age-identity.txt in the state folder.

    Examples:
        lehr secret keygen --add --name "build server"
        lehr secret encrypt secrets/db.yaml.age#password
        lehr secret edit secrets/db.yaml.age
        lehr secret rotate

    \b
    Refer to it in intent:
      password: {secret: "age:secrets/db.yaml.age#password"}
    """  # noqa: D301  (click does not wrap what follows \b)
