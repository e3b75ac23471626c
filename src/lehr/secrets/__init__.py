"""Secrets: read from where intent refers to them, or kept encrypted in the workspace.

In: references (`lehr.model.secret`), and what holds the secrets: Lehr's environment, files of the machine,
files of the workspace that are encrypted with age or SOPS. Out: values that never print themselves
(`lehr.sdk.secrets`), and encrypted files (`encrypted_files`).

Architecture invariants:

* Plain text exists in memory and in stores meant for it: never in the state folder, a temporary file on a
  disk, an argument of a program, a message, an exception or a log.
* An encrypted file is read by the digest of its content. However the workspace has changed since, a reference
  means the file of the revision that it comes from.
* Nothing is cached between two reads: a key that is removed stops working at once.
"""

from __future__ import annotations

from lehr.secrets.identities import IDENTITY, IDENTITY_FILE, IDENTITY_NAME
from lehr.secrets.reader import SecretReader

__all__ = ["IDENTITY", "IDENTITY_FILE", "IDENTITY_NAME", "SecretReader"]
